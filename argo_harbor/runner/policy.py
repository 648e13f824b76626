"""Which network rules are in force in which phase.

The plan holds them by host name. What carries them out differs: on one machine a sandbox has no network
(or, when asked for, the host's) from its start to its end, so a phase is only noted; where rules can be
switched, `apply` switches them, reads them back and raises when they are not the planned ones.
"""

from __future__ import annotations

from typing import Protocol

from argo_harbor.model.plan import PhaseRules
from argo_harbor.model.record import AppliedPolicy

NOTHING = PhaseRules(mode="none")
"""The rules between phases and after the agent: deny all."""


class PolicyMismatch(Exception):
    """The rules in force are not the planned ones: the phase must not start."""


class PhasePolicy(Protocol):
    async def apply(self, phase: str, rules: PhaseRules) -> AppliedPolicy | None:
        """Bring the rules of a phase into force; None when nothing is worth recording.

        Raises: PolicyMismatch.
        """
        ...


class FixedPolicy:
    """A sandbox whose network never changes: `none` or `unfenced`."""

    def __init__(self, network: str, *, narrowed: bool) -> None:
        self._network = network
        self._narrowed = narrowed

    async def apply(self, phase: str, rules: PhaseRules) -> AppliedPolicy | None:
        """Note what is in force.

        Raises: PolicyMismatch when the plan opens hosts that this sandbox cannot fence, or closes what it
        has.
        """
        if phase == "deny":
            return None
        if self._network == "none" and rules.mode != "none":
            raise PolicyMismatch(f"the plan opens hosts in the {phase} phase, this sandbox has no network")
        if self._network == "unfenced" and rules.mode != "public":
            raise PolicyMismatch(f"the plan fences the {phase} phase, this sandbox has no fence")
        return AppliedPolicy(mode=self._network, digest=rules.content_digest(), narrowed=self._narrowed)
