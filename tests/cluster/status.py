"""What of the cluster runs, and how to use it."""

from __future__ import annotations

from dataclasses import dataclass

from tests.cluster.cluster import Cluster
from tests.cluster.state import State
from tests.cluster.up import is_up, stopped


@dataclass(frozen=True)
class Status:
    """The cluster, and why it is not up; an empty reason means that it is."""

    cluster: Cluster
    reason: str

    @property
    def up(self) -> bool:
        return not self.reason

    def document(self) -> dict[str, object]:
        """For ``--json``."""
        return {"up": self.up, "reason": self.reason, **self.cluster.document()}


def status(state: State) -> Status:
    """Look at the cluster whose folder ``state`` is."""
    return Status(Cluster.of(state), "" if is_up(state) else _reason(state))


def _reason(state: State) -> str:
    if not state.exists:
        return "there is no cluster; `make cluster-up` starts one"
    missing = stopped(state)
    if missing:
        return f"not running: {', '.join(missing)}; logs are in {state.logs}, `make cluster-up` starts them"
    if not state.ready:
        return f"the start was not finished; logs are in {state.logs}, `make cluster-up` goes on"
    return f"the API server does not answer; logs are in {state.logs}"
