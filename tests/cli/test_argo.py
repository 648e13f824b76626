"""Commands before a cluster: what they print, from an API server in the test's own process."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from argo_harbor.bundle.merge import merge
from argo_harbor.model.plan import RunPlan
from argo_harbor.store.directory import DirectoryStore
from tests.cli.conftest import Command
from tests.engines.argo_bench import ArgoBench, install
from tests.support.api_server import ApiServer, Trouble
from tests.support.program import EXAMPLES
from tests.support.suites import make_suite

HELLO = ("runs", "submit", "--harbor-dir", EXAMPLES / "hello-world", "--agent", "oracle")


@pytest.fixture
def cluster(api: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ArgoBench:
    """The platform's store is a folder, since no object store runs here."""
    install(api)
    bench = ArgoBench(api, tmp_path)
    monkeypatch.setattr("argo_harbor.engines.argo.open_store", lambda *_, **__: bench.store)
    return bench


def submitted(argo_harbor: Command, *flags: object) -> str:
    done = argo_harbor(*HELLO, *flags, "--json")
    assert done.status == 0, done.stderr
    run_id = done.json("run-document-1")["run"]["id"]
    assert isinstance(run_id, str)
    return run_id


def test_submit_returns_once_the_cluster_has_accepted(cluster: ArgoBench, argo_harbor: Command) -> None:
    done = argo_harbor(*HELLO)
    assert done.status == 0, done.stderr
    (run_id,) = cluster.api.named("workflows")
    first, *published, accepted, rerun, follow = done.stdout.splitlines()
    assert first.startswith("Engine argo, context double, namespace argo-harbor, store ")
    assert "platform ConfigMap argo-harbor-platform in namespace argo-harbor" in first
    assert accepted.startswith(f"Run {run_id} accepted: 1 tasks, 1 trials, 20 at once; ")
    assert rerun.startswith("Rerun these tasks: argo-harbor runs submit --taskset 'hello-world#")
    assert follow == f"View evaluation run: argo-harbor runs status {run_id} --watch"
    assert [line.rpartition("#")[0] for line in published] == [
        "Published task argo-harbor-examples/hello-world",
        "Published taskset hello-world",
    ]
    again = argo_harbor(*HELLO)
    assert again.stdout.splitlines()[1:3] == [line.replace("Published", "Unchanged") for line in published]
    assert f"{run_id} is already running" in again.stderr


def test_a_large_suite_is_summed_up_and_said_before(
    cluster: ArgoBench, argo_harbor: Command, tmp_path: Path
) -> None:
    suite = make_suite(tmp_path / "suite", tasks=51, prebuilt=True, shared_images=1)
    done = argo_harbor("runs", "submit", "--harbor-dir", suite, "--agent", "nop")
    assert done.status == 0, done.stderr
    assert done.stdout.splitlines()[1] == "Published 51 of 51 tasks, 0 unchanged"
    assert "publishing what the store lacks of 51 tasks" in done.stderr


def test_flags_that_lead_there_stand_in_every_line_to_copy(cluster: ArgoBench, argo_harbor: Command) -> None:
    done = argo_harbor(*HELLO, "--engine", "argo", "--workspace", "argo-harbor")
    for line in done.stdout.splitlines()[-2:]:
        assert line.endswith("--engine argo --namespace argo-harbor")


def test_a_key_that_is_known(cluster: ArgoBench, argo_harbor: Command) -> None:
    run_id = submitted(argo_harbor, "--idempotency-key", "k")
    done = argo_harbor(*HELLO, "--idempotency-key", "k")
    assert (done.status, f"Run {run_id} is there already" in done.stdout) == (0, True)
    clash = argo_harbor(*HELLO, "--idempotency-key", "k", "-O", "spec.target.max_retries=2", "--json")
    assert (clash.status, clash.error["code"]) == (4, "idempotency_conflict")


