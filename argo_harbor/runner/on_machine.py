"""One try for an engine of this machine, which has written down what the runner must know."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import ValidationError

from argo_harbor.errors import HarborError, PlatformError
from argo_harbor.model.runner import RunnerSettings
from argo_harbor.runner.bench import Bench
from argo_harbor.runner.command import Command
from argo_harbor.runner.dispatch import run_try
from argo_harbor.runner.grants import GrantedValues
from argo_harbor.runner.harbor_process import harbor_process
from argo_harbor.runner.place import Granted, LocalPlace
from argo_harbor.runner.process import Interrupt, die_with_parent
from argo_harbor.store.directory import DirectoryStore


def run(command: Command, settings_file: Path, interrupt: Interrupt) -> int:
    """The exit status: that of the try, or an error's own."""
    try:
        settings = _read_settings(settings_file)
        if settings.owner:
            die_with_parent(signal.SIGTERM, settings.owner)
        place = LocalPlace(settings, _read_grants(command), command.deadline)
        store = DirectoryStore(Path(settings.store))
        with _held(settings.lock), harbor_process(place.scratch, command.work_name) as child:
            return run_try(Bench(command, store, place, interrupt, child))
    except HarborError as error:
        print(f"error[{error.code}]: {error.message}", file=sys.stderr)
        return error.exit_status


def _read_settings(path: Path) -> RunnerSettings:
    try:
        return RunnerSettings.from_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise PlatformError("plan_unreadable", f"{path} holds no settings of a runner") from error


def _read_grants(command: Command) -> Granted:
    if command.grants is None:
        return Granted(GrantedValues(), GrantedValues())
    given = json.loads(command.grants.read_bytes())
    return Granted(GrantedValues(given["target"]), GrantedValues(given["verifier"]))


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
