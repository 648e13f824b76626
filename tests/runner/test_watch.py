"""The watch of a run: looks until the run is over, and outlives an API server that does not answer."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from argo_harbor.cluster.connect import connect
from argo_harbor.cluster.starts import PATIENCE, VERDICT_ANNOTATION, Starts
from argo_harbor.runner import watch as module
from argo_harbor.runner.watch import LOOK_SECONDS, main, watch
from argo_harbor.workflow import names
from tests.cluster_api.test_starts import ABSENT, pod
from tests.support.api_server import ApiServer, Trouble

NAMESPACE = "argo-harbor"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
WORKFLOWS = f"/apis/argoproj.io/v1alpha1/namespaces/{NAMESPACE}/workflows"


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look is as much later as it would be."""
    monkeypatch.setattr(module.time, "monotonic", itertools.count(0, LOOK_SECONDS).__next__)


def waiting(api: ApiServer, uid: str, run: str) -> str:
    path = f"{PODS}/pod-{uid}"
    api.put(path, pod("ErrImagePull", ABSENT, uid=uid).data)
    api.objects[path]["metadata"]["labels"] = {names.RUN_LABEL: run}
    return path


def over_after(api: ApiServer, looks: int) -> Callable[[float], None]:
    """The run ends behind that many looks."""
    left = iter(range(looks))

    def sleep(seconds: float) -> None:
        if next(left, None) is None:
            api.put(f"{WORKFLOWS}/run-1", {"metadata": {"labels": {names.COMPLETED_LABEL: "true"}}})

    return sleep


def test_a_hopeless_pod_of_the_run_is_ended_and_no_other(
    api: ApiServer, capsys: pytest.CaptureFixture[str]
) -> None:
    mine, other = waiting(api, "mine", "run-1"), waiting(api, "other", "run-2")
    looks = int(PATIENCE / LOOK_SECONDS) + 1
    starts = Starts(start_seconds=900, logins=())
    assert watch("run-1", connect(namespace=NAMESPACE), starts, sleep=over_after(api, looks)) == 0
    assert VERDICT_ANNOTATION in api.objects[mine]["metadata"]["annotations"]
    assert "annotations" not in api.objects[other]["metadata"]
    assert "ended pod-mine: image_pull_failed: the node did not get r.example/x:1" in capsys.readouterr().out


def test_a_server_that_refuses_for_a_while_is_asked_again(
    api: ApiServer, capsys: pytest.CaptureFixture[str]
) -> None:
    api.troubles.append(Trouble("GET", "workflows", 403, message="not now"))
    starts = Starts(start_seconds=900, logins=())
    assert watch("run-1", connect(namespace=NAMESPACE), starts, sleep=over_after(api, 1)) == 0
    assert "not looked: not now" in capsys.readouterr().out


def test_the_command_says_what_a_pod_may_take(api: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    api.put(f"{WORKFLOWS}/run-1", {"metadata": {"labels": {names.COMPLETED_LABEL: "true"}}})
    monkeypatch.setenv(names.NAMESPACE_ENV, NAMESPACE)
    monkeypatch.setattr(module, "connect_in_pod", lambda namespace: connect(namespace=namespace))
    assert main(["--run", "run-1", "--start-seconds", "900", "--login", "a"]) == 0
    with pytest.raises(SystemExit):
        main(["--run", "run-1"])
