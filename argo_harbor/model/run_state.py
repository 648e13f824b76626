"""`state.json`: how a run ended. Written by the merge after the bundle, read by whatever shows runs."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from argo_harbor.model.base import Model
from argo_harbor.model.bundle import CoverageCounts
from argo_harbor.model.states import ResultState, RunPhase, TaskPhase


class RunState(Model):
    """The end of a run; a repeated merge may replace it when late records came in."""

    schema_version: Literal["state-1"] = "state-1"
    run: str
    plan: str
    """Plan digest, 64 hex."""
    phase: RunPhase
    result_state: ResultState
    counts: dict[TaskPhase, int] = Field(default_factory=dict)
    """Tasks by phase."""
    coverage: CoverageCounts | None = None
    """Null when the merge itself failed."""
    message: str = ""
    """Why the merge failed."""
