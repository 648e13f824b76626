"""What every engine can do with a plan: the command line and the Python functions know only this."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from argo_harbor.engines.events import Progress, silent
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
    allow_unfenced_network: bool = False
    """Let public tasks share the host's network under a profile that allows any host."""
    scratch: Path | None = None
    """Where sandboxes keep their files while they run; default: beside the store."""
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    """Where `host:` variables are read."""
    request: Mapping[str, object] = field(default_factory=dict)
    """More fields for the run's `request.json`; never secrets."""


class Engine(Protocol):
    """Runs plans somewhere and answers questions about runs."""

    @property
    def name(self) -> Literal["local", "argo"]: ...

    @property
    def store(self) -> Store: ...

    def check(self, plan: RunPlan, taskset: Taskset, *, options: SubmitOptions) -> list[Warned]:
        """Refuse what this engine cannot run, all findings at once, and return warnings. Changes nothing.

        Raises: Refused, PlatformError.
        """
        ...

    def submit(
        self, plan: RunPlan, taskset: Taskset, *, options: SubmitOptions, progress: Progress = silent
    ) -> str:
        """Publish what is missing, run the plan and return the run's id.

        Raises: Refused, PlatformError, RunInterrupted.
        """
        ...

    def merge(self, run_id: str) -> None:
        """Finish a run: end it when nobody drives it any more, then merge what is there. Repeatable.

        Raises: UsageError `unknown_run`, PlatformError.
        """
        ...
