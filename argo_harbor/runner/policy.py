"""Which network rules are in force in which phase.

The plan holds them by host name. What carries them out differs: on one machine a sandbox has no network
(or, when asked for, the host's) from its start to its end, so a phase is only noted; where rules can be
switched, `apply` switches them, reads them back and raises when they are not the planned ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from argo_harbor.model.plan import PhaseRules
from argo_harbor.model.record import AppliedPolicy
from argo_harbor.model.runner import PodSandboxSettings
from argo_harbor.runner import probes
from argo_harbor.runner.infrastructure import phase_policy
from argo_harbor.runner.refusals import Refusals
from argo_harbor.sandbox.egress import EgressClient, EgressError
from argo_harbor.sandbox.execd import ExecdSandbox

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


class SwitchedPolicy:
    """The rules of a trial pod, which its egress container enforces."""

    def __init__(
        self,
        egress: EgressClient,
        settings: PodSandboxSettings,
        refusals: Refusals,
        *,
        narrowed: bool,
        sandbox: Callable[[], ExecdSandbox | None],
        leaves: Callable[[str], bool] = probes.leaves,
    ) -> None:
        """`sandbox` gives the sandbox once it has started; `leaves` tries whether a packet leaves the pod."""
        self._egress = egress
        self._settings = settings
        self._refusals = refusals
        self._narrowed = narrowed
        self._sandbox = sandbox
        self._leaves = leaves
        self._trusted = True
        """Whether the sandbox's own programs may still be believed: until the agent begins."""
        self._strangers_refused = False

    async def apply(self, phase: str, rules: PhaseRules) -> AppliedPolicy | None:
        """Switch, read back, and try what must fail and what must pass.

        Raises: PolicyMismatch; SandboxDied when the sandbox is not the one that was started.
        """
        policy = phase_policy(
            rules,
            denied=self._settings.denied,
            hosts=self._settings.hosts,
            addresses=self._settings.addresses,
        )
        try:
            if not self._strangers_refused:
                await self._egress.must_refuse_strangers()
                self._strangers_refused = True
            await self._egress.replace(policy)
            self._refusals.enter(phase)
            await self._egress.must_be(policy)
        except EgressError as error:
            raise PolicyMismatch(f"{phase}: {error}") from error
        closed = probes.must_fail(policy)
        opened = probes.must_pass(rules, self._settings.addresses)
        self._try(phase, closed, opened)
        await self._try_inside(phase, closed, opened)
        self._trusted = self._trusted and phase not in ("agent", "verifier")
        if phase == "deny":
            return None
        return AppliedPolicy(
            mode=rules.mode,
            digest=policy.digest(),
            narrowed=self._narrowed,
            planned=rules.content_digest(),
        )

    def _try(self, phase: str, closed: tuple[str, ...], opened: tuple[str, ...]) -> None:
        for address in closed:
            if self._leaves(address):
                raise PolicyMismatch(f"{phase}: {address} can be reached and must not")
        for address in opened:
            if not self._leaves(address):
                raise PolicyMismatch(f"{phase}: {address} cannot be reached and must")

    async def _try_inside(self, phase: str, closed: tuple[str, ...], opened: tuple[str, ...]) -> None:
        """The same from inside the sandbox, as long as nobody there has a reason to lie."""
        sandbox = self._sandbox()
        if sandbox is None:
            return
        if not self._trusted:
            await sandbox.same()
            return
        done = await sandbox.script(probes.probing((*closed, *opened)))
        seen = done.stdout.split()
        wanted = ["closed"] * len(closed) + ["open"] * len(opened)
        if seen and seen != wanted:
            raise PolicyMismatch(f"{phase}: inside the sandbox {', '.join(seen)} was found, not {wanted}")
