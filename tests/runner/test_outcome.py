"""The table of outcomes: what happens, what it is called, and whether there is a further try."""

from __future__ import annotations

import pytest

from argo_harbor.model.record import FINAL_ERRORS, RejectedReward
from argo_harbor.model.states import Outcome
from argo_harbor.runner.outcome import Facts, Failure, Graded, Phase, Verdict, is_final, judge
from argo_harbor.runner.rewards import Reading

ONE = Graded(reading=Reading({"reward": 1.0}))
NONE = Graded(reading=Reading(None, "reward_missing", "nothing"))
INVALID = Graded(reading=Reading(None, "reward_invalid", "nan"))


def failure(kind: str, phase: Phase, cause: str = "") -> Failure:
    return Failure(kind, f"{kind} happened", phase, cause)


def code_of(verdict: Verdict) -> str:
    return verdict.error.code if verdict.error else ""


@pytest.mark.parametrize(
    ("facts", "outcome", "code", "retryable"),
    [
        (Facts(gradings=(ONE,)), "scored", "", None),
        (
            Facts(gradings=(ONE,), failure=failure("AgentTimeoutError", "agent")),
            "scored",
            "agent_timeout",
            False,
        ),
        (
            Facts(gradings=(ONE,), failure=failure("NonZeroAgentExitCodeError", "agent")),
            "scored",
            "agent_exit_nonzero",
            True,
        ),
        (
            Facts(gradings=(ONE,), failure=failure("ApiRateLimitError", "agent")),
            "scored",
            "agent_crashed",
            True,
        ),
        (Facts(gradings=(NONE,)), "unscored", "reward_missing", False),
        (
            Facts(gradings=(Graded(reading=Reading(None, "reward_invalid")),)),
            "unscored",
            "reward_invalid",
            False,
        ),
        (
            Facts(gradings=(ONE,), tampered="reward.txt came back"),
            "unscored",
            "reward_tampered",
            False,
        ),
        (
            Facts(gradings=(Graded(reading=Reading({"a": 1.0, "b": 1.0})),)),
            "unscored",
            "reward_key_missing",
            False,
        ),
        (
            Facts(gradings=(Graded(failure=failure("VerifierTimeoutError", "verifier")),)),
            "errored",
            "verifier_timeout",
            False,
        ),
        (
            Facts(gradings=(Graded(failure=failure("AddTestsDirError", "verifier")),)),
            "errored",
            "verifier_crashed",
            True,
        ),
        (
            Facts(gradings=(Graded(failure=failure("AddTestsDirError", "verifier", "SandboxDied")),)),
            "infrastructure",
            "sandbox_failed",
            True,
        ),
        (Facts(failure=failure("AgentSetupTimeoutError", "setup")), "errored", "agent_setup_failed", True),
        (Facts(failure=failure("RuntimeError", "setup")), "errored", "agent_setup_failed", True),
        (Facts(failure=failure("RuntimeError", "collect")), "errored", "agent_crashed", True),
        (Facts(failure=failure("AgentTimeoutError", "agent")), "errored", "agent_timeout", False),
        (
            Facts(failure=failure("NonZeroAgentExitCodeError", "agent")),
            "errored",
            "agent_exit_nonzero",
            True,
        ),
        (Facts(failure=failure("AuthenticationError", "agent")), "errored", "agent_auth_failed", False),
        (Facts(failure=failure("ModelNotFoundError", "agent")), "errored", "model_unknown", False),
        (Facts(failure=failure("HealthcheckError", "sandbox")), "errored", "healthcheck_failed", True),
        (Facts(failure=failure("SandboxStartFailed", "sandbox")), "infrastructure", "sandbox_failed", True),
        (Facts(failure=failure("RuntimeError", "sandbox")), "infrastructure", "sandbox_failed", True),
        (
            Facts(failure=failure("ImageBuildFailed", "sandbox")),
            "infrastructure",
            "image_build_failed",
            True,
        ),
        (Facts(failure=failure("SandboxDied", "agent")), "infrastructure", "sandbox_failed", True),
        (Facts(policy_mismatch="open"), "infrastructure", "policy_mismatch", True),
        (Facts(unusable="ValueError: no"), "errored", "task_unusable", False),
        (Facts(), "infrastructure", "internal", True),
        (Facts(stop="cancelled"), "cancelled", "cancelled", False),
        (Facts(stop="expired", gradings=(ONE,)), "expired", "expired", False),
        (Facts(stop="died", stop_detail="status -9"), "infrastructure", "internal", True),
        (Facts(stop="deadline", phase="agent"), "errored", "agent_timeout", False),
        (Facts(stop="deadline", phase="verifier"), "errored", "verifier_timeout", False),
        (Facts(stop="deadline", phase="setup"), "errored", "agent_setup_failed", True),
        (Facts(stop="deadline", phase="sandbox"), "infrastructure", "sandbox_failed", True),
    ],
)
def test_outcomes(facts: Facts, outcome: str, code: str, retryable: bool | None) -> None:
    verdict = judge(facts, "reward")
    assert (verdict.outcome.value, code_of(verdict)) == (outcome, code)
    if verdict.error is not None:
        assert verdict.error.retryable is retryable
        assert verdict.error.code in FINAL_ERRORS
        assert verdict.error.message
    assert (verdict.rewards is not None) or outcome != "scored"


