"""How the report shows an outcome: a colour's name, a sign that works without colour, and a word."""

from __future__ import annotations

from typing import NamedTuple

from argo_harbor import errors
from argo_harbor.bundle.facts import TrialFacts
from argo_harbor.model.record import FINAL_ERRORS
from argo_harbor.model.states import Outcome


class Kind(NamedTuple):
    name: str
    """Class in the style sheet."""
    sign: str
    label: str
    order: int
    """Best first."""


PASS = Kind("pass", "✓", "passed", 0)
PART = Kind("part", "◐", "other reward", 1)
ZERO = Kind("zero", "✗", "zero", 2)
UNSCORED = Kind("unscored", "?", "unscored", 3)
ERRORED = Kind("errored", "!", "errored", 4)
INFRA = Kind("infra", "▲", "infrastructure", 5)
MISSING = Kind("missing", "–", "missing", 6)
KINDS = (PASS, PART, ZERO, UNSCORED, ERRORED, INFRA, MISSING)

_UNSCORED = {Outcome.UNSCORED: UNSCORED, Outcome.INFRASTRUCTURE: INFRA}
_MISSING = {
    "not_started": "no try of it has started",
    "service_failed": "a container of its compose file kept its sandbox from starting",
    "trial_lost": "a try started and left no record that can be read",
}


def kind_of(trial: TrialFacts) -> Kind:
    if trial.reward is None:
        return _UNSCORED.get(trial.outcome, ERRORED)
    return PASS if trial.reward == 1.0 else ZERO if trial.reward == 0.0 else PART


def meaning(code: str) -> str:
    """What a code stands for; empty for one that is not ours."""
    if code in errors.CODES:
        return errors.CODES[code].codes[code]
    return FINAL_ERRORS.get(code) or _MISSING.get(code, "")
