"""Looking at runs in a cluster, ending them, and finishing what nothing drives any more."""

from __future__ import annotations

import pytest

from argo_harbor.bundle.merge import merge
from argo_harbor.engines.base import LogSource
from argo_harbor.errors import Conflict, PlatformError, UsageError
from argo_harbor.model.base import canonical_json
from argo_harbor.model.states import ResultState, RunPhase, TaskPhase
from argo_harbor.store import layout
from tests.engines.argo_bench import CORE, WORKFLOWS, ArgoBench
from tests.support.api_server import Trouble


def test_a_run_that_was_just_submitted(argo: ArgoBench) -> None:
    planned = argo.plan()
    run_id, _ = argo.submit(planned)
    survey = argo.engine.survey(run_id)
    run = survey.run
    assert (run.phase, run.result_state, run.engine, run.base) == (
        RunPhase.ACCEPTED,
        ResultState.PENDING,
        "argo",
        "image",
    )
    assert run.user == "somebody"
    assert run.submitted_at == argo.api.workflow(run_id)["metadata"]["creationTimestamp"]
    assert run.plan_digest == planned.digest
    assert argo.engine.newest() == run_id
    argo.says(run_id, "Running")
    assert [listed.phase for listed in argo.engine.list_runs()] == [RunPhase.ACCEPTED]
    assert argo.engine.place == "context double, namespace argo-harbor"


def test_a_plainly_submitted_workflow_is_a_run_whatever_its_name(argo: ArgoBench) -> None:
    planned = argo.plan()
    run_id, _ = argo.submit(planned)
    plain = argo.api.workflow(run_id)
    argo.store.delete(layout.request(run_id))
    argo.forget(run_id)
    plain["metadata"] |= {"name": "suite-6pg5w", "labels": {"argo-harbor/plan": planned.digest[:16]}}
    argo.api.put(f"{WORKFLOWS}/suite-6pg5w", plain)
    argo.trials("suite-6pg5w", planned).add(0)
    argo.says("suite-6pg5w", "Running")
    found = argo.engine.survey("suite-6pg5w")
    assert found.run.phase is RunPhase.RUNNING
    assert [run.phase for run in argo.engine.list_runs()] == [RunPhase.RUNNING]
    assert found.results().tasks[0].result.summary.trial_count == 1
    assert [run.id for run in argo.engine.list_runs()] == ["suite-6pg5w"]
    merge("suite-6pg5w", argo.store, plan=planned.digest, engine="argo")
    argo.forget("suite-6pg5w")
    assert argo.engine.survey("suite-6pg5w").run.phase is RunPhase.COMPLETED
    (listed,) = argo.engine.list_runs()
    assert (listed.id, listed.phase, listed.user) == ("suite-6pg5w", RunPhase.COMPLETED, "")
    with argo.engine.bundle("suite-6pg5w") as folder:
        assert (folder / "run.json").is_file()


def test_what_is_no_run(argo: ArgoBench) -> None:
    argo.api.put(f"{WORKFLOWS}/foreign", {"spec": {}})
    for name, words in (
        ("foreign", "no run of argo-harbor"),
        ("run-0000000000000000", "in context double, namespace argo-harbor"),
        ("../x", "no run '../x'"),
    ):
        with pytest.raises(UsageError, match=words) as unknown:
            argo.engine.survey(name)
        assert unknown.value.code == "unknown_run"
    assert argo.engine.newest() is None


@pytest.mark.parametrize(
    ("phase", "shutdown", "message", "expected"),
    [
        ("Running", "Terminate", "", RunPhase.CANCELLED),
        ("Failed", "Stop", "", RunPhase.CANCELLED),
        ("Failed", "", "Max duration limit exceeded: Step exceeded its deadline", RunPhase.EXPIRED),
        ("Error", "", "", RunPhase.FAILED),
    ],
)
def test_a_workflow_that_ended_without_a_merge(
    argo: ArgoBench, phase: str, shutdown: str, message: str, expected: RunPhase
) -> None:
    run_id, _ = argo.submit()
    argo.says(run_id, phase, shutdown=shutdown, message=message)
    run = argo.engine.survey(run_id).run
    assert (run.phase, run.result_state) == (expected, ResultState.FAILED)
    assert [listed.phase for listed in argo.engine.list_runs()] == [expected]
    assert argo.engine.list_runs(active=True) == []


