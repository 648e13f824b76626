"""The public Python functions: read, plan, compile, publish, submit, and look at results.

    from argo_harbor import RunSpec, load_taskset, plan, submit, results

    taskset = load_taskset("examples/hello-world")
    run = submit(plan(taskset, RunSpec.for_agent("oracle")), engine="local", store="./store")
    print(results(run, store="./store").result.coverage)

All raise HarborError. `argo_harbor` re-exports them without importing anything until one is used.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

from argo_harbor.bundle.read import read_trials
from argo_harbor.bundle.results import Survey, survey
from argo_harbor.engines import publish as publishing
from argo_harbor.engines.base import Engine, SubmitOptions
from argo_harbor.engines.events import Progress, silent
from argo_harbor.engines.local import LocalEngine
from argo_harbor.engines.place import EngineName, Place
from argo_harbor.engines.where import choose, store_root
from argo_harbor.errors import HarborError, PlatformError, UsageError
from argo_harbor.model.bundle import Trial
from argo_harbor.model.documents import ResultsDocument as RunResults
from argo_harbor.model.documents import RunDocument as RunStatus
from argo_harbor.model.plan import RunPlan
from argo_harbor.model.platform import BUILT_IN, Platform
from argo_harbor.model.profile import Profile
from argo_harbor.model.spec import RunSpec
from argo_harbor.model.taskset import Taskset
from argo_harbor.planning import plan as planning
from argo_harbor.planning.argo import argo_findings
from argo_harbor.settings.profiles import default_profile_name, load_profile
from argo_harbor.settings.site import Site
from argo_harbor.sources.read import load_taskset
from argo_harbor.store.base import Store
from argo_harbor.store.directory import DirectoryStore
from argo_harbor.workflow import compile as compiling

__all__ = [
    "HarborError",
    "RunPlan",
    "RunResults",
    "RunSpec",
    "RunStatus",
    "Site",
    "Taskset",
    "Trial",
    "compile_workflow",
    "load_taskset",
    "plan",
    "publish",
    "read_trials",
    "results",
    "site",
    "status",
    "submit",
]

Where = str | os.PathLike[str] | Store | None
"""A store: a folder as `--store` names it, a store itself, or None for the one in force."""


def plan(
    taskset: Taskset,
    spec: RunSpec,
    *,
    platform: Platform | None = None,
    profile: Profile | str | None = None,
    skip_refused: bool = False,
) -> RunPlan:
    """Decide everything about a run of the taskset's tasks, before anything runs.

    `platform` defaults to the built-in one. `profile` is a loaded profile or the name of one; without it the
    spec names it, else the platform. With `skip_refused` a task that cannot run stands in the plan with its
    reason, and the others run.

    Raises Refused with every finding, UsageError `no_tasks_selected`.
    """
    if not isinstance(profile, Profile):
        name = profile or spec.execution.sandbox.profile or default_profile_name(platform or BUILT_IN)
        # The built-in platform has no folder with profiles of a site.
        profile = load_profile(name, env={} if platform is None else None)
    return planning.plan(taskset, spec, platform=platform, profile=profile, skip_refused=skip_refused)


def compile_workflow(
    plan: RunPlan,
    *,
    kind: Literal["workflow", "workflowtemplate", "cronworkflow"] = "workflow",
    schedule: str | None = None,
) -> list[dict[str, Any]]:
    """The plan as Argo objects: one, or a parent followed by its parts where one would be too large.

    `schedule` is the cron line of a cronworkflow; without one it is suspended until somebody starts it.
    Raises Refused for what a workflow cannot run, with every finding, UsageError for a broken schedule.
    """
    return [dict(workflow) for workflow in compiling.compile_workflow(plan, kind=kind, schedule=schedule)]


def publish(plan: RunPlan, store: Where = None) -> None:
    """Bring the plan and the tasks it runs into a store; what is there already stays.

    Also the parts that the plan compiles to when it is too large for one Workflow.
    `plan` must come from `plan()`: one that was read back knows no task folders.
    Raises Refused, PlatformError.
    """
    # What no workflow can run, the local engine still may.
    compiled = [] if argo_findings(plan) else compiling.compile_workflow(plan)
    publishing.publish(plan, _taskset(plan), _store(store), workflows=compiled)


def submit(
    plan: RunPlan,
    *,
    engine: EngineName = "local",
    store: Where = None,
    options: SubmitOptions | None = None,
    progress: Progress = silent,
) -> str:
    """Run the plan and return the run's id.

    `local` returns when the run is merged; it handles SIGINT, so it must be called from the main thread.
    `argo` returns when the cluster of the current kube context has accepted the run; the plan must have been
    made with that cluster's settings (`site`), and `store` is the platform's unless one is given.

    Raises UsageError for an unknown engine, Refused, Conflict, PlatformError, RunInterrupted.
    """
    opened = _engine(engine, store)
    return opened.submit(plan, _taskset(plan), options=options, progress=progress)


def status(run: str, *, engine: EngineName | None = None, store: Where = None) -> RunStatus:
    """Where a run is. Raises UsageError `unknown_run`, PlatformError.

    Without an engine the store is looked at alone, by default that of this machine.
    """
    return _survey(run, engine, store).status()


def results(run: str, *, engine: EngineName | None = None, store: Where = None) -> RunResults:
    """Every task's trials and the scores; before the merge, what there is so far. Raises as `status`."""
    return _survey(run, engine, store).results()


def site(*, engine: EngineName | None = None) -> Site:
    """The settings in force: its `platform`, and `profile(name)`; of the cluster where an engine is chosen as
    the command line chooses it. Raises PlatformError, Refused for settings that are broken."""
    return choose(Place(engine=engine)).site


def _survey(run: str, engine: EngineName | None, where: Where) -> Survey:
    if engine is None:
        store = _store(where)
        return survey(run, store, engine="local" if isinstance(store, DirectoryStore) else "argo")
    return _engine(engine, where).survey(run)


def _engine(name: EngineName, where: Where) -> Engine:
    if name == "local":
        if isinstance(where, DirectoryStore):
            return LocalEngine(where, where.root.parent / "scratch")
        return LocalEngine.open(store_root(_path(where))[0])
    if name != "argo":
        raise UsageError("unknown_flag_value", f"there is no engine {name!r}", "engines: local, argo")
    chosen = choose(Place(engine=name))
    if where is None or chosen.cluster is None:
        return chosen.engine
    from argo_harbor.engines.argo import ArgoEngine

    return ArgoEngine(chosen.cluster, chosen.site, store=_store(where))


def _store(where: Where) -> Store:
    if where is None or isinstance(where, str | os.PathLike):
        return DirectoryStore(store_root(_path(where))[0] / "local")
    return where


def _path(where: Where) -> Path | None:
    if where is None:
        return None
    if isinstance(where, str | os.PathLike):
        return Path(where)
    raise PlatformError(
        "platform_not_configured",
        f"the local engine cannot run on {where.name}",
        "name a folder as its store",
    )


def _taskset(plan: RunPlan) -> Taskset:
    if plan.taskset is None:
        raise PlatformError(
            "plan_unreadable",
            "the plan does not know where its tasks lie",
            "plan the taskset again with plan()",
        )
    return plan.taskset
