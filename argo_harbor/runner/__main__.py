"""`python -m argo_harbor.runner`: one try of one trial; engines start it, people do not."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pydantic import ValidationError

from argo_harbor.errors import HarborError, PlatformError
from argo_harbor.model.runner import RunnerSettings
from argo_harbor.runner.command import Command, parse
from argo_harbor.runner.grants import GrantedValues
from argo_harbor.runner.process import Interrupt, die_with_parent
from argo_harbor.runner.trial import Runner
from argo_harbor.store.directory import DirectoryStore


def main(arguments: Sequence[str]) -> int:
    """The exit status: 0 when the attempt is decided, 75 to try again, else an error's own."""
    command = parse(arguments)
    interrupt = Interrupt()
    interrupt.listen()
    try:
        settings = _read_settings(command.settings)
        if settings.owner:
            die_with_parent(signal.SIGTERM, settings.owner)
        target, verifier = _read_grants(command)
        with _held(settings.lock):
            store = DirectoryStore(Path(settings.store))
            return Runner(command, store, settings, target, verifier, interrupt).run()
    except HarborError as error:
        print(f"error[{error.code}]: {error.message}", file=sys.stderr)
        return error.exit_status


def _read_settings(path: Path) -> RunnerSettings:
    try:
        return RunnerSettings.from_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise PlatformError("plan_unreadable", f"{path} holds no settings of a runner") from error


def _read_grants(command: Command) -> tuple[GrantedValues, GrantedValues]:
    if command.grants is None:
        return GrantedValues(), GrantedValues()
    given = json.loads(command.grants.read_bytes())
    return GrantedValues(given["target"]), GrantedValues(given["verifier"])


@contextmanager
def _held(lock: str) -> Iterator[None]:
    """Share the run's lock while this process lives."""
    if not lock:
        yield
        return
    handle = os.open(lock, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_SH)
        yield
    finally:
        os.close(handle)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
