"""`tasksets build-images` before a cluster and on this machine, and how runs depend on it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from argo_harbor.bundle.images import record_image
from argo_harbor.cli.build_inputs import build_flags, build_inputs
from argo_harbor.errors import UsageError
from argo_harbor.model.build import BuildRecord
from argo_harbor.model.build_plan import BuildPlan
from argo_harbor.store import layout
from argo_harbor.workflow import names
from tests.cli.conftest import Command, Done
from tests.engines.argo_bench import ArgoBench, install
from tests.engines.suite import REWARD, write_task
from tests.support.api_server import ApiServer, Trouble

ARGUED = "FROM debian:bookworm-slim\nARG WHO=nobody\nRUN echo $WHO > /who\n"


def write_suite(folder: Path, **dockerfiles: str) -> Path:
    for name, text in dockerfiles.items():
        write_task(folder / "suite", name, dockerfile=text)
    return folder / "suite"


def created(argo_harbor: Command, suite: Path, *flags: object) -> str:
    done = argo_harbor("tasksets", "create", "--harbor-dir", suite, *flags)
    assert done.status == 0, done.stderr
    return done.stdout.strip().splitlines()[-1]


@pytest.fixture
def cluster(api: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ArgoBench:
    install(api)
    bench = ArgoBench(api, tmp_path)
    monkeypatch.setattr("argo_harbor.engines.argo.open_store", lambda *_, **__: bench.store)
    return bench


def plan_of(cluster: ArgoBench) -> BuildPlan:
    """The plan of the only workflow of builds."""
    [name] = cluster.api.named("workflows")
    digest = cluster.api.workflow(name)["metadata"]["annotations"][names.BUILDS_LABEL]
    return BuildPlan.from_json(cluster.store.get(layout.build_plan(digest)))


def test_without_wait_it_says_what_was_started(
    cluster: ArgoBench, argo_harbor: Command, tmp_path: Path
) -> None:
    ref = created(argo_harbor, write_suite(tmp_path, one=ARGUED))
    done = argo_harbor("tasksets", "build-images", ref, "--max-concurrent", "3", "--build-arg", "WHO=me you")
    assert done.status == 0, done.stderr
    [name] = cluster.api.named("workflows")
    assert f"Started {name}: 3 at once" in done.stderr
    assert cluster.api.workflow(name)["spec"]["parallelism"] == 3
    assert plan_of(cluster).images[0].image.arguments == (("WHO", "me you"),)
    assert done.stdout.splitlines()[2].split()[1:3] == ["one", "pending"]
    assert done.stdout.splitlines()[-1] == (
        f"Look again: argo-harbor tasksets build-images '{ref}' --build-arg 'WHO=me you' --wait"
    )
    again = argo_harbor("tasksets", "build-images", ref, "--build-arg", "WHO=me you", "--json")
    document = again.json("build-images-document-1")
    assert (document["workflows"], document["settled"]) == ([name], False)
    assert f"{name} is building images of this taskset already" in again.stderr


class Clock:
    """Sleep that lets the controller go on instead."""

    def __init__(self, *steps: Callable[[], Any]) -> None:
        self.steps = list(steps)

    def __call__(self, seconds: float) -> None:
        assert self.steps, "it looked once more than there was to see"
        self.steps.pop(0)()


def says(cluster: ArgoBench, phase: str, *, ok: bool = True, step: str = "", message: str = "") -> None:
    """Let the only image come to that phase, with its record when it has ended."""
    [name] = cluster.api.named("workflows")
    node = {"name": f"{name}.build-one", "displayName": "build-one", "templateName": "build", "phase": phase}
    parameters = {"parameters": [{"name": "image", "value": "0"}]}
    if phase in ("Succeeded", "Failed"):
        image = plan_of(cluster).images[0].image
        record_image(
            cluster.store,
            BuildRecord(image_key=image.key, ok=ok, reference=image.reference, step=step, message=message),
        )
    cluster.says(name, "Running", nodes={"n": {**node, "type": "Pod", "inputs": parameters}})


def test_waiting_ends_with_the_states_and_what_failed(
    cluster: ArgoBench, argo_harbor: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref = created(argo_harbor, write_suite(tmp_path, one=ARGUED))
    message = "\n".join(f"line {number}" for number in range(30)) + "\nevil \x1b[31m"

    def falter() -> None:
        says(cluster, "Running")
        cluster.api.troubles = [Trouble("GET", "/workflows", 503, "Unavailable", times=4)]

    def fail() -> None:
        says(cluster, "Failed", ok=False, step="Dockerfile:3: RUN echo $WHO", message=message)

    # The client's own pauses between its tries count too.
    monkeypatch.setattr("time.sleep", Clock(falter, *[lambda: None] * 4, fail))
    done = argo_harbor("tasksets", "build-images", ref, "--wait")
    assert done.status == 1, done.stderr
    assert "one building" in done.stderr
    assert "looking again" in done.stderr
    table, _, failure = done.stdout.partition("\none: image_build_failed: ")
    assert table.splitlines()[2].split()[1:3] == ["one", "failed"]
    assert failure.splitlines()[0] == "Dockerfile:3: RUN echo $WHO"
    assert "  line 29" in failure
    assert "line 3\n" not in failure
    assert "\x1b" not in done.stdout
    assert "0 ready" not in done.stdout
    assert "1 failed" in done.stdout
    assert f"Try the failed ones again: argo-harbor tasksets build-images '{ref}' --wait" in done.stdout
    refused = argo_harbor("runs", "submit", "--taskset", ref, "--agent", "oracle", "--json")
    assert (refused.status, refused.error["code"]) == (3, "image_not_built")
    assert refused.error["items"][0]["code"] == "image_build_failed"
    assert refused.error["hint"] == f"argo-harbor tasksets build-images '{ref}' --wait"


def test_after_a_success_the_next_command_is_the_run(
    cluster: ArgoBench, argo_harbor: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref = created(argo_harbor, write_suite(tmp_path, one=ARGUED))
    monkeypatch.setattr("time.sleep", Clock(lambda: says(cluster, "Succeeded")))
    done = argo_harbor("tasksets", "build-images", ref, "--wait")
    assert (done.status, done.stdout.splitlines()[-1]) == (
        0,
        f"Run it: argo-harbor runs submit --taskset '{ref}'",
    )
    dry = argo_harbor("runs", "submit", "--taskset", ref, "--agent", "oracle", "--dry-run")
    assert "tasks without images" not in dry.stderr
    shown = argo_harbor("tasksets", "show", ref, "--images", "--json").json("taskset-document-1")
    assert [(image["tasks"], image["state"]) for image in shown["images"]] == [(["one"], "ready")]
    assert argo_harbor("tasksets", "show", ref, "--json").json("taskset-document-1")["images"] == []
    table = argo_harbor("tasksets", "show", ref, "--images", "--build-arg", "WHO=else").stdout
    assert "one    missing" in table


def test_an_interrupt_leaves_the_builds_and_says_how_to_look_again(
    cluster: ArgoBench, argo_harbor: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref = created(argo_harbor, write_suite(tmp_path, one=ARGUED))

    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", Clock(interrupt))
    done = argo_harbor("tasksets", "build-images", ref, "--wait")
    assert done.status == 130
    [name] = cluster.api.named("workflows")
    assert cluster.api.workflow(name)["spec"].get("shutdown") is None
    assert f"Look again: argo-harbor tasksets build-images '{ref}' --wait" in done.stderr


def test_a_cluster_that_says_no_ends_the_wait(
    cluster: ArgoBench, argo_harbor: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref = created(argo_harbor, write_suite(tmp_path, one=ARGUED))
    sleeps = Clock(lambda: cluster.api.troubles.append(Trouble("GET", "/workflows", 403, "Forbidden")))
    monkeypatch.setattr("time.sleep", sleeps)
    done = argo_harbor("tasksets", "build-images", ref, "--wait")
    assert (done.status, "error[platform_refused]" in done.stderr) == (5, True)


def test_prebuilt_images_need_nothing(cluster: ArgoBench, argo_harbor: Command, tmp_path: Path) -> None:
    folder = write_task(tmp_path / "suite", "one", toml='[environment]\ndocker_image = "host.example/a:1"')
    (folder / "environment" / "Dockerfile").unlink()
    ref = created(argo_harbor, tmp_path / "suite")
    done = argo_harbor("tasksets", "build-images", ref, "--wait")
    assert (done.status, done.stdout) == (0, "no image of these tasks needs to be built\n")
    assert argo_harbor("runs", "submit", "--taskset", ref, "--agent", "oracle").status == 0


SECRET = "FROM debian:bookworm-slim\nRUN --mount=type=secret,id=token,required=true true\n"


def test_a_secret_is_granted_by_flag(cluster: ArgoBench, argo_harbor: Command, tmp_path: Path) -> None:
    suite = write_suite(tmp_path, one=SECRET)
    ref = created(argo_harbor, suite)
    refused = argo_harbor("tasksets", "build-images", ref, "--json")
    assert (refused.status, refused.error["code"]) == (3, "env_not_granted")
    assert "--build-secret token=SECRET/KEY" in refused.error["hint"]
    done = argo_harbor("tasksets", "build-images", ref, "--build-secret", "token=builds/key")
    assert done.status == 0, done.stderr
    assert plan_of(cluster).images[0].image.secrets == (("token", "builds/key"),)
    flags = ("--agent", "oracle", "--build-secret", "token=builds/key")
    submitted = argo_harbor("runs", "submit", "--harbor-dir", suite, *flags)
    assert submitted.status == 0, submitted.stderr
    [rerun] = [line for line in submitted.stdout.splitlines() if line.startswith("Rerun")]
    assert "--build-secret token=builds/key" in rerun
    looked = argo_harbor("runs", "submit", "--harbor-dir", suite, *flags, "--dry-run").stdout
    assert "Secret builds" in looked
    compiled = argo_harbor("compile", "--harbor-dir", suite, *flags, "--build-arg", "X=1", "-o", "-")
    assert "build-with-secrets-0" in compiled.stdout


def test_the_values_of_a_request_file_come_before_those_of_flags(
    cluster: ArgoBench, argo_harbor: Command, tmp_path: Path
) -> None:
    suite = write_suite(tmp_path, one=ARGUED)
    request = {
        "spec": {"target": {"source": {"name": "oracle"}}},
        "execution": {"build": {"args": {"WHO": "file"}, "secrets": {"a": "b/c"}}},
    }
    (tmp_path / "request.json").write_text(json.dumps(request))
    folder = tmp_path / "out"
    for flags, value in (((), "file"), (("--build-arg", "WHO=flag"), "flag")):
        done = argo_harbor(
            *("compile", "--harbor-dir", suite, "--spec-file", tmp_path / "request.json"),
            *("-o", folder, *flags),
        )
        assert done.status == 0, done.stderr
        part = json.loads((folder / "tasks" / "0.json").read_text())
        assert part["images"]["agent"]["arguments"] == [["WHO", value]]


def test_values_of_this_shell() -> None:
    env = {"A": "1", "EMPTY": ""}
    found = build_inputs(["A", "B=x=y", "EMPTY"], ["id=name/key"], env)
    assert found.args == {"A": "1", "B": "x=y", "EMPTY": ""}
    assert list(build_flags(found)) == [
        *(("--build-arg", "A=1"), ("--build-arg", "B=x=y"), ("--build-arg", "EMPTY=")),
        ("--build-secret", "id=name/key"),
    ]


@pytest.mark.parametrize(
    ("arguments", "secrets", "message"),
    [
        (["GONE"], [], "no such variable in this shell"),
        (["no name=x"], [], "'no name' is no name of a variable"),
        ([], ["id"], "names no Secret"),
        ([], ["id=NAME"], "id=NAME names no key of a Secret"),
        ([], ["../id=a/b"], "names no key of a Secret"),
    ],
)
def test_flags_that_cannot_be_read(arguments: list[str], secrets: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message) as error:
        build_inputs(arguments, secrets, {})
    assert error.value.code == "unknown_flag_value"


LOCAL = ("--engine", "local", "--base", "preview")


@pytest.mark.sandbox
class TestOnThisMachine:
    """With real sandboxes, on the preview."""

    @pytest.fixture
    def ref(self, argo_harbor: Command, tmp_path: Path) -> str:
        suite = write_suite(tmp_path, good=ARGUED, bad="FROM debian:12\nRUN echo one; echo two; exit 3\n")
        return created(argo_harbor, suite, "--engine", "local")

    def build(self, argo_harbor: Command, ref: str, *flags: object) -> Done:
        return argo_harbor("tasksets", "build-images", ref, *LOCAL, *flags)

    def test_states_are_told_and_kept(self, argo_harbor: Command, ref: str) -> None:
        done = self.build(argo_harbor, ref, "--max-concurrent", 1)
        assert done.status == 1, done.stderr
        assert {line.split()[1]: line.split()[2] for line in done.stdout.splitlines()[2:4]} == {
            "bad": "failed",
            "good": "ready",
        }
        assert "\nbad: image_build_failed: line 2: RUN echo one; echo two; exit 3\n  one\n" in done.stdout
        assert "good: ready in" in done.stderr
        again = self.build(argo_harbor, ref, "--json")
        states = {
            image["tasks"][0]: image["state"] for image in again.json("build-images-document-1")["images"]
        }
        assert states == {"bad": "failed", "good": "ready"}
        assert "building for good" not in again.stderr
        assert "building for bad" in again.stderr
        shown = argo_harbor("tasksets", "show", ref, "--engine", "local", "--images").stdout
        assert "good   ready" in shown

    def test_a_run_wants_them_built(self, argo_harbor: Command, ref: str) -> None:
        submit = ("runs", "submit", "--taskset", ref, "--agent", "oracle", *LOCAL, "--json")
        refused = argo_harbor(*submit, "--build-arg", "WHO=me")
        assert (refused.status, refused.error["code"]) == (3, "image_not_built")
        assert "--build-arg WHO=me --base preview --wait" in refused.error["hint"]
        assert self.build(argo_harbor, ref, "--tasks", "good", "--build-arg", "WHO=me").status == 0
        assert argo_harbor(*submit, "--tasks", "good").status == 3
        ran = argo_harbor(*submit, "--tasks", "good", "--build-arg", "WHO=me")
        assert ran.status == 0, ran.stderr

    def test_a_run_from_a_folder_builds_them_itself(self, argo_harbor: Command, tmp_path: Path) -> None:
        suite = write_suite(tmp_path, good=f"{ARGUED}RUN grep me /who\n")
        flags = ("--agent", "oracle", "--build-arg", "WHO=me", *LOCAL)
        ran = argo_harbor("runs", "submit", "--harbor-dir", suite, *flags)
        assert ran.status == 0, ran.stderr
        [rerun] = [line for line in ran.stdout.splitlines() if line.startswith("Rerun")]
        assert "--build-arg WHO=me" in rerun
        ref = rerun.partition("--taskset '")[2].partition("'")[0]
        assert argo_harbor("runs", "submit", "--taskset", ref, *flags).status == 0

    def test_what_this_machine_cannot_build_is_refused(self, argo_harbor: Command, tmp_path: Path) -> None:
        write_task(tmp_path / "other", "one", dockerfile=SECRET, test=f"echo 1 > {REWARD}")
        ref = created(argo_harbor, tmp_path / "other", "--engine", "local")
        done = self.build(argo_harbor, ref, "--build-secret", "token=builds/key", "--json")
        assert done.status == 3
        codes = {item["code"] for item in done.error["items"]}
        assert codes == {"preview_unsupported", "local_env_unsupported"}


def test_refused_tasks_can_be_left_out(cluster: ArgoBench, argo_harbor: Command, tmp_path: Path) -> None:
    ref = created(argo_harbor, write_suite(tmp_path, one=ARGUED, two=SECRET))
    refused = argo_harbor("tasksets", "build-images", ref, "--json")
    assert (refused.status, [item["task"] for item in refused.error["items"]]) == (3, ["two"])
    assert not cluster.api.named("workflows")
    done = argo_harbor("tasksets", "build-images", ref, "--skip-refused")
    assert done.status == 0, done.stderr
    assert [image.tasks for image in plan_of(cluster).images] == [("one",)]
    assert "\ntwo: skipped: env_not_granted: " in done.stdout
    again = f"argo-harbor tasksets build-images '{ref}' --skip-refused --wait"
    assert done.stdout.splitlines()[-1] == f"Look again: {again}"
    document = argo_harbor("tasksets", "build-images", ref, "--skip-refused", "--json").json(
        "build-images-document-1"
    )
    assert [(item["task"], item["code"]) for item in document["skipped"]] == [("two", "env_not_granted")]
    submit = argo_harbor("runs", "submit", "--taskset", ref, "--agent", "oracle", "--skip-refused", "--json")
    assert (submit.error["code"], submit.error["hint"]) == ("image_not_built", again)


def test_the_images_of_a_taskset_are_shown_beside_tasks_that_have_none(
    cluster: ArgoBench, argo_harbor: Command, tmp_path: Path
) -> None:
    ref = created(argo_harbor, write_suite(tmp_path, one=ARGUED, two=SECRET))
    shown = argo_harbor("tasksets", "show", ref, "--images")
    assert (shown.status, "one    missing" in shown.stdout) == (0, True), shown.stderr
    assert "\ntwo: skipped: env_not_granted: " in shown.stdout
    document = argo_harbor("tasksets", "show", ref, "--images", "--json").json("taskset-document-1")
    assert [(item["task"], item["code"]) for item in document["skipped"]] == [("two", "env_not_granted")]
    assert len(document["images"]) == 1
