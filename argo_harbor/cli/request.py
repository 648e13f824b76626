"""From flags to a taskset and a plan: what `compile` and `runs submit` have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from argo_harbor.cli import output
from argo_harbor.cli.options import NewSource, Request, Source
from argo_harbor.errors import UsageError

if TYPE_CHECKING:
    from argo_harbor.model.plan import RunPlan
    from argo_harbor.model.spec import RunSpec
    from argo_harbor.model.taskset import Taskset, Warned
    from argo_harbor.planning.report import Refusals
    from argo_harbor.settings.site import Site
    from argo_harbor.sources.source import TaskSource
    from argo_harbor.store.base import Store


@dataclass(frozen=True)
class Planned:
    """A plan with what it was made of."""

    plan: RunPlan
    taskset: Taskset
    spec: RunSpec
    site: Site

    @property
    def warnings(self) -> tuple[Warned, ...]:
        """Those of the tasks, and which of them were left out."""
        from argo_harbor.model.taskset import Warned

        left_out = (
            Warned(entry.skipped.code, f"left out: {entry.skipped.message}", task=entry.name)
            for entry in self.plan.head.tasks
            if entry.skipped is not None
        )
        return (*self.taskset.warnings, *left_out)


_FLAGS = {
    "--harbor-dir": "DIR",
    "--harbor-git": "URL@REF",
    "--harbor-hub": "ORG/NAME",
    "--taskset": "NAME#DIGEST",
}


def open_source(source: NewSource, store: Store | None = None) -> TaskSource:
    """The source that the flags name. `store` is where `--taskset` is looked up.

    Raises UsageError `no_source`, `two_sources`.
    """
    taskset = source.taskset if isinstance(source, Source) else None
    given = dict(zip(_FLAGS, (source.harbor_dir, source.harbor_git, source.harbor_hub, taskset), strict=True))
    named = [flag for flag, value in given.items() if value is not None]
    if len(named) > 1:
        raise UsageError("two_sources", f"{' and '.join(named)} exclude one another", "give one of them")
    if source.harbor_dir is not None:
        from argo_harbor.sources.directory import DirectorySource

        return DirectorySource(source.harbor_dir)
    if source.harbor_git is not None:
        from argo_harbor.sources.git.source import GitSource

        return GitSource(source.harbor_git, say=output.note)
    if source.harbor_hub is not None:
        from argo_harbor.sources.hub.source import HubSource

        return HubSource(source.harbor_hub, say=output.note)
    if taskset is not None and store is not None:
        from argo_harbor.sources.stored import StoredSource

        return StoredSource(taskset, store)
    *others, last = (
        f"{flag} {value}"
        for flag, value in _FLAGS.items()
        if flag != "--taskset" or isinstance(source, Source)
    )
    raise UsageError("no_source", "no tasks were named", f"name a suite with {', '.join(others)} or {last}")


def check_labels(request: Request, source: Source) -> None:
    """Raises UsageError `bad_usage` for a dataset that the results cannot be counted for."""
    if request.intake_dataset is not None and (source.taskset is None or request.experiment is None):
        raise UsageError(
            "bad_usage",
            "--intake-dataset needs --taskset and --experiment",
            "other sources bring the label of their dataset themselves",
        )


def accepted[Answer](
    request: Request, taskset: Taskset, site: Site, use: Callable[[Planned], Answer]
) -> tuple[Planned, Answer]:
    """Plan a run of the taskset as the flags say, under a site's settings, and put the plan to use, without
    the tasks that this refuses where the flags say so. Raises UsageError, Refused."""
    from argo_harbor.cli.refused import without_refused
    from argo_harbor.planning.plan import plan

    # Read once: the request file may be a pipe.
    spec = _with_builds(_published(read_request(request), request), request)
    profile = site.profile(spec.execution.sandbox.profile)

    def planned(refused: Refusals) -> Planned:
        made = plan(
            taskset,
            spec,
            platform=site.platform,
            profile=profile,
            skip_refused=request.skip_refused,
            refused=refused,
        )
        return Planned(made, taskset, spec, site)

    return without_refused(planned, use, skip=request.skip_refused)


def _published(spec: RunSpec, request: Request) -> RunSpec:
    """The spec with the labels that the flags give its results."""
    if request.experiment is None:
        return spec
    from argo_harbor.model.spec import Publication

    labels = Publication(experiment=request.experiment, intake_dataset=request.intake_dataset or "")
    return spec.model_copy(update={"publication": labels})


def _with_builds(spec: RunSpec, request: Request) -> RunSpec:
    """The request with what the flags give to builds, which comes after what the file says."""
    from argo_harbor.cli.build_inputs import build_inputs

    if not (request.build_args or request.build_secrets):
        return spec
    own, more = spec.execution.build, build_inputs(request.build_args or (), request.build_secrets or ())
    both = own.model_copy(
        update={"args": {**own.args, **more.args}, "secrets": {**own.secrets, **more.secrets}}
    )
    return spec.model_copy(update={"execution": spec.execution.model_copy(update={"build": both})})


def read_request(request: Request) -> RunSpec:
    """The spec of the request file, or the one that `--agent` and the sandbox flags stand for."""
    from argo_harbor.model.agents import agent_hint, find_agent
    from argo_harbor.settings.specfile import read_spec, spec_of_flags

    sandbox = {
        "--sandbox-profile": request.profile,
        "--cpus": request.cpus,
        "--memory-mb": request.memory_mb,
        "--storage-mb": request.storage_mb,
    }
    if request.spec_file is None:
        if request.agent is None:
            raise UsageError(
                "bad_usage", "no agent was named", "give --agent NAME (oracle, nop, …) or --spec-file FILE"
            )
        if find_agent(request.agent) is None:
            raise UsageError(
                "unknown_flag_value", f"there is no agent {request.agent!r}", agent_hint(request.agent)
            )
        return spec_of_flags(
            agent=request.agent,
            profile=request.profile,
            cpus=request.cpus,
            memory_mb=request.memory_mb,
            storage_mb=request.storage_mb,
            canary=request.canary,
            overrides=request.overrides or (),
        )
    clashing = [flag for flag, value in sandbox.items() if value is not None]
    if request.agent is not None:
        clashing.insert(0, "--agent")
    if clashing:
        raise UsageError(
            "bad_usage",
            f"--spec-file and {', '.join(clashing)} exclude one another",
            "set the value in the request file, or override it with -O KEY=VALUE",
        )
    extra = [*(request.overrides or ())]
    if request.canary is not None:
        extra.append(f"canary={request.canary}")
    return read_spec(request.spec_file, overrides=extra)
