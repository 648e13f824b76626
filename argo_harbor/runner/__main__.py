"""`python -m argo_harbor.runner`: what runs in pods, and one try for the engine of one machine.

Engines and workflows start it, people do not.
"""

from __future__ import annotations

import fcntl
import importlib
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pydantic import ValidationError

from argo_harbor.errors import HarborError, PlatformError
from argo_harbor.model.runner import RunnerSettings
from argo_harbor.runner.bench import Bench, bench
from argo_harbor.runner.command import Command, parse
from argo_harbor.runner.exits import run_command
from argo_harbor.runner.grading import run_grading
from argo_harbor.runner.grants import GrantedValues
from argo_harbor.runner.place import Granted, LocalPlace
from argo_harbor.runner.process import Interrupt, began, die_with_parent
from argo_harbor.runner.trial import run_trial
from argo_harbor.store.directory import DirectoryStore

OTHER_COMMANDS = ("build", "gate", "shard", "merge")
"""Commands of pods that run no trial; each has a module of its name with a `main`."""


def main(arguments: Sequence[str]) -> int:
    """The exit status: 0 when the attempt is decided, 75 to try again, else an error's own."""
    if arguments and arguments[0] in OTHER_COMMANDS:
        other: Callable[[Sequence[str]], int] = importlib.import_module(
            f"argo_harbor.runner.{arguments[0]}"
        ).main
        return other(arguments[1:])
    command = parse(arguments, os.environ)
    interrupt = Interrupt()
    interrupt.listen()
    if command.settings is None:
        return run_command(lambda: _run_in_pod(command, interrupt))
    try:
        settings = _read_settings(command.settings)
        if settings.owner:
            die_with_parent(signal.SIGTERM, settings.owner)
        place = LocalPlace(settings, _read_grants(command), command.deadline)
        with (
            _held(settings.lock),
            bench(command, DirectoryStore(Path(settings.store)), place, interrupt) as work,
        ):
            return _run(work)
    except HarborError as error:
        print(f"error[{error.code}]: {error.message}", file=sys.stderr)
        return error.exit_status


def _run_in_pod(command: Command, interrupt: Interrupt) -> int:
    from argo_harbor.runner.pod import read_pod
    from argo_harbor.runner.pod_place import PodPlace

    pod = read_pod()
    with bench(command, pod.store(), PodPlace(pod, began()), interrupt) as work:
        return _run(work)


def _run(work: Bench) -> int:
    return run_grading(work) if work.command.mode == "verify" else run_trial(work)


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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
