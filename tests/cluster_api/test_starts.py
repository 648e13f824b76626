"""Which pods are ended before they start: those that wait in vain, and never one that only waits."""

from __future__ import annotations

from typing import Any

import pytest

from argo_harbor.cluster.connect import connect
from argo_harbor.cluster.pods import Pod
from argo_harbor.cluster.starts import VERDICT_ANNOTATION, Starts, end_pod, verdict_on
from argo_harbor.model.causes import Cause
from tests.support.api_server import ApiServer

REFUSED = 'failed to pull "r.example/x:1": authorization failed: no basic auth credentials'
ABSENT = "rpc error: code = NotFound desc = r.example/x:1: not found"
BUSY = "dial tcp 10.0.0.1:443: i/o timeout"


def pod(reason: str, message: str = "", *, uid: str = "u", node: str = "n") -> Pod:
    state = {"waiting": {"reason": reason, "message": message}}
    statuses = [{"name": "sandbox", "image": "r.example/x:1", "state": state}]
    return Pod(
        {
            "metadata": {"name": f"pod-{uid}", "uid": uid},
            "spec": {"nodeName": node},
            "status": {"phase": "Pending", "initContainerStatuses": statuses},
        }
    )


def ended(starts: Starts, *looks: tuple[float, Pod]) -> list[tuple[str, str]]:
    return [
        (each.name, cause.code) for now, waiting in looks for each, cause in starts.hopeless([waiting], now)
    ]


@pytest.mark.parametrize(
    ("waiting", "code"),
    [
        (pod("ErrImagePull", REFUSED), "registry_unauthorized"),
        (pod("ImagePullBackOff", f"Back-off pulling image: ErrImagePull: {ABSENT}"), "image_pull_failed"),
        (pod("InvalidImageName", "couldn't parse image name"), "image_pull_failed"),
        (pod("CreateContainerConfigError", 'secret "s" not found'), "not_started"),
    ],
)
def test_what_no_repetition_cures_ends_a_pod_soon(waiting: Pod, code: str) -> None:
    looks = ((0.0, waiting), (19.0, waiting), (21.0, waiting))
    assert ended(Starts(start_seconds=900, logins=["pull"]), *looks) == [("pod-u", code)]


def test_a_fault_that_goes_away_ends_nothing() -> None:
    starts = Starts(start_seconds=900, logins=())
    broken, fine = pod("ErrImagePull", ABSENT), pod("PodInitializing")
    assert ended(starts, (0, broken), (15, fine), (25, broken), (40, broken)) == []


@pytest.mark.parametrize(
    ("waiting", "said"),
    [
        (pod("ImagePullBackOff", BUSY), "the node did not get r.example/x:1: ImagePullBackOff: dial tcp"),
        (pod("PodInitializing"), "its pod did not start within 900 s: its node says no more than"),
        (pod("CreateContainerError", "no space"), "its pod did not start within 900 s: CreateContainerError"),
    ],
)
def test_everything_else_has_the_time_that_the_profile_gives_a_start(waiting: Pod, said: str) -> None:
    starts = Starts(start_seconds=900, logins=())
    assert list(starts.hopeless([waiting], 0)) == list(starts.hopeless([waiting], 899)) == []
    ((_, cause),) = starts.hopeless([waiting], 901)
    assert cause.message.startswith(said)


def test_a_pod_that_waits_for_a_node_is_left_alone() -> None:
    waiting = pod("ErrImagePull", ABSENT, node="")
    assert ended(Starts(start_seconds=900, logins=()), (0, waiting), (5000, waiting)) == []


def test_a_pod_that_is_ended_already_is_not_ended_again() -> None:
    starts = Starts(start_seconds=900, logins=())
    waiting = pod("ErrImagePull", ABSENT)
    waiting.data["metadata"]["annotations"] = {VERDICT_ANNOTATION: '{"code": "c", "message": "m"}'}
    assert ended(starts, (0, waiting), (30, waiting), (1000, waiting)) == []


def test_the_secrets_that_were_shown_are_named() -> None:
    starts = Starts(start_seconds=900, logins=["pull-a", "pull-b"])
    waiting = pod("ErrImagePull", REFUSED)
    list(starts.hopeless([waiting], 0))
    ((_, cause),) = starts.hopeless([waiting], 30)
    assert cause.message.startswith(
        "r.example refuses a pull of r.example/x:1 with the login of Secret pull-a, pull-b: ErrImagePull: "
    )


def test_a_digest_with_the_numbers_of_a_refusal_is_none() -> None:
    (error,) = pod("ErrImagePull", f"r.example/x@sha256:{'4031' * 16}: not found").pull_errors()
    assert error.lasting
    assert not error.unauthorized


def test_the_verdict_stands_on_the_pod_that_is_ended_for_it(api: ApiServer) -> None:
    path = "/api/v1/namespaces/argo-harbor/pods/pod-u"
    waiting = pod("ErrImagePull", ABSENT)
    api.put(path, waiting.data)
    cause = Cause("image_pull_failed", "there is none")
    end_pod(connect(namespace="argo-harbor"), waiting, cause)
    assert api.objects[path]["spec"]["activeDeadlineSeconds"] == 1
    assert verdict_on(Pod(api.objects[path])) == cause


@pytest.mark.parametrize("text", [None, "", "no JSON", "[1]", "3"])
def test_other_pods_have_none(text: Any) -> None:
    annotations = {} if text is None else {VERDICT_ANNOTATION: text}
    assert verdict_on(Pod({"metadata": {"annotations": annotations}})) is None
