"""Publishing in processes of their own that are killed, and what must hold of a store whatever happened."""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

from argo_harbor.model.plan import PlanHead, TaskPlan
from argo_harbor.sources.fetch import fetch_task
from argo_harbor.sources.manifest import check_manifest
from argo_harbor.store import layout
from argo_harbor.store.base import Store

OK = 0
FAILED = 3
_CHANGES = frozenset({"open", "os.mkdir", "os.rename", "os.link", "os.chmod", "os.remove", "os.truncate"})


def in_child(action: Callable[[], object], *, started: Callable[[int], object] = lambda pid: None) -> int:
    """Run `action` in a copy of this process. Returns its exit status, negative for the signal that ended it.

    `started` is told the process's id. Temporary files that a killed one leaves are removed.
    """
    with tempfile.TemporaryDirectory() as scratch:

        def with_scratch() -> None:
            tempfile.tempdir = scratch
            action()

        child = _fork(with_scratch)
        started(child)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def at_once(actions: list[Callable[[], object]]) -> list[int]:
    """Run every action in a process of its own, all at the same time. Returns their exit statuses."""
    wait, go = os.pipe()

    def waiting(action: Callable[[], object]) -> None:
        os.close(go)
        os.read(wait, 1)  # ends for all of them when the parent closes its end
        action()

    children = [_fork(partial(waiting, action)) for action in actions]
    os.close(wait)
    os.close(go)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def _fork(action: Callable[[], object]) -> int:
    with warnings.catch_warnings():
        # The children touch nothing that another thread of the tests may hold.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child:
        return child
    status = FAILED
    try:
        action()
        status = OK
    except BaseException:
        traceback.print_exc()
    finally:
        # Nothing of the test's own ending belongs to this process.
        os._exit(status)


def killed_at(number: int, folder: Path, action: Callable[[], object]) -> bool:
    """Run `action` in a process that is killed just before its `number`-th change (from 0) of something below
    `folder`. False when it ended before."""
    seen = 0

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal seen
        if event not in _CHANGES or not str(arguments[0]).startswith(str(folder)):
            return
        if event == "open" and not int(str(arguments[2] or 0)) & (os.O_WRONLY | os.O_RDWR):
            return
        if seen == number:
            os.kill(os.getpid(), signal.SIGKILL)
        seen += 1

    def watched() -> None:
        sys.addaudithook(watch)
        action()

    status = in_child(watched)
    assert status in (OK, -signal.SIGKILL), status
    return status != OK


def check_store(store: Store, *, selected: frozenset[str] | None = None) -> None:
    """Every object is whole, and none points at what is missing or wrong.

    `selected` names the digests of the tasks that were published of every taskset; None stands for all.
    """
    entries = [entry.key for entry in store.list("")]
    archives = {key for key in entries if key.startswith(layout.task_archives())}
    with tempfile.TemporaryDirectory() as folder:
        for key in archives:
            digest = Path(key).name.removesuffix(".tar.gz")
            fetch_task(store, digest, Path(folder) / digest)
    for key in entries:
        if key in archives:
            continue
        data = store.get(key)
        if key.startswith(layout.tasksets()):
            manifest = check_manifest(key, data)
            assert manifest is not None, key
            for member in manifest.members:
                if selected is None or member.digest in selected:
                    assert layout.task_archive(member.digest) in archives, (key, member)
        elif key.endswith("/plan.json"):
            head = PlanHead.from_json(data)
            for entry in head.tasks:
                part = TaskPlan.from_json(store.get(layout.plan_task(key.split("/")[1], entry.index)))
                assert layout.task_archive(part.digest) in archives
            name, digest = head.taskset.ref.split("#")
            assert layout.taskset(name, digest) in entries
        elif key.startswith("plans/") and "/tasks/" in key:
            json.loads(data)
        else:
            raise AssertionError(f"what is {key}?")
