"""The shard step: creates its part once, follows it to its end, ends it with the run and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from argo_harbor.cluster.connect import connect
from argo_harbor.errors import PlatformError
from argo_harbor.runner import shard as module
from argo_harbor.runner.exits import Again
from argo_harbor.runner.process import Interrupt
from argo_harbor.runner.shard import Shard, main, read_part
from argo_harbor.store import layout
from argo_harbor.store.directory import DirectoryStore
from argo_harbor.workflow import names
from argo_harbor.workflow.emit import to_yaml
from tests.support.api_server import ApiServer, Trouble
from tests.support.pods import WORKFLOW_UID, make_pod, store_root

PLAN = "ab" * 32
NAME = "run-1-002"
PART: dict[str, Any] = {
    "apiVersion": "argoproj.io/v1alpha1",
    "kind": "Workflow",
    "metadata": {
        "generateName": "part-002-",
        "labels": {names.PLAN_LABEL: PLAN[:16]},
        "annotations": {names.PLAN_LABEL: PLAN},
    },
    "spec": {"entrypoint": "main", "templates": [{"name": "main", "dag": {"tasks": []}}]},
}
WORKFLOWS = "/apis/argoproj.io/v1alpha1/namespaces/argo-harbor/workflows"


@pytest.fixture
def store(tmp_path: Path) -> DirectoryStore:
    store = DirectoryStore(store_root(tmp_path))
    store.put(layout.plan_part(PLAN, 2), to_yaml(PART).encode())
    return store


def shard(
    tmp_path: Path, on_sleep: Callable[[], object] = lambda: None, *, interrupt: Interrupt | None = None
) -> Shard:
    return Shard(
        PLAN,
        "run-1",
        2,
        make_pod(tmp_path),
        connect(namespace="argo-harbor"),
        interrupt or Interrupt(),
        sleep=lambda _: on_sleep(),
    )


def parent(api: ApiServer, **spec: Any) -> None:
    api.put(f"{WORKFLOWS}/run-1", {"metadata": {"uid": WORKFLOW_UID}, "spec": spec, "status": {}})


def phase(api: ApiServer, name: str, progress: str = "") -> None:
    api.workflow(NAME)["status"] = {"phase": name, "progress": progress}


@pytest.mark.parametrize("end", ["Succeeded", "Failed", "Error"])
def test_a_part_is_followed_to_its_end_whatever_it_is(
    api: ApiServer, tmp_path: Path, store: DirectoryStore, end: str, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = iter([("Running", "1/4"), ("Running", "1/4"), ("Running", "3/4"), (end, "4/4")])
    assert shard(tmp_path, lambda: phase(api, *next(steps))).run() == 0
    assert list(steps) == []
    said = [line.partition(f"{NAME}: ")[2] for line in capsys.readouterr().out.splitlines()]
    assert said == ["Accepted", "Running 1/4", "Running 3/4", f"{end} 4/4"]
    assert api.workflow(NAME)["metadata"]["labels"][names.RUN_LABEL] == "run-1"


def test_a_repeated_step_finds_the_part_by_its_name(
    api: ApiServer, tmp_path: Path, store: DirectoryStore
) -> None:
    shard(tmp_path, lambda: phase(api, "Succeeded")).run()
    assert shard(tmp_path, lambda: pytest.fail("it is over")).run() == 0
    assert [method for method, _ in api.asked].count("POST") == 1


def test_no_part_starts_beside_another_one(api: ApiServer, tmp_path: Path, store: DirectoryStore) -> None:
    other = f"{WORKFLOWS}/run-1-001"
    api.put(other, {"metadata": {"labels": {names.RUN_LABEL: "run-1"}}, "status": {"phase": "Running"}})
    created_beside: list[bool] = []

    def step() -> None:
        if not created_beside:
            created_beside.append(f"{WORKFLOWS}/{NAME}" in api.objects)
            api.objects[other]["status"]["phase"] = "Failed"
        else:
            phase(api, "Succeeded")

    assert shard(tmp_path, step).run() == 0
    assert created_beside == [False]
    assert api.workflow(NAME)["status"]["phase"] == "Succeeded"


def test_a_part_that_is_taken_away_has_ended(api: ApiServer, tmp_path: Path, store: DirectoryStore) -> None:
    assert shard(tmp_path, lambda: api.objects.pop(f"{WORKFLOWS}/{NAME}")).run() == 0


def test_an_api_server_that_restarts_is_waited_for(
    api: ApiServer, tmp_path: Path, store: DirectoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("argo_harbor.cluster.client.time.sleep", lambda _: None)

    def falter() -> None:
        if not api.troubles:
            api.troubles.append(Trouble("GET", NAME, 503, times=4))
        elif not api.troubles[0].times:
            phase(api, "Succeeded")

    assert shard(tmp_path, falter).run() == 0


def test_an_api_server_that_stays_away_is_left_to_another_try(
    api: ApiServer, tmp_path: Path, store: DirectoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("argo_harbor.cluster.client.time.sleep", lambda _: None)
    monkeypatch.setattr(module, "SILENCE_SECONDS", -1.0)
    with pytest.raises(Again):
        shard(tmp_path, lambda: api.troubles.append(Trouble("GET", NAME, 503, times=99))).run()


def test_an_object_that_the_server_does_not_take(
    api: ApiServer, tmp_path: Path, store: DirectoryStore
) -> None:
    api.troubles.append(Trouble("POST", "/workflows", 403, "Forbidden", "exceeded quota"))
    with pytest.raises(PlatformError, match="part 002 cannot be run: exceeded quota"):
        shard(tmp_path).run()


@pytest.mark.parametrize(
    ("spec", "stopped"),
    [
        ({"shutdown": "Stop"}, True),
        ({"shutdown": "Terminate"}, True),
        ({}, False),
    ],
)
def test_only_the_end_of_the_run_ends_the_part(
    api: ApiServer, tmp_path: Path, store: DirectoryStore, spec: dict[str, str], stopped: bool
) -> None:
    parent(api, **spec)
    interrupt = Interrupt()

    def told() -> None:
        interrupt.asked = True

    with pytest.raises(Again, match="told to end"):
        shard(tmp_path, told, interrupt=interrupt).run()
    assert api.workflow(NAME)["spec"].get("shutdown") == ("Stop" if stopped else None)


def test_the_run_is_gone_and_so_shall_be_its_part(
    api: ApiServer, tmp_path: Path, store: DirectoryStore
) -> None:
    interrupt = Interrupt()

    def told() -> None:
        interrupt.asked = True

    with pytest.raises(Again):
        shard(tmp_path, told, interrupt=interrupt).run()
    assert api.workflow(NAME)["spec"]["shutdown"] == "Stop"


def test_told_to_end_while_nobody_answers(
    api: ApiServer, tmp_path: Path, store: DirectoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("argo_harbor.cluster.client.time.sleep", lambda _: None)
    interrupt = Interrupt()
    interrupt.asked = True
    api.troubles.append(Trouble("GET", "/workflows", 503, times=99))
    with pytest.raises(Again, match="told to end, and the API server does not answer"):
        shard(tmp_path, interrupt=interrupt).run()


def test_told_to_end_before_the_part_came_to_be(
    api: ApiServer, tmp_path: Path, store: DirectoryStore
) -> None:
    interrupt = Interrupt()
    interrupt.asked = True
    api.troubles.append(Trouble("POST", "/workflows", 403, "Forbidden"))
    with pytest.raises(Again, match="told to end"):
        shard(tmp_path, interrupt=interrupt).run()


@pytest.mark.parametrize(
    "content",
    [
        None,
        b"{",
        b"a: [",
        b"[]",
        b"kind: Workflow",
        to_yaml({**PART, "kind": "Pod"}).encode(),
        to_yaml({**PART, "metadata": {"annotations": {names.PLAN_LABEL: "cd" * 32}}}).encode(),
        to_yaml({**PART, "spec": {"templates": {}}}).encode(),
    ],
)
def test_a_store_without_that_part_of_that_plan(store: DirectoryStore, content: bytes | None) -> None:
    if content is not None:
        store.put(layout.plan_part(PLAN, 7), content)
    with pytest.raises(PlatformError) as error:
        read_part(PLAN, 7, store)
    assert error.value.code == "plan_unreadable"


def test_outside_of_a_pod_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--plan", PLAN, "--run", "run-1", "--part", "002", "--try", "0"]) == 1
    assert "error[platform_not_configured]" in capsys.readouterr().err
