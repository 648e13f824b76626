"""What every engine can do with a plan: the command line and the Python functions know only this."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from argo_harbor.bundle.results import Survey
from argo_harbor.engines.build_images import Building, ImageLine
from argo_harbor.engines.events import Progress, silent
from argo_harbor.engines.place import EngineName
from argo_harbor.model.build_plan import BuildPlan
from argo_harbor.model.documents import RunInfo
from argo_harbor.model.plan import RunPlan
from argo_harbor.model.taskset import Taskset, Warned
from argo_harbor.store.base import Store


class RunInterrupted(Exception):
    """SIGINT ended the run's trials; nothing was merged. `runs merge` finishes the run."""

    def __init__(self, run_id: str) -> None:
        super().__init__(f"{run_id} was interrupted")
        self.run_id = run_id


@dataclass(frozen=True, slots=True)
class SubmitOptions:
    """What a submit may choose that is no part of the plan."""

    base: Literal["auto", "image", "preview"] = "auto"
    """Of the local engine only: sandboxes in a cluster are images."""
    allow_unfenced_network: bool = False
    """Let public tasks share the host's network under a profile that allows any host."""
    scratch: Path | None = None
    """Where sandboxes keep their files while they run; default: beside the store."""
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ), repr=False)
    """Where `host:` variables are read."""
    idempotency_key: str = ""
    """Submitting the same again under the same key gives the run that is there."""
    build_first: str = ""
    """The command that builds the images of a published taskset: a run of one is refused while any of them is
    not built, with this as the hint. Empty: the run builds what is missing."""
    request: Mapping[str, object] = field(default_factory=dict)
    """More fields for the run's `request.json`; never secrets."""


class LogSource(NamedTuple):
    """Which log of a run is wanted."""

    what: Literal["trial", "build", "merge"]
    task: int | None = None
    """Index of the task, for trials and builds."""
    attempt: int | None = None


class LiveLog(NamedTuple):
    """A log that still grows, or that only the engine has."""

    title: str
    lines: Iterator[str]
    """From the first; ends with the container that writes it."""


class Look(NamedTuple):
    """One thing that a dry run has looked at."""

    what: str
    state: Literal["ok", "warning", "failed", "unknown"]
    detail: str


class Engine(Protocol):
    """Runs plans somewhere and answers questions about runs.

    Every method that takes a run raises UsageError `unknown_run` for one that is not there, and PlatformError
    when store or cluster cannot be asked.
    """

    @property
    def name(self) -> EngineName: ...

    @property
    def store(self) -> Store: ...

    @property
    def place(self) -> str:
        """Where it runs things, for people: `context kind, namespace argo-harbor`; empty on this machine."""
        ...

    def check(self, plan: RunPlan, taskset: Taskset, *, options: SubmitOptions) -> list[Warned]:
        """Refuse what this engine cannot run, all findings at once, and return warnings. Changes nothing.

        Raises: Refused, PlatformError.
        """
        ...

    def dry_run(self, plan: RunPlan, taskset: Taskset, *, options: SubmitOptions) -> list[Look]:
        """Look at everything that a submit needs, beyond what `check` refuses. Changes nothing.

        Raises: Refused, PlatformError.
        """
        ...

    def look_at_images(self, plan: BuildPlan) -> list[ImageLine]:
        """Where the images of a plan are, without starting anything. Raises: PlatformError."""
        ...

    def build_images(
        self,
        plan: BuildPlan,
        taskset: Taskset,
        *,
        base: Literal["auto", "image", "preview"] = "auto",
        progress: Progress = silent,
    ) -> Building:
        """Build what is not ready of a published taskset's images, with failed ones tried again. The local
        engine returns when all have ended, the argo engine when the builds have been started.

        Raises: Refused, UsageError for a base that is not this engine's, PlatformError.
        """
        ...

    def submit(
        self,
        plan: RunPlan,
        taskset: Taskset,
        *,
        options: SubmitOptions | None = None,
        progress: Progress = silent,
    ) -> str:
        """Publish what is missing, start the run and return its id. The local engine returns when it is
        merged, the argo engine when the cluster has accepted it.

        Raises: Refused, Conflict `idempotency_conflict`, PlatformError, RunInterrupted.
        """
        ...

    def merge(self, run_id: str) -> None:
        """Finish a run: end it when nobody drives it any more, then merge what is there. Repeatable.

        Raises: Conflict `run_active` while something still drives it.
        """
        ...

    def cancel(self, run_id: str) -> bool:
        """End a run; what succeeded is kept and merged. False when it was over already."""
        ...

    def survey(self, run_id: str) -> Survey:
        """Everything that status, tasks and results show."""
        ...

    def list_runs(self, *, mine: bool = False, active: bool = False) -> list[RunInfo]:
        """Runs, the newest first; where asked, only the caller's own, only those that are not over."""
        ...

    def newest(self) -> str | None:
        """Id of the run that the caller submitted last; None without any."""
        ...

    def bundle_ref(self, run_id: str) -> str:
        """Folder or URL where the run's bundle lies, or will."""
        ...

    def bundle(self, run_id: str) -> AbstractContextManager[Path]:
        """The merged bundle as a folder, as long as the block lasts."""
        ...

    def live_logs(self, run_id: str, source: LogSource, *, follow: bool) -> Iterator[LiveLog]:
        """Logs that are not in the store (yet). None for an engine whose trials write nowhere else."""
        ...