def test_a_run_whose_workflow_is_gone_unmerged_is_cancelled(argo: ArgoBench) -> None:
    run_id, _ = argo.submit()
    argo.forget(run_id)
    assert argo.engine.survey(run_id).run.phase is RunPhase.CANCELLED
    (listed,) = argo.engine.list_runs()
    assert (listed.phase, listed.user) == (RunPhase.CANCELLED, "somebody")
    assert not argo.engine.cancel(run_id)


def test_nothing_started_in_the_time_to_wait(argo: ArgoBench) -> None:
    run_id, _ = argo.submit()
    argo.api.workflow(run_id)["metadata"]["creationTimestamp"] = "2001-01-02T03:04:05Z"
    argo.says(run_id, "Running")
    run = argo.engine.survey(run_id).run
    assert (run.phase, run.result_state) == (RunPhase.EXPIRED, ResultState.NONE)
    argo.trials(run_id, argo.plan()).start(0)
    assert argo.engine.survey(run_id).run.phase is RunPhase.RUNNING


def test_lists_of_ones_own_and_of_active_runs(argo: ArgoBench) -> None:
    mine, _ = argo.submit()
    done, _ = argo.submit()
    argo.says(done, "Succeeded")
    merge(done, argo.store, plan=argo.plan().digest, engine="argo")
    argo.api.user = "another"
    del argo.engine
    theirs, _ = argo.submit()
    gone, _ = argo.submit()
    argo.forget(gone)
    assert {run.id for run in argo.engine.list_runs()} == {mine, done, theirs, gone}
    assert {run.id for run in argo.engine.list_runs(mine=True)} == {theirs, gone}
    assert {run.id for run in argo.engine.list_runs(active=True)} == {mine, theirs}
    assert {run.id for run in argo.engine.list_runs(mine=True, active=True)} == {theirs}


def test_runs_of_the_store_that_cannot_be_read_are_left_out(argo: ArgoBench) -> None:
    argo.store.put(layout.request("run-1"), b"no json")
    argo.store.put(layout.request("run-2"), canonical_json({"plan_digest": "0" * 64}))
    assert argo.engine.list_runs() == []


def test_cancel_stops_the_workflow_and_leaves_a_mark(argo: ArgoBench) -> None:
    run_id, _ = argo.submit()
    argo.says(run_id, "Running")
    assert argo.engine.cancel(run_id)
    assert argo.api.workflow(run_id)["spec"]["shutdown"] == "Stop"
    (mark,) = argo.store.list(layout.cancel_marks(run_id))
    assert b'"user":"somebody"' in argo.store.get(mark.key)
    argo.says(run_id, "Failed", shutdown="Stop")
    assert not argo.engine.cancel(run_id)


def test_a_run_that_goes_on_is_not_merged_from_outside(argo: ArgoBench) -> None:
    run_id, _ = argo.submit()
    argo.says(run_id, "Running")
    with pytest.raises(Conflict) as active:
        argo.engine.merge(run_id)
    assert (active.value.code, active.value.exit_status) == ("run_active", 4)


@pytest.mark.parametrize("gone", [False, True])
def test_a_terminated_run_is_merged_as_cancelled(argo: ArgoBench, gone: bool) -> None:
    planned = argo.plan(attempts=2)
    run_id, _ = argo.submit(planned)
    trials = argo.trials(run_id, planned)
    trials.add(0, 0, rewards={"reward": 1.0})
    argo.says(run_id, "Failed", shutdown="Terminate")
    if gone:
        argo.forget(run_id)
    argo.engine.merge(run_id)
    survey = argo.engine.survey(run_id)
    assert (survey.run.phase, survey.run.result_state) == (RunPhase.CANCELLED, ResultState.READY)
    assert survey.run.bundle_dir == argo.engine.bundle_ref(run_id)
    coverage = survey.results().result.coverage
    assert (coverage.scored, coverage.missing) == (1, 1)
    first = argo.store.get(layout.bundle(run_id, "trials.jsonl"))
    argo.engine.merge(run_id)
    assert argo.store.get(layout.bundle(run_id, "trials.jsonl")) == first