def test_a_missing_reward_says_that_the_agent_had_failed_before() -> None:
    verdict = judge(Facts(gradings=(NONE,), failure=failure("AgentTimeoutError", "agent")), "reward")
    assert code_of(verdict) == "reward_missing"
    assert verdict.error is not None
    assert verdict.error.message == "nothing; before that, the agent did not end in its time"


def test_a_message_is_cut() -> None:
    verdict = judge(Facts(unusable="x" * 100_000), "reward")
    assert verdict.error is not None
    assert len(verdict.error.message) == 8000


def steps(*readings: Reading | None, failures: dict[int, Failure] | None = None) -> tuple[Graded, ...]:
    return tuple(
        Graded(f"step-{number}", reading, (failures or {}).get(number))
        for number, reading in enumerate(readings)
    )


def test_steps_are_averaged_by_key_and_absent_keys_count_as_nothing() -> None:
    facts = Facts(
        gradings=steps(Reading({"reward": 1.0, "speed": 1.0}), Reading({"reward": 0.5})), multi_step=True
    )
    verdict = judge(facts, "reward")
    assert verdict.rewards == {"reward": 0.75, "speed": 0.5}
    assert [step.rewards for step in verdict.steps] == [{"reward": 1.0, "speed": 1.0}, {"reward": 0.5}]


def test_the_last_step_alone_may_count() -> None:
    facts = Facts(
        gradings=steps(Reading({"reward": 1.0}), Reading({"reward": 0.25})),
        multi_step=True,
        final_step_only=True,
    )
    assert judge(facts, "reward").rewards == {"reward": 0.25}


def test_a_step_without_a_reward_leaves_the_whole_trial_unscored() -> None:
    rejected = (RejectedReward(key="x", reason="no"),)
    facts = Facts(
        gradings=steps(Reading({"reward": 1.0}, rejected=rejected), Reading(None, "reward_invalid", "nan")),
        multi_step=True,
    )
    verdict = judge(facts, "reward")
    assert (verdict.outcome, code_of(verdict)) == (Outcome.UNSCORED, "reward_invalid")
    assert verdict.error is not None
    assert verdict.error.message == "step step-1: nan"
    assert verdict.rejected == rejected
    assert [step.error.code if step.error else "" for step in verdict.steps] == ["", "reward_invalid"]


def test_a_failing_step_is_named_in_its_own_row() -> None:
    failures = {0: failure("AgentTimeoutError", "agent"), 1: failure("VerifierTimeoutError", "verifier")}
    facts = Facts(gradings=steps(Reading({"reward": 1.0}), None, failures=failures), multi_step=True)
    verdict = judge(facts, "reward")
    assert (verdict.outcome, code_of(verdict)) == (Outcome.ERRORED, "verifier_timeout")
    assert [step.error.code for step in verdict.steps if step.error] == ["agent_timeout", "verifier_timeout"]


def test_a_crashed_step_verifier() -> None:
    failures = {0: failure("AddTestsDirError", "verifier")}
    facts = Facts(gradings=steps(None, failures=failures), multi_step=True)
    verdict = judge(facts, "reward")
    assert [step.error.code for step in verdict.steps if step.error] == ["verifier_crashed"]
    assert code_of(verdict) == "verifier_crashed"


def test_a_step_that_only_lacks_a_reading_is_missing() -> None:
    failures = {0: failure("RewardFileNotFoundError", "verifier")}
    facts = Facts(gradings=steps(None, failures=failures), multi_step=True)
    assert code_of(judge(facts, "reward")) == "reward_missing"


INFRA, ERRORED, CANCELLED = Outcome.INFRASTRUCTURE, Outcome.ERRORED, Outcome.CANCELLED


@pytest.mark.parametrize(
    ("facts", "earlier", "final"),
    [
        (Facts(gradings=(ONE,)), (), True),
        (Facts(gradings=(NONE,)), (), True),
        (Facts(failure=failure("RuntimeError", "agent")), (), False),
        (Facts(failure=failure("RuntimeError", "agent")), (INFRA, CANCELLED), False),
        (Facts(failure=failure("RuntimeError", "agent")), (ERRORED,), True),
        (Facts(failure=failure("AgentTimeoutError", "agent")), (), True),
        (Facts(stop="died"), (), False),
        (Facts(stop="died"), (ERRORED,), False),
        (Facts(stop="died"), (INFRA,), True),
        (Facts(stop="cancelled"), (INFRA, ERRORED), False),
        (Facts(stop="expired"), (), False),
    ],
)
def test_budgets_of_retries_are_apart(facts: Facts, earlier: tuple[Outcome, ...], final: bool) -> None:
    verdict = judge(facts, "reward")
    assert is_final(verdict, earlier=earlier, max_retries=1, infra_retries=1) is final


def test_a_sandbox_that_came_back_empty_has_a_code_of_its_own() -> None:
    for facts in (
        Facts(failure=failure("SandboxRestarted", "agent")),
        Facts(gradings=(Graded(failure=failure("Odd", "verifier", "SandboxRestarted")),)),
    ):
        verdict = judge(facts, "reward")
        assert (verdict.outcome, code_of(verdict)) == (Outcome.INFRASTRUCTURE, "sandbox_restarted")
