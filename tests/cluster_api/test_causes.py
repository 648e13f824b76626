"""Why attempts have no record, by what a Workflow, its pods and the events of the nodes say."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from argo_harbor.cluster.causes import UNKNOWN, ended_by, judge, read_causes
from argo_harbor.cluster.connect import connect
from argo_harbor.cluster.errors import Unreachable
from argo_harbor.cluster.pods import NODE_ID_ANNOTATION, Pod, PullError
from argo_harbor.cluster.pulls import cause_of, reported_pulls
from argo_harbor.cluster.starts import VERDICT_ANNOTATION
from argo_harbor.cluster.workflows import Workflow
from argo_harbor.model.causes import Cause, Causes
from argo_harbor.model.platform import Platform, SecretNames
from argo_harbor.model.states import RunPhase
from argo_harbor.workflow import names
from tests.support.api_server import ApiServer, Trouble
from tests.support.records import make_run

NAMESPACE = "/apis/argoproj.io/v1alpha1/namespaces/argo-harbor"
CORE = "/api/v1/namespaces/argo-harbor"
CREATED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
NOW = CREATED + timedelta(hours=1)
DENIED = (
    'Failed to pull image "r.example/team/env:1": failed to authorize: unexpected status: 401 Unauthorized'
)


def node(identity: str, **more: Any) -> dict[str, Any]:
    parameters = [{"name": key, "value": value} for key, value in more.pop("inputs", {}).items()]
    return {
        "id": f"run-1-{identity}",
        "name": more.pop("name", f"run-1.{identity}"),
        "displayName": more.pop("entry", identity),
        "type": more.pop("type", "Pod"),
        "inputs": {"parameters": parameters},
        **more,
    }


def trial(identity: str, index: int, attempt: int = 0, **more: Any) -> dict[str, Any]:
    inputs = {"index": str(index), "attempt": str(attempt)}
    return node(identity, templateName="trial", inputs=inputs, **more)


MAIN = {**node("main", type="DAG", name="run-1", phase="Failed"), "id": "run-1"}


def workflow(*nodes: dict[str, Any], spec: dict[str, Any] | None = None, **status: Any) -> Workflow:
    return Workflow(
        {
            "metadata": {"name": "run-1", "uid": "u", "creationTimestamp": "2026-01-02T03:04:05Z"},
            "spec": spec or {},
            "status": {"phase": "Running", "nodes": {each["id"]: each for each in nodes}, **status},
        }
    )


def pod(name: str, node_id: str, *, waiting: dict[str, str] | None = None) -> Pod:
    status = {
        "image": "r.example/team/env:1",
        "name": "sandbox",
        "state": {"waiting": waiting} if waiting else {},
    }
    return Pod(
        {
            "metadata": {"name": name, "annotations": {NODE_ID_ANNOTATION: node_id}},
            "status": {"phase": "Pending", "initContainerStatuses": [status]},
        }
    )


def judged(
    tmp_path: Path, *workflows: Workflow, pods: tuple[Pod, ...] = (), tasks: int = 3, **more: Any
) -> Causes:
    platform = Platform(secrets=SecretNames(image_pull=more.pop("image_pull", ())))
    head = make_run(tmp_path, tasks, platform=platform).head
    return judge(workflows, pods, more.pop("reported", {}), head, now=NOW)


def test_the_last_pod_of_an_attempt_says_how_it_ended(tmp_path: Path) -> None:
    found = judged(
        tmp_path,
        workflow(
            trial("a(1)", 0, phase="Failed", message="OOMKilled (exit code 137)", startedAt="2"),
            trial("a(0)", 0, phase="Error", message="pod deleted", startedAt="1"),
            trial("b", 1, phase="Succeeded"),
            trial("c", 2, phase="Pending", message="Unschedulable: 0/1 nodes are available"),
            node("d", phase="Failed"),
        ),
    )
    assert found.attempts == {
        (0, 0): Cause("not_started", "its pod ended early: OOMKilled (exit code 137)"),
        (1, 0): Cause("not_started", "its pod ended and left nothing in the store"),
        (2, 0): Cause("not_started", "its pod is pending: Unschedulable: 0/1 nodes are available"),
    }
    assert (found.ended_by, found.others, found.seconds) == (None, None, 3600.0)


def test_an_exit_code_is_told_once(tmp_path: Path) -> None:
    found = judged(tmp_path, workflow(trial("a", 0, phase="Failed", outputs={"exitCode": "1"})))
    assert found.of(0, 0) == Cause("not_started", "its pod ended early: failed (exit code 1)")


def test_an_image_that_the_registry_keeps_from_the_node(tmp_path: Path) -> None:
    waiting = {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}
    reported = {"run-1-trial-a": PullError("r.example/team/env:1", "ErrImagePull", "401 Unauthorized")}
    found = judged(
        tmp_path,
        workflow(trial("a", 0, phase="Pending")),
        pods=(pod("run-1-trial-a", "run-1-a", waiting=waiting),),
        reported=reported,
        image_pull=("pull", "other"),
    )
    code, message = found.of(0, 0) or ("", "")
    assert code == "registry_unauthorized"
    assert message.startswith(
        "r.example refuses a pull of r.example/team/env:1 with the login of Secret pull, other"
    )


def test_a_pod_that_is_gone_is_known_by_the_nodes_events(tmp_path: Path) -> None:
    error = PullError("r.example/team/env:1", "ErrImagePull", "not found")
    broken = trial("123", 0, phase="Failed", message="Pod was active on the node longer than the deadline")
    found = judged(tmp_path, workflow(broken), reported={"run-1-trial-123": error})
    assert found.of(0, 0) == Cause(
        "image_pull_failed", "the node did not get r.example/team/env:1: ErrImagePull: not found"
    )


def test_a_failed_pull_that_a_later_try_made_good_is_forgotten(tmp_path: Path) -> None:
    error = PullError("r.example/team/env:1", "ErrImagePull", "i/o timeout")
    found = judged(
        tmp_path,
        workflow(trial("123", 0, phase="Succeeded")),
        pods=(pod("run-1-trial-123", "run-1-123"),),
        reported={"run-1-trial-123": error},
    )
    assert found.of(0, 0) == Cause("not_started", "its pod ended and left nothing in the store")


def test_the_verdict_on_a_pod_that_was_ended_tells_why(tmp_path: Path) -> None:
    ended = pod("run-1-trial-123", "run-1-123")
    ended.data["metadata"]["annotations"][VERDICT_ANNOTATION] = '{"code": "not_started", "message": "no key"}'
    node_says = "Pod was active on the node longer than the specified deadline"
    found = judged(tmp_path, workflow(trial("123", 0, phase="Failed", message=node_says)), pods=(ended,))
    assert found.of(0, 0) == Cause("not_started", "no key")


def test_without_a_login_the_setting_is_named() -> None:
    error = PullError("???", "ErrImagePull", "403 Forbidden")
    assert cause_of(error, ()).message.startswith(
        "its registry refuses a pull of ??? without a login ([secrets] image_pull is empty)"
    )


def test_tasks_of_a_failed_build_in_the_graph_and_in_a_chunk(tmp_path: Path) -> None:
    chunk = {"name": "chunk-000", "dag": {"tasks": [{"name": "task-1"}, {"name": "task-2"}]}}
    found = judged(
        tmp_path,
        workflow(
            node(
                "build-a(0)",
                entry="build-a(0)",
                templateName=names.BUILD,
                phase="Failed",
                message="Error (exit code 1)",
                children=["run-1-x", "run-1-y"],
            ),
            node("x", type="Skipped", entry="task-0", phase="Omitted"),
            node("y", type="Skipped", entry="chunk-000", phase="Omitted"),
            spec={"templates": [chunk, {"name": "main", "dag": {}}]},
        ),
    )
    cause = Cause("image_build_failed", "build-a: Error (exit code 1)")
    assert found.tasks == {0: cause, 1: cause, 2: cause}


def test_chunks_of_a_workflow_template_are_known_too(tmp_path: Path) -> None:
    chunk = {"name": "chunk-000", "dag": {"tasks": [{"name": "task-2"}]}}
    omitted = node(
        "y", type="Skipped", entry="chunk-000", phase="Omitted", message="omitted: depends condition"
    )
    found = judged(tmp_path, workflow(omitted, storedWorkflowTemplateSpec={"templates": [chunk]}))
    assert found.tasks == {2: Cause("not_started", "its step was left out: omitted: depends condition")}


@pytest.mark.parametrize(
    ("template", "start"),
    [
        (names.NETWORK_BASE, "the run's network could not be fenced: forbidden"),
        (names.GATE, "the canary stopped the run: forbidden"),
        (names.SHARD, "a part of the run was not run to its end: forbidden"),
    ],
)
def test_a_step_that_all_others_wait_for(tmp_path: Path, template: str, start: str) -> None:
    found = judged(
        tmp_path, workflow(node("s", templateName=template, phase="Failed", message="forbidden"), MAIN)
    )
    assert found.others == Cause("not_started", start)


def test_attempts_without_a_step_are_told_apart_from_those_to_come(tmp_path: Path) -> None:
    assert judged(tmp_path / "a", workflow({**MAIN, "phase": "Running"})).others is None
    others = judged(tmp_path / "b", workflow(MAIN)).others
    assert others is not None
    assert others.code == "node_collision_possible"


def test_steps_that_only_argos_server_sees(tmp_path: Path) -> None:
    others = judged(tmp_path, workflow(MAIN, offloadNodeStatusVersion="fnv:1")).others
    assert others is not None
    assert "only its server sees them" in others.message


def test_parts_count_like_the_run_itself(tmp_path: Path) -> None:
    part = workflow(trial("p", 2, phase="Failed", message="Error (exit code 1)"))
    assert (2, 0) in judged(tmp_path, workflow(MAIN), part).attempts


@pytest.mark.parametrize("message", ["workflow shutdown with strategy:  Stop", "Error (exit code 143)"])
def test_a_stop_is_told_of_the_run_and_not_of_each_attempt(tmp_path: Path, message: str) -> None:
    code = {"exitCode": "143"} if "143" in message else {}
    found = judged(
        tmp_path,
        workflow(
            trial("a", 0, phase="Failed", message=message, outputs=code),
            trial("b", 1, phase="Running"),
            spec={"shutdown": "Stop"},
        ),
    )
    assert found.ended_by is RunPhase.CANCELLED
    assert found.attempts == {}


def test_a_build_that_a_stop_cut_off_did_not_fail(tmp_path: Path) -> None:
    message = "workflow shutdown with strategy:  Stop"
    cut = {"templateName": names.BUILD, "phase": "Failed", "message": message, "children": ["run-1-x"]}
    failed = {"templateName": names.BUILD, "phase": "Failed", "message": "Error", "children": ["run-1-y"]}
    found = judged(
        tmp_path,
        workflow(
            node("a(0)", entry="build-a(0)", **cut),
            node("b(0)", entry="build-b(0)", **failed),
            *(
                node(each, type="Skipped", entry=f"task-{number}", phase="Omitted")
                for number, each in enumerate("xyz")
            ),
            spec={"shutdown": "Stop"},
        ),
    )
    assert found.tasks == {1: Cause("image_build_failed", "build-b: Error")}


def test_the_deadline_of_the_workflow(tmp_path: Path) -> None:
    spec = {"activeDeadlineSeconds": 60}
    run = workflow(spec=spec, startedAt="2026-01-02T03:04:05Z")
    assert ended_by(run, CREATED + timedelta(seconds=59)) is None
    assert ended_by(run, CREATED + timedelta(seconds=60)) is RunPhase.EXPIRED
    assert judged(tmp_path, workflow(spec=spec, startedAt="never")).ended_by is None


def test_reading_it_all_from_an_api_server(api: ApiServer, tmp_path: Path) -> None:
    run = make_run(tmp_path, 2)
    data = workflow(trial("1", 0, phase="Failed"), MAIN).data
    data["metadata"].pop("uid")
    api.put(f"{NAMESPACE}/workflows/run-1", data)
    event = {
        "reason": "Failed",
        "message": DENIED,
        "involvedObject": {"kind": "Pod", "name": "run-1-trial-1"},
    }
    api.put(f"{CORE}/events/e1", event)
    api.put(
        f"{CORE}/events/e2",
        {"reason": "Failed", "message": "Error: failed to create", "involvedObject": None},
    )
    found = read_causes(connect(), "run-1", run.head)
    assert found.attempts[0, 0].code == "registry_unauthorized"
    assert reported_pulls(connect()).keys() == {"run-1-trial-1"}


def test_whoever_may_see_workflows_only_learns_what_they_know(api: ApiServer, tmp_path: Path) -> None:
    api.put(f"{NAMESPACE}/workflows/run-1", workflow(trial("1", 0, phase="Failed", message="lost")).data)
    api.troubles.append(Trouble("GET", "/pods", 403, "Forbidden"))
    found = read_causes(connect(), "run-1", make_run(tmp_path, 1).head)
    assert found.attempts == {(0, 0): Cause("not_started", "its pod ended early: lost")}


def test_a_workflow_that_is_gone(api: ApiServer, tmp_path: Path) -> None:
    assert read_causes(connect(), "run-1", make_run(tmp_path, 1).head) is UNKNOWN


def test_an_api_server_that_is_away(api: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("argo_harbor.cluster.client.time.sleep", lambda _: None)
    cluster = connect()
    api.troubles.append(Trouble("GET", "/workflows/run-1", 503, times=9))
    with pytest.raises(Unreachable):
        read_causes(cluster, "run-1", make_run(tmp_path, 1).head)
