"""What a trial pod tells the runner: its grants, its sandbox, its clock; and what people get to see of it."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from argo_harbor.errors import PlatformError
from argo_harbor.model.plan import Grant, Grants, PlanHead
from argo_harbor.model.platform import Platform, StoreSettings
from argo_harbor.model.record import RefusedHost, TrialRecord
from argo_harbor.runner import showcase
from argo_harbor.runner.pod import Pod
from argo_harbor.runner.pod_place import PodPlace
from argo_harbor.runner.process import began
from argo_harbor.store import layout
from argo_harbor.store.directory import DirectoryStore
from argo_harbor.workflow import names
from tests.support.records import Run, make_run, task_plan

PLATFORM = Platform(store=StoreSettings(endpoint="http://10.1.2.3:9000"))


def a_place(folder: Path, environ: dict[str, str] | None = None, platform: Platform = PLATFORM) -> PodPlace:
    pod = Pod(
        platform=platform,
        namespace="argo-harbor",
        uid="u",
        node="node-1",
        workflow_uid="w",
        credentials=folder,
    )
    return PodPlace(
        pod,
        time.time() - 10,
        environ=environ or {},
        scratch=folder,
        model=folder / "model",
        egress=folder / "egress",
    )


def head(folder: Path, **changes: object) -> PlanHead:
    return make_run(folder / "store", **changes).head


def test_grants_come_from_plan_secrets_and_the_platform(tmp_path: Path) -> None:
    grants = Grants(
        target=(
            Grant(name="LITERAL", kind="lit", value="plain"),
            Grant(name="KEY", kind="secret", value="keys/one"),
            Grant(name="MINE", kind="host", value="THEIRS"),
            Grant(name="SITE", kind="runtime", value="SITE_NAME"),
        ),
        verifier=(Grant(name="JUDGE", kind="secret", value="keys/judge"),),
    )
    environ = {
        f"{names.GRANT_ENV_PREFIX}KEY": "from a Secret",
        f"{names.GRANT_ENV_PREFIX}MINE": "from a shell",
        "SITE_NAME": "here",
        "KEY": "not this one",
    }
    place = a_place(tmp_path, environ)
    found = place.grants(head(tmp_path, grants=grants))
    assert dict(found.target) == {
        "LITERAL": "plain",
        "KEY": "from a Secret",
        "MINE": "from a shell",
        "SITE": "here",
    }
    assert (dict(found.verifier), found.model_key) == ({}, "")
    assert "from a Secret" not in repr(found)
    (tmp_path / "model").mkdir()
    (tmp_path / "model/api_key").write_text("sk-1\n")
    assert place.grants(head(tmp_path)).model_key == "sk-1"


def test_the_sandbox_and_what_its_rules_are_made_of(tmp_path: Path) -> None:
    place = a_place(tmp_path, {names.EXECD_TOKEN_ENV: "token", "KUBERNETES_SERVICE_HOST": "10.96.0.1"})
    plan = head(tmp_path, platform=PLATFORM, denied=("10.0.0.0/8",))
    settings = place.sandbox(plan, task_plan(0, "acme/one"))
    assert settings.execd_token == "token"
    assert settings.hosts == ("10.96.0.1", "10.1.2.3")
    assert settings.addresses == ("10.1.2.3", "10.96.0.1")
    assert "10.244.0.0/16" in settings.denied
    assert settings.egress_token_file == str(tmp_path / "egress/token")
    broken = a_place(tmp_path, platform=Platform(store=StoreSettings(endpoint="nothing")))
    with pytest.raises(PlatformError, match="names no host"):
        broken.sandbox(plan, task_plan(0, "acme/one"))


def test_the_outer_clock_rings_before_the_pods(tmp_path: Path) -> None:
    place = a_place(tmp_path)
    assert place.outer_seconds(1000) == pytest.approx(970, abs=2)
    assert place.outer_seconds(5) == 1.0


@pytest.mark.parametrize(
    ("stop", "before", "status"),
    [("cancelled", False, 75), ("cancelled", True, 1), ("expired", False, 1), ("expired", True, 1)],
)
def test_only_a_pod_that_was_taken_away_may_have_a_further_try(
    stop: str, before: bool, status: int, tmp_path: Path
) -> None:
    place = a_place(tmp_path)
    assert place.stopped_status(stop, before=before) == status  # type: ignore[arg-type]


def test_phases_are_lines_of_the_log_and_a_mark_in_the_store(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, store = a_run(tmp_path)
    place = a_place(tmp_path)
    place.announce("sandbox")
    started = run.folder(0, 0, 0, run.uid()) + layout.STARTED
    store.put(started, b"{}")
    assert place.admit(store, run.run_id, run.head, started).stop == ""
    place.announce("agent")
    record = run.record(0, uid="0" * 32)
    place.leave(record, tmp_path / "work", ())
    said = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[-1] for line in said] == ["sandbox begins", "agent begins", "scored: reward=1"]
    mark = started.removesuffix(layout.STARTED) + layout.PHASE
    deadline = time.monotonic() + 5
    while not store.exists(mark) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert json.loads(store.get(mark))["phase"] == "agent"
    assert (tmp_path / "artifact" / layout.TRIAL).exists()


def a_run(tmp_path: Path) -> tuple[Run, DirectoryStore]:
    run = make_run(tmp_path / "store")
    return run, run.store


def shown(tmp_path: Path, record: TrialRecord) -> dict[str, bytes]:
    showcase.show(record, tmp_path / "work", tmp_path / "artifact", ("hunter22",))
    return {path.name: path.read_bytes() for path in (tmp_path / "artifact").iterdir()}


def test_the_small_folder_holds_the_record_and_the_ends_of_logs(tmp_path: Path) -> None:
    run, _ = a_run(tmp_path)
    trial = tmp_path / "work/trials/one"
    for name in ("agent", "verifier"):
        (trial / name).mkdir(parents=True)
    (trial / "trial.log").write_text("")
    (trial / "agent/oracle.txt").write_bytes(b"x" * showcase.TAIL + b"with hunter22")
    (trial / "verifier/test-stdout.txt").symlink_to("/etc/passwd")
    (tmp_path / "work/child.log").write_text("last words")
    record = run.record(0, uid="0" * 32)
    found = shown(tmp_path, record)
    assert set(found) == {"trial.json", "agent-oracle.txt", "work-child.log"}
    assert found["agent-oracle.txt"].endswith(b"xwith ***")
    assert found["trial.json"] == record.canonical()


def test_the_small_folder_stays_small(tmp_path: Path) -> None:
    run, _ = a_run(tmp_path)
    agent = tmp_path / "work/trials/one/agent"
    agent.mkdir(parents=True)
    for number in range(20):
        (agent / f"{number}.txt").write_bytes(b"x" * showcase.TAIL)
    found = shown(tmp_path, run.record(0, uid="0" * 32))
    assert sum(map(len, found.values())) <= showcase.MAX_BYTES
    assert len(found) > 5
    large = run.record(0, uid="0" * 32, files=["f" * 200] * 6000)
    (tmp_path / "large").mkdir()
    assert shown(tmp_path / "large", large) == {}


def test_lines_for_people(tmp_path: Path) -> None:
    run, _ = a_run(tmp_path)
    hosts = [RefusedHost(host=f"h{number}", count=1).as_data() for number in range(7)]
    record = run.record(
        0,
        uid="0" * 32,
        refused={"agent": hosts},
        overhead_seconds={"before_agent": 0.5, "after_verifier": 1.25},
        error={"code": "agent_timeout"},
    )
    assert list(showcase.lines(record)) == [
        "refused in agent: h0 (1), h1 (1), h2 (1), h3 (1), h4 (1) and 2 more",
        "scored: reward=1 (after agent_timeout)",
        "own time: before agent 0.50 s, after verifier 1.25 s; 1.75 s in all",
    ]
    failed = run.record(
        0, uid="0" * 32, outcome="errored", error={"code": "agent_crashed", "message": "boom\nmore"}
    )
    assert list(showcase.lines(failed)) == ["errored: agent_crashed: boom"]


def test_a_process_knows_when_it_began() -> None:
    assert 0 < time.time() - began() < 3600
