"""Phase hooks on Harbor's trial: they apply the plan's network rules and take the times of phases.

Order: setup rules when the sandbox starts, agent rules at the agent's start, nothing at its end, verifier
rules before grading, nothing again before the next step. Rules for setup never come back. An exception in a
hook keeps the phase from starting, because Harbor awaits hooks before it.
"""

from __future__ import annotations

from harbor.trial.hooks import TrialEvent, TrialHookEvent
from harbor.trial.trial import Trial

from argo_harbor.runner.environment import SandboxEnvironment
from argo_harbor.runner.session import Session


def attach(trial: Trial, session: Session) -> None:
    """Subscribe the session to the trial's events."""
    steps = [step.name for step in session.part.steps]

    async def environment_start(_: TrialHookEvent) -> None:
        session.enter("sandbox")

    async def agent_start(event: TrialHookEvent) -> None:
        reached = len(event.result.step_results or ())
        session.step = steps[reached - 1] if steps and reached else ""
        await session.apply("agent")
        session.enter("agent")
        session.agent_ran = True

    async def agent_end(_: TrialHookEvent) -> None:
        session.enter("collect")
        await session.apply("deny")

    async def verification_start(_: TrialHookEvent) -> None:
        environment = trial.agent_environment
        if (
            session.part.kill_before_grading
            and isinstance(environment, SandboxEnvironment)
            and environment.running
        ):
            await environment.kill_leftovers()
        await session.apply("verifier")
        session.enter("verifier")

    async def end(_: TrialHookEvent) -> None:
        session.leave()

    trial.add_hook(TrialEvent.ENVIRONMENT_START, environment_start)
    trial.add_hook(TrialEvent.AGENT_START, agent_start)
    trial.add_hook(TrialEvent.AGENT_END, agent_end)
    trial.add_hook(TrialEvent.VERIFICATION_START, verification_start)
    trial.add_hook(TrialEvent.END, end)