def test_following_to_the_end(
    cluster: ArgoBench, argo_harbor: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look finds the run further on; one look finds nobody."""
    run_id = submitted(argo_harbor)
    plan: RunPlan = cluster.plan()

    def pending() -> None:
        trial = {"type": "Pod", "templateName": "trial-x", "phase": "Pending", "message": "no room"}
        index = {"inputs": {"parameters": [{"name": "index", "value": "0"}]}}
        cluster.says(run_id, "Running", nodes={"a": {**trial, **index}})

    def trouble() -> None:
        cluster.api.troubles = [Trouble("GET", "/workflows/", 503, times=4)]

    def merged() -> None:
        cluster.trials(run_id, plan).add(0, rewards={"reward": 1.0})
        merge(run_id, cluster.store, plan=plan.digest, engine="argo")
        cluster.says(run_id, "Succeeded")

    steps = [pending, trouble, merged]
    clock = SimpleNamespace(sleep=lambda _: steps.pop(0)(), monotonic=time.monotonic)
    monkeypatch.setattr("argo_harbor.cli.looking.time", clock)
    monkeypatch.setattr("argo_harbor.cluster.client.time", SimpleNamespace(sleep=lambda _: None))
    done = argo_harbor("runs", "status", run_id, "--watch")
    assert done.status == 0
    said = done.stderr.splitlines()
    assert "argo-harbor-examples/hello-world: image_ready, pending: no room" in said
    assert any(line.startswith("platform_unreachable: ") and line.endswith("looking again") for line in said)
    assert said[-1] == f"Run {run_id} completed: 1 succeeded"
    assert f"Scores: argo-harbor runs results {run_id}" in done.stdout


def test_a_run_that_was_terminated_points_to_the_merge(cluster: ArgoBench, argo_harbor: Command) -> None:
    run_id = submitted(argo_harbor)
    cluster.says(run_id, "Failed", shutdown="Terminate")
    shown = argo_harbor("runs", "status", "last")
    assert f"Not merged yet: argo-harbor runs merge {run_id}" in shown.stdout
    assert argo_harbor("runs", "status", "last", "--wait").status == 1
    assert argo_harbor("runs", "merge", "last").status == 0
    assert "cancelled" in argo_harbor("runs", "status", "last").stdout


def test_info_tells_of_steps(cluster: ArgoBench, argo_harbor: Command) -> None:
    run_id = submitted(argo_harbor)
    build = {"type": "Pod", "displayName": "build-hello-world", "templateName": "build", "phase": "Failed"}
    cluster.says(run_id, "Running", nodes={"a": {**build, "message": "exit 1"}})
    shown = argo_harbor("runs", "info", run_id, "--logs").stdout
    assert "build-hello-world  failed  exit 1" in shown
    assert f"argo-harbor runs logs {run_id} --build" in shown


def test_cancel_says_what_happens_next(cluster: ArgoBench, argo_harbor: Command) -> None:
    run_id = submitted(argo_harbor)
    done = argo_harbor("runs", "cancel", run_id)
    assert f"Run {run_id} is ending" in done.stdout
    assert f"runs status {run_id} --watch" in done.stdout


def test_logs_of_a_running_pod(cluster: ArgoBench, argo_harbor: Command) -> None:
    run_id = submitted(argo_harbor)
    labels = {"argo-harbor/run": run_id, "argo-harbor/task-index": "0", "argo-harbor/attempt": "0"}
    pod = {"metadata": {"labels": labels}, "status": {"phase": "Running"}}
    cluster.api.put("/api/v1/namespaces/argo-harbor/pods/p", pod)
    cluster.api.logs["p"] = "agent begins\n"
    cluster.says(run_id, "Running")
    assert argo_harbor("runs", "logs", run_id).stdout == "==> pod p <==\nagent begins\n"
    assert "removes pods that succeeded" in argo_harbor("runs", "logs", run_id, "--merge").stderr
    assert argo_harbor("runs", "logs", run_id, "--merge", "--task", "0").status == 2


def test_dry_run(cluster: ArgoBench, argo_harbor: Command) -> None:
    done = argo_harbor(*HELLO, "--dry-run")
    assert done.status == 0
    assert "nothing was started" in done.stdout
    cluster.api.troubles = [Trouble("POST", "/workflows", 422, "Invalid", "too large")]
    failed = argo_harbor(*HELLO, "--dry-run", "--json")
    assert (failed.status, failed.json("dry-run-document-1")["ok"]) == (1, False)
    assert cluster.api.named("workflows") == []


def test_settings_and_profiles_of_the_cluster(cluster: ArgoBench, argo_harbor: Command) -> None:
    rows = argo_harbor("config", "show", "--json").json("config-document-1")["settings"]
    found = {row["key"]: row["value"] for row in rows}
    assert (found["engine"], found["context"], found["namespace"]) == ("argo", "double", "argo-harbor")
    listed = argo_harbor("profiles", "list").stdout
    assert "ConfigMap argo-harbor-profiles" in listed
    assert argo_harbor("profiles", "show", "harbor-standard", "--json").json("profile-document-1")["default"]
    local = argo_harbor("profiles", "list", "--engine", "local").stdout
    assert "ConfigMap" not in local


def test_a_context_without_a_platform_is_told_in_the_first_line(api: ApiServer, argo_harbor: Command) -> None:
    done = argo_harbor(*HELLO, "--dry-run", "--base", "preview")
    first = done.stdout.splitlines()[0]
    assert first.startswith("Engine local (no platform in namespace argo-harbor of context double), store ")
    assert "looking on this machine" in argo_harbor("runs", "list").stderr


def test_listing_tasks_asks_no_cluster(api: ApiServer, argo_harbor: Command) -> None:
    api.troubles = [Trouble("GET", "/", 500, times=100)]
    assert argo_harbor(*HELLO, "--list-tasks").status == 0
    assert api.asked == []


def test_publishing_a_compiled_suite(
    argo_harbor: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = DirectoryStore(tmp_path / "remote")
    monkeypatch.setattr("argo_harbor.store.opening.open_store", lambda *_, **__: store)
    compile_it = ("compile", "--harbor-dir", EXAMPLES / "hello-world", "--agent", "oracle", "-o", "out")
    done = argo_harbor(*compile_it, "--publish")
    assert done.status == 0, done.stderr
    digest = done.stdout.splitlines()[-1].removeprefix("Plan ")
    assert store.exists(f"plans/{digest}/plan.json")
    assert "Published 1 of 1 tasks" in done.stderr


def test_publishing_without_a_store(argo_harbor: Command) -> None:
    compile_it = ("compile", "--harbor-dir", EXAMPLES / "hello-world", "--agent", "oracle", "-o", "out")
    done = argo_harbor(*compile_it, "--publish", "--json")
    assert (done.status, done.error["code"]) == (5, "platform_not_configured")
    assert not Path("out").exists()
