"""The public Python functions, used as a program of somebody else would."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import argo_harbor
from argo_harbor import HarborError, RunSpec, compile_workflow, load_taskset, plan, publish, results, status
from argo_harbor.engines.base import SubmitOptions
from argo_harbor.errors import PlatformError, Refused, UsageError
from argo_harbor.model.plan import RunPlan
from argo_harbor.model.platform import Platform
from argo_harbor.model.profile import Profile
from argo_harbor.model.spec import SandboxRequest
from argo_harbor.store import layout
from argo_harbor.store.directory import DirectoryStore
from tests.support.program import EXAMPLES

HELLO = EXAMPLES / "hello-world"


def hello_plan() -> RunPlan:
    return plan(load_taskset(HELLO), RunSpec.for_agent("oracle"))


def test_read_plan_and_compile() -> None:
    taskset = load_taskset(EXAMPLES / "mixed", tasks="reward-*")
    assert {task.short_name for task in taskset} >= {"reward-txt", "reward-json"}
    made = plan(taskset, RunSpec.for_agent("nop", attempts=2, max_concurrent=3))
    assert (made.head.n_attempts, made.head.limits.cap) == (2, 3)
    assert [workflow["kind"] for workflow in compile_workflow(made)] == ["Workflow"]
    assert compile_workflow(made, kind="workflowtemplate")[0]["kind"] == "WorkflowTemplate"
    [cron] = compile_workflow(made, kind="cronworkflow", schedule="0 3 * * 1")
    assert (cron["kind"], cron["spec"]["schedules"]) == ("CronWorkflow", ["0 3 * * 1"])
    assert compile_workflow(made, kind="cronworkflow")[0]["spec"]["suspend"] is True


def test_a_profile_is_named_by_the_spec_the_platform_or_the_caller() -> None:
    taskset = load_taskset(HELLO)
    oracle = RunSpec.for_agent("oracle")
    wide = RunSpec.for_agent("oracle", sandbox=SandboxRequest(profile="open-internet"))
    site = Platform(default_sandbox_profile="open-internet")
    assert plan(taskset, oracle).head.profile.name == "closed"
    assert plan(taskset, wide).head.profile.hosts == ("@public",)
    assert plan(taskset, oracle, platform=site).head.profile.name == "open-internet"
    assert plan(taskset, wide, profile="closed").head.profile.name == "closed"
    assert plan(taskset, wide, profile=Profile(name="mine")).head.profile.name == "mine"
    with pytest.raises(Refused) as caught:
        plan(taskset, oracle, profile="none")
    assert caught.value.code == "unknown_profile"


def test_names_that_there_are_not_are_usage_errors(tmp_path: Path) -> None:
    made = hello_plan()
    with pytest.raises(UsageError, match="'job' is no kind"):
        compile_workflow(made, kind="job")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="no engine 'slurm'"):
        argo_harbor.submit(made, engine="slurm", store=tmp_path)  # type: ignore[arg-type]
    for run in ("", "../x"):
        with pytest.raises(UsageError, match="no run"):
            status(run, store=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_every_error_is_a_harbor_error(tmp_path: Path) -> None:
    with pytest.raises(HarborError) as refused:
        load_taskset(tmp_path / "none")
    assert isinstance(refused.value, Refused)
    with pytest.raises(UsageError):
        status("run-0000000000000000", store=tmp_path)
    with pytest.raises(UsageError):
        results("run-0000000000000000", store=DirectoryStore(tmp_path / "local"))


def test_publishing_brings_plan_tasks_and_taskset(tmp_path: Path) -> None:
    made = hello_plan()
    for where in (tmp_path, DirectoryStore(tmp_path / "local")):
        publish(made, where)
    store = DirectoryStore(tmp_path / "local")
    (part,) = made.parts
    for key in (
        layout.plan_head(made.digest),
        layout.plan_task(made.digest, part.index),
        layout.task_archive(part.digest),
        layout.taskset(made.head.taskset.name, made.head.taskset.digest),
    ):
        assert store.exists(key)


def test_a_plan_that_was_read_back_does_not_know_its_tasks(tmp_path: Path) -> None:
    made = hello_plan()
    with pytest.raises(PlatformError) as caught:
        publish(RunPlan(made.head, made.parts), tmp_path)
    assert caught.value.code == "plan_unreadable"


def test_the_store_in_force_is_used_when_none_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARGO_HARBOR_STORE", str(tmp_path / "named"))
    publish(hello_plan())
    assert (tmp_path / "named/local/plans").is_dir()


@pytest.mark.sandbox
def test_submit_and_look_at_results(tmp_path: Path) -> None:
    options = SubmitOptions(base="preview")
    run = argo_harbor.submit(hello_plan(), engine="local", store=tmp_path, options=options)
    assert status(run, store=tmp_path).run.phase == "completed"
    found = results(run, store=tmp_path).result
    assert (found.coverage.total, found.coverage.scored) == (1, 1)
    assert found.bundle_ref is not None
    (trial,) = argo_harbor.read_trials(found.bundle_ref)
    assert trial.status == "completed"
    again = argo_harbor.submit(hello_plan(), store=DirectoryStore(tmp_path / "local"), options=options)
    assert again != run


def test_nothing_is_imported_before_it_is_used() -> None:
    program = "import sys, argo_harbor; print('pydantic' in sys.modules, argo_harbor.__version__)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", argo_harbor.__version__]


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = argo_harbor.nothing  # type: ignore[attr-defined]
