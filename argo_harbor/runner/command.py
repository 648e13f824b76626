"""The runner's command line: `python -m argo_harbor.runner trial | agent | verify …`."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from argo_harbor.workflow.names import POD_UID_ENV

Mode = Literal["trial", "agent", "verify"]
"""The whole trial, or only its agent's or its verifier's half."""


@dataclass(frozen=True, slots=True)
class Command:
    """Which try to run, and where."""

    mode: Mode
    plan: str
    run: str
    index: int
    attempt: int
    try_: int
    uid: str
    """Of the pod, or a random one."""
    settings: Path | None
    """None in a pod, which finds out everything by itself."""
    deadline: float | None
    """Unix time in seconds at which the run's budget is spent."""
    grants: Path | None
    """JSON with the granted variables, `{"target": {…}, "verifier": {…}}`; usually `/dev/stdin`."""

    @property
    def work_name(self) -> str:
        """Name of the try's scratch folder, unique among those of the run."""
        suffix = "-verify" if self.mode == "verify" else ""
        return f"{self.index}-{self.attempt}-{self.try_}-{self.uid[:8]}{suffix}"


def parse(arguments: Sequence[str], environ: Mapping[str, str]) -> Command:
    """A pod's own uid comes from its environment. Raises SystemExit 2 for a wrong command line."""
    parser = argparse.ArgumentParser(prog="python -m argo_harbor.runner", description=__doc__)
    parser.add_argument("mode", choices=["trial", "agent", "verify"])
    parser.add_argument("--plan", required=True, help="digest of the plan, 64 hex")
    parser.add_argument("--run", required=True)
    parser.add_argument("--task", required=True, type=int, help="index of the task")
    parser.add_argument("--attempt", required=True, type=int)
    parser.add_argument("--try", required=True, type=int, dest="try_")
    parser.add_argument("--uid", default="", help="any unique hex name; in a pod, its uid without being told")
    parser.add_argument("--settings", type=Path, help="what an engine on this machine says; none in a pod")
    parser.add_argument("--deadline", type=float)
    parser.add_argument("--grants", type=Path)
    given = parser.parse_args(arguments)
    if given.settings is not None and not given.uid:
        parser.error("--settings needs --uid")
    return Command(
        mode=given.mode,
        plan=given.plan,
        run=given.run,
        index=given.task,
        attempt=given.attempt,
        try_=given.try_,
        uid=given.uid or environ.get(POD_UID_ENV, ""),
        settings=given.settings,
        deadline=given.deadline,
        grants=given.grants,
    )
