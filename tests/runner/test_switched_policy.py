"""Rules of a pod are in force, or the phase does not start."""

from __future__ import annotations

import asyncio

import pytest

from argo_harbor.model.plan import PhaseRules
from argo_harbor.model.record import AppliedPolicy
from argo_harbor.model.runner import PodSandboxSettings
from argo_harbor.runner.infrastructure import phase_policy
from argo_harbor.runner.policy import NOTHING, PolicyMismatch, SwitchedPolicy
from argo_harbor.runner.refusals import Refusals
from argo_harbor.sandbox.base import ExecResult, SandboxRestarted
from argo_harbor.sandbox.egress import EgressError, Policy

STORE = "10.96.4.2"
SETTINGS = PodSandboxSettings(
    execd_port=1,
    execd_token="",
    egress_port=2,
    egress_token_file="",
    refusals_port=3,
    denied=("10.0.0.0/8", "192.0.2.0/24"),
    hosts=("store.example",),
    addresses=(STORE,),
)
HOSTS = PhaseRules(mode="hosts", hosts=("pypi.example",))


class Egress:
    """Keeps what was set, and fails where a test says so."""

    def __init__(self, fails: str = "") -> None:
        self.set: list[Policy] = []
        self.asked = 0
        self._fails = fails

    async def must_refuse_strangers(self) -> None:
        self.asked += 1
        self._fail("strangers")

    async def replace(self, policy: Policy) -> None:
        self._fail("replace")
        self.set.append(policy)

    async def must_be(self, policy: Policy) -> None:
        assert self.set[-1] == policy
        self._fail("must_be")

    def _fail(self, step: str) -> None:
        if self._fails == step:
            raise EgressError(f"{step} failed")


class Box:
    """A sandbox that sees what it is told to see."""

    def __init__(self, seen: str = "closed closed open", *, restarted: bool = False) -> None:
        self.asked = 0
        self.looked = 0
        self._seen = seen
        self._restarted = restarted

    async def script(self, text: str) -> ExecResult:
        self.asked += 1
        return ExecResult(self._seen.replace(" ", "\n"), "", 0)

    async def same(self) -> None:
        self.looked += 1
        if self._restarted:
            raise SandboxRestarted("gone")


def a_policy(
    egress: Egress | None = None, box: Box | None = None, open_: tuple[str, ...] = (STORE,)
) -> tuple[SwitchedPolicy, Refusals]:
    refusals = Refusals()
    made = SwitchedPolicy(
        egress or Egress(),  # type: ignore[arg-type]
        SETTINGS,
        refusals,
        narrowed=True,
        sandbox=lambda: box,  # type: ignore[arg-type, return-value]
        leaves=lambda address: address in open_,
    )
    return made, refusals


def test_each_phase_is_switched_read_back_tried_and_noted() -> None:
    egress, box = Egress(), Box()
    policy, refusals = a_policy(egress, box)

    async def work() -> list[AppliedPolicy | None]:
        phases = (("setup", HOSTS), ("agent", NOTHING), ("deny", NOTHING), ("verifier", HOSTS))
        return [await policy.apply(phase, rules) for phase, rules in phases]

    setup, agent, deny, verifier = asyncio.run(work())
    whole = phase_policy(HOSTS, denied=SETTINGS.denied, hosts=SETTINGS.hosts, addresses=(STORE,))
    wanted = AppliedPolicy(mode="hosts", digest=whole.digest(), narrowed=True, planned=HOSTS.content_digest())
    assert (setup, verifier, deny) == (wanted, wanted, None)
    assert agent is not None
    assert (agent.mode, agent.planned) == ("none", NOTHING.content_digest())
    assert [each.default for each in egress.set] == ["deny"] * 4
    assert egress.set[1] == egress.set[2]
    assert egress.asked == 1
    # Before the agent the sandbox is asked, afterwards only whether it is the same.
    assert (box.asked, box.looked) == (2, 2)
    refusals.note("late.example")
    assert set(refusals.report()) == {"verifier"}


@pytest.mark.parametrize("step", ["strangers", "replace", "must_be"])
def test_an_egress_that_does_otherwise_keeps_the_phase_from_starting(step: str) -> None:
    policy, _ = a_policy(Egress(step))
    with pytest.raises(PolicyMismatch, match=f"agent: {step} failed"):
        asyncio.run(policy.apply("agent", NOTHING))


def test_a_probe_that_gets_through_or_does_not() -> None:
    policy, _ = a_policy(open_=(STORE, "192.88.99.1"))
    with pytest.raises(PolicyMismatch, match=r"192\.88\.99\.1 can be reached"):
        asyncio.run(policy.apply("agent", NOTHING))
    policy, _ = a_policy(open_=())
    with pytest.raises(PolicyMismatch, match="cannot be reached"):
        asyncio.run(policy.apply("agent", NOTHING))


def test_what_the_sandbox_sees_counts_until_the_agent_begins() -> None:
    policy, _ = a_policy(box=Box("open closed open"))
    with pytest.raises(PolicyMismatch, match="inside the sandbox"):
        asyncio.run(policy.apply("agent", NOTHING))
    policy, _ = a_policy(box=Box(""))
    assert asyncio.run(policy.apply("agent", NOTHING)) is not None


def test_a_sandbox_that_came_back_empty_is_found_at_the_next_switch() -> None:
    policy, _ = a_policy(box=Box(restarted=True))

    async def work() -> None:
        await policy.apply("agent", NOTHING)
        await policy.apply("deny", NOTHING)

    with pytest.raises(SandboxRestarted):
        asyncio.run(work())
