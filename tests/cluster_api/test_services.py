"""Services that keep a pod from starting, as the node tells it; real statuses, cut down."""

from __future__ import annotations

from typing import Any

import pytest

from argo_harbor.cluster.pods import Pod
from argo_harbor.cluster.services import failed_service
from argo_harbor.cluster.starts import Starts

BEGAN = "2026-11-30T01:00:00Z"
PROBE = {"periodSeconds": 2, "failureThreshold": 30}


def ended(code: int, *, at: str = BEGAN, message: str = "", reason: str = "Error") -> dict[str, Any]:
    return {
        "terminated": {
            "exitCode": code,
            "reason": reason,
            "startedAt": BEGAN,
            "finishedAt": at,
            "message": message,
        }
    }


def pod(status: dict[str, Any], *, once: bool = False, probe: dict[str, int] | None = None) -> Pod:
    container: dict[str, Any] = {"name": "service-db"}
    container |= {} if once else {"restartPolicy": "Always"}
    container |= {"startupProbe": probe} if probe else {}
    return Pod(
        {
            "metadata": {"name": "p", "uid": "u"},
            "spec": {"nodeName": "n", "initContainers": [{"name": "egress"}, container]},
            "status": {
                "phase": "Pending",
                "initContainerStatuses": [
                    {"name": "egress", "restartCount": 9, "lastState": ended(1)},
                    {"name": "service-db", "restartCount": 0, "started": False, **status},
                ],
            },
        }
    )


def said(waiting: Pod) -> str:
    cause = failed_service(waiting)
    assert cause is not None
    assert cause.code == "service_failed"
    return cause.message


def test_a_service_that_never_became_healthy_is_told_with_its_last_words() -> None:
    killed = ended(137, at="2026-11-30T01:00:59Z", message="cannot\nopen \x1b[31m/data")
    waiting = pod({"restartCount": 1, "state": {"running": {}}, "lastState": killed}, probe=PROBE)
    assert (
        said(waiting)
        == "service db did not become healthy within 58 s; its last words: cannot open [31m/data"
    )


def test_one_that_does_not_stay_up_has_some_restarts() -> None:
    crash = ended(1, message="no such file")
    few = pod({"restartCount": 4, "lastState": crash}, probe=PROBE)
    many = pod({"restartCount": 5, "lastState": crash}, probe=PROBE)
    assert failed_service(few) is None
    assert said(many).startswith("service db does not stay up: after 5 restarts it ended with exit code 1; ")


def test_the_reason_of_the_node_is_told() -> None:
    out = pod({"restartCount": 5, "lastState": ended(137, reason="OOMKilled")})
    assert said(out).endswith("it ended with exit code 137 (OOMKilled)")


def test_one_that_runs_once_has_to_succeed() -> None:
    assert said(pod({"state": ended(3)}, once=True)) == (
        "service db was to do its work and ended with exit code 3"
    )
    assert failed_service(pod({"state": ended(0, reason="Completed")}, once=True)) is None
    assert failed_service(pod({"state": {"running": {}}}, once=True)) is None


@pytest.mark.parametrize(
    "status",
    [
        {},
        {"state": {"running": {}}},
        {"state": ended(143)},
        {"restartCount": 9, "started": True, "lastState": ended(1)},
        {"restartCount": 1, "lastState": {"terminated": {"exitCode": 137, "startedAt": "?"}}},
    ],
)
def test_others_are_left_alone(status: dict[str, Any]) -> None:
    assert failed_service(pod(status, probe=PROBE)) is None


def test_a_pod_whose_service_fails_is_ended_soon() -> None:
    starts = Starts(start_seconds=900, logins=())
    waiting = pod({"restartCount": 5, "lastState": ended(1)})
    assert list(starts.hopeless([waiting], 0)) == []
    ((_, cause),) = starts.hopeless([waiting], 30)
    assert cause.code == "service_failed"