def test_tasks_say_what_they_wait_for(argo: ArgoBench) -> None:
    run_id, _ = argo.submit()
    trial = {
        "type": "Pod",
        "templateName": "trial-x",
        "inputs": {"parameters": [{"name": "index", "value": "0"}]},
    }
    nodes = {f"{run_id}-1": {**trial, "phase": "Pending", "message": "Unschedulable: Insufficient cpu"}}
    argo.says(run_id, "Running", nodes=nodes)
    (task,) = argo.engine.survey(run_id).tasks().tasks
    assert (task.phase, task.detail) == (TaskPhase.IMAGE_READY, "pending: Unschedulable: Insufficient cpu")
    nodes[f"{run_id}-1"]["phase"] = "Running"
    labels = {"argo-harbor/run": run_id, "argo-harbor/task-index": "0", "argo-harbor/attempt": "0"}
    annotations = {"workflows.argoproj.io/node-id": f"{run_id}-1"}
    pod = {"metadata": {"labels": labels, "annotations": annotations}, "status": {"phase": "Running"}}
    argo.api.put(f"{CORE}/pods/p", pod)
    assert argo.engine.survey(run_id).tasks().tasks[0].detail == "running"
    argo.api.logs["p"] = "  0m 00.4s  setup begins\n  0m 03.1s  agent begins\n  0m 03.2s  evil begins\n"
    assert argo.engine.survey(run_id).tasks().tasks[0].detail == "agent"


def test_logs_of_pods(argo: ArgoBench) -> None:
    run_id, _ = argo.submit()
    kinds = {"t": "trial-x", "b": "build", "m": "merge"}
    nodes = {kind: {"type": "Pod", "templateName": template} for kind, template in kinds.items()}
    argo.says(run_id, "Running", nodes=nodes)
    for kind in kinds:
        labels = {"argo-harbor/run": run_id}
        labels |= {"argo-harbor/task-index": "0"} if kind != "m" else {}
        labels |= {"argo-harbor/attempt": "0"} if kind == "t" else {}
        metadata = {"labels": labels, "annotations": {"workflows.argoproj.io/node-id": kind}}
        argo.api.put(f"{CORE}/pods/{kind}", {"metadata": metadata, "status": {"phase": "Running"}})
        argo.api.logs[kind] = f"said by {kind}\n"

    def logs(source: LogSource, *, follow: bool = False) -> list[tuple[str, list[str]]]:
        found = argo.engine.live_logs(run_id, source, follow=follow)
        return [(log.title, list(log.lines)) for log in found]

    assert logs(LogSource("trial", 0)) == [("pod t", ["said by t"])]
    assert logs(LogSource("trial", 0), follow=True) == [("pod t", ["said by t"])]
    assert logs(LogSource("trial", 1)) == logs(LogSource("trial", 0, 1)) == []
    assert logs(LogSource("build", 0)) == logs(LogSource("build")) == [("pod b", ["said by b"])]
    assert logs(LogSource("merge")) == [("pod m", ["said by m"])]
    del argo.api.logs["m"]
    with pytest.raises(PlatformError, match="cannot be read"):
        logs(LogSource("merge"))
    argo.forget(run_id)
    assert logs(LogSource("merge")) == []


@pytest.mark.parametrize(
    ("status", "reason", "code"),
    [
        (403, "Forbidden", "platform_refused"),
        (500, "InternalError", "platform_unreachable"),
        (422, "Invalid", "platform_refused"),
    ],
)
def test_an_api_server_that_says_no(
    argo: ArgoBench, status: int, reason: str, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    run_id, _ = argo.submit()
    argo.api.troubles = [Trouble("GET", "/workflows", status, reason, times=10)]
    with pytest.raises(PlatformError) as error:
        argo.engine.survey(run_id)
    assert error.value.code == code
    with pytest.raises(PlatformError):
        argo.engine.list_runs()
