"""Reads what a verifier left in its folder: the one decision about what counts as a reward.

Harbor reads the same files more generously (booleans are numbers to it), so the verifier of a trial asks this
module instead. The files come from a sandbox and may hold anything.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from argo_harbor.model.record import RejectedReward

REWARD_FILES = ("reward.json", "reward.txt")
"""The first that exists counts."""
MAX_BYTES = 1 << 20
"""A reward file is a number or a small object; anything larger is refused unread."""
MAX_KEY = 255
MAX_KEYS = 1000

Problem = Literal["", "reward_missing", "reward_invalid", "reward_tampered"]


class Reading(NamedTuple):
    """What the reward files of one grading say."""

    rewards: dict[str, float] | None
    """Usable rewards by key; None when there is none."""
    problem: Problem = ""
    detail: str = ""
    rejected: tuple[RejectedReward, ...] = ()
    """Entries of a reward.json that are no rewards."""


class Scored(NamedTuple):
    """Which reward of a reading scores the trial."""

    key: str
    problem: Literal["", "reward_invalid", "reward_key_missing"] = ""


def read_rewards(folder: Path, irregular: Collection[str] = ()) -> Reading:
    """Read the downloaded verifier folder.

    `irregular` names what the sandbox offered under it that was no regular file or folder. A reward path that
    is no regular file is tampering: no verifier writes one.
    """
    for name in REWARD_FILES:
        path = folder / name
        if name in irregular or path.is_symlink() or (path.exists() and not path.is_file()):
            return Reading(None, "reward_tampered", f"{name} is no regular file")
    for name in REWARD_FILES:
        path = folder / name
        if not path.exists():
            continue
        if path.stat().st_size > MAX_BYTES:
            return Reading(None, "reward_invalid", f"{name} is larger than {MAX_BYTES} bytes")
        try:
            text = path.read_bytes().decode()
        except UnicodeDecodeError:
            return Reading(None, "reward_invalid", f"{name} is not UTF-8")
        if not text.strip():
            return Reading(None, "reward_missing", f"{name} is empty")
        return _from_json(text) if name == "reward.json" else _from_text(text)
    return Reading(None, "reward_missing", "neither reward.json nor reward.txt was written")


def choose(reading: Reading, wanted: str) -> Scored:
    """The key that scores: the wanted one, else the only one there is."""
    rewards = reading.rewards or {}
    if wanted in rewards:
        return Scored(wanted)
    if any(entry.key == wanted for entry in reading.rejected):
        return Scored(wanted, "reward_invalid")
    if len(rewards) == 1 and not reading.rejected:
        return Scored(next(iter(rewards)))
    return Scored(wanted, "reward_key_missing")


def _from_text(text: str) -> Reading:
    try:
        value = float(text)
    except ValueError:
        return Reading(None, "reward_invalid", f"reward.txt holds {text.strip()[:80]!r}, which is no number")
    if not math.isfinite(value):
        return Reading(None, "reward_invalid", f"reward.txt holds {text.strip()[:80]!r}")
    return Reading({"reward": value})


def _from_json(text: str) -> Reading:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return Reading(None, "reward_invalid", "reward.json is not JSON")
    if not isinstance(data, dict):
        return Reading(None, "reward_invalid", "reward.json holds no object of numbers")
    if not data:
        return Reading(None, "reward_missing", "reward.json holds no reward")
    if len(data) > MAX_KEYS:
        return Reading(None, "reward_invalid", f"reward.json holds more than {MAX_KEYS} rewards")
    rewards, rejected = _sort_out(data)
    if not rewards:
        return Reading(None, "reward_invalid", f"{rejected[0].key!r}: {rejected[0].reason}", rejected)
    return Reading(rewards, rejected=rejected)


def _sort_out(data: Mapping[str, object]) -> tuple[dict[str, float], tuple[RejectedReward, ...]]:
    rewards: dict[str, float] = {}
    rejected: list[RejectedReward] = []
    for key, value in data.items():
        reason = _bad_key(key) or _bad_value(value)
        if reason:
            rejected.append(
                RejectedReward(key=key[:MAX_KEY].encode(errors="replace").decode(), reason=reason)
            )
        else:
            rewards[key] = float(value)  # type: ignore[arg-type]  # a finite number, as checked
    return rewards, tuple(rejected)


def _bad_key(key: str) -> str:
    if not key or len(key) > MAX_KEY:
        return f"a key has 1 to {MAX_KEY} characters"
    if not key.isprintable():
        return "the key holds control characters"
    stem, found, digits = key.rpartition(".pass@")
    if found and stem and digits.isdecimal():
        return "keys that end in .pass@N are computed, not written"
    return ""


def _bad_value(value: object) -> str:
    if isinstance(value, bool):
        return "a boolean is no number"
    if not isinstance(value, int | float):
        return f"{type(value).__name__} is no number"
    try:
        finite = math.isfinite(float(value))
    except OverflowError:
        finite = False
    return "" if finite else "the number is not finite"
