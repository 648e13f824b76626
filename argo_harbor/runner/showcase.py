"""What people see of a try without asking the store: lines of the pod's log, a small folder in Argo's UI."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from argo_harbor.model.record import TrialRecord
from argo_harbor.runner.evidence import blot
from argo_harbor.runner.harbor_process import LOG_FILE
from argo_harbor.runner.job import TRIALS
from argo_harbor.store import layout

MAX_BYTES = 1 << 20
"""Of the whole folder."""
TAIL = 96 << 10
"""Bytes of the end of one log."""
_LOGS = ("trial.log", "agent/*.txt", "agent/*.log", "verifier/test-stdout.txt", "verifier/*.txt")
_SHOWN_HOSTS = 5


def lines(record: TrialRecord) -> Iterator[str]:
    """How the try ended, for people."""
    for phase, hosts in record.refused.items():
        named = ", ".join(f"{each.host} ({each.count})" for each in hosts[:_SHOWN_HOSTS])
        more = f" and {len(hosts) - _SHOWN_HOSTS} more" if len(hosts) > _SHOWN_HOSTS else ""
        yield f"refused in {phase}: {named}{more}"
    yield f"{record.outcome.value}{_why(record)}"
    own = record.overhead_seconds
    if own:
        listed = ", ".join(f"{name.replace('_', ' ')} {seconds:.2f} s" for name, seconds in own.items())
        yield f"own time: {listed}; {sum(own.values()):.2f} s in all"


def show(record: TrialRecord, work: Path, folder: Path, secrets: Iterable[str]) -> None:
    """Write the record and the ends of the logs to a new folder, at most `MAX_BYTES`. Raises OSError."""
    folder.mkdir(exist_ok=True)
    text = record.canonical()
    left = MAX_BYTES - len(text)
    if left < 0:
        return
    (folder / layout.TRIAL).write_bytes(text)
    hidden = tuple(secrets)
    for path in _logs(work):
        if path.stat().st_size == 0 or path.is_symlink():
            continue
        with path.open("rb") as source:
            source.seek(max(0, path.stat().st_size - TAIL))
            end = blot(source.read(TAIL), hidden)
        left -= len(end)
        if left < 0:
            return
        (folder / f"{path.parent.name}-{path.name}"[-120:]).write_bytes(end)


def _why(record: TrialRecord) -> str:
    if record.rewards is not None:
        listed = ", ".join(f"{key}={value:g}" for key, value in sorted(record.rewards.items())[:_SHOWN_HOSTS])
        return f": {listed}" + (f" (after {record.error.code})" if record.error else "")
    return f": {record.error.code}: {record.error.message.splitlines()[0][:300]}" if record.error else ""


def _logs(work: Path) -> list[Path]:
    found = [path for pattern in _LOGS for path in sorted((work / TRIALS).glob(f"*/{pattern}"))]
    return list(dict.fromkeys(path for path in (*found, work / LOG_FILE) if path.is_file()))
