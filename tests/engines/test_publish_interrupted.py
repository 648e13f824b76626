"""Publishing that is killed, that meets a failing store, or that several people do at once.

Whatever happens, nothing in the store points at what is missing or wrong, and the same command finishes it.
"""

from __future__ import annotations

import itertools
import os
import random
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from argo_harbor.engines.publish import publish
from argo_harbor.errors import PlatformError, UsageError
from argo_harbor.model.plan import RunPlan
from argo_harbor.model.spec import RunSpec
from argo_harbor.model.taskset import Taskset
from argo_harbor.planning.plan import plan
from argo_harbor.sources.read import load_taskset
from argo_harbor.sources.stored import load_stored
from argo_harbor.store import layout, s3_client
from argo_harbor.store.base import Store
from argo_harbor.store.directory import DirectoryStore
from argo_harbor.store.s3 import S3Store
from tests.engines.argo_bench import install
from tests.support.faultproxy import Fault, FaultProxy, proxy
from tests.support.program import Program
from tests.support.publishing import OK, at_once, check_store, in_child, killed_at
from tests.support.s3server import S3Server
from tests.support.stores import open_s3
from tests.support.suites import make_suite
from tests.support.trees import fast_folder


class Suite(NamedTuple):
    taskset: Taskset
    plan: RunPlan

    def publish(self, store: Store) -> None:
        publish(self.plan, self.taskset, store)

    def check_finished(self, store: Store) -> None:
        """Publish once more: then everything is there and right."""
        self.publish(store)
        check_store(store)
        assert load_stored(self.taskset.ref, store) == self.taskset
        assert store.get(layout.plan_head(self.plan.digest)) == self.plan.head.canonical()


def make(folder: Path, tasks: int) -> Suite:
    taskset = load_taskset(make_suite(folder / "suite", tasks=tasks))
    return Suite(taskset, plan(taskset, RunSpec.for_agent("nop")))


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return make(tmp_path, tasks=2)


def test_a_publish_that_is_killed_at_any_change_of_the_folder(suite: Suite) -> None:
    with fast_folder() as folder:
        for number in itertools.count():
            store = DirectoryStore(folder / f"store-{number}")
            killed = killed_at(number, store.root, lambda store=store: suite.publish(store))
            check_store(store)
            assert all("unfinished" not in entry.key for entry in store.list(""))
            suite.check_finished(store)
            if not killed:
                break
    # Two archives, a manifest and the three files of a plan: each is made, renamed and more.
    assert number > 15


@pytest.fixture
def between(s3_server: S3Server) -> Iterator[FaultProxy]:
    with proxy((s3_server.host, s3_server.port)) as running:
        yield running


class Server(NamedTuple):
    """One server's objects, on the straight way and through the proxy."""

    direct: S3Store
    through: Callable[[], S3Store]


@pytest.fixture
def server(s3_server: S3Server, between: FaultProxy, tmp_path: Path) -> Server:
    root = f"publishing/{tmp_path.name}-{os.getpid()}"
    return Server(
        open_s3(s3_server, root=root),
        partial(open_s3, s3_server, endpoint=between.endpoint, root=root),
    )


def _empty(store: Store) -> None:
    for entry in list(store.list("")):
        store.delete(entry.key)


def _killed_at_request(number: int, kind: str, suite: Suite, server: Server, between: FaultProxy) -> bool:
    """Publish in a process that is killed at its `number`-th request, from 0: before the server gets it, or
    when the server has carried it out. False when it ended before."""
    seen = itertools.count()
    child: list[int] = []
    known = threading.Event()

    def kill(head: bytes) -> bool:
        if next(seen) != number:
            return False
        known.wait()
        os.kill(child[0], signal.SIGKILL)
        return True

    def started(pid: int) -> None:
        child.append(pid)
        known.set()

    between.faults[:] = [Fault(kind, kill)]
    status = in_child(lambda: suite.publish(server.through()), started=started)
    assert status in (OK, -signal.SIGKILL)
    return status != OK


@pytest.mark.services
@pytest.mark.parametrize("kind", ["drop", "lose-answer"], ids=["before", "after"])
def test_a_publish_that_is_killed_at_any_request(
    suite: Suite, server: Server, between: FaultProxy, kind: str
) -> None:
    for number in itertools.count():
        killed = _killed_at_request(number, kind, suite, server, between)
        check_store(server.direct)
        suite.check_finished(server.direct)
        _empty(server.direct)
        if not killed:
            break
    # Two looks for archives, their uploads, the manifest twice, the plan's folder and three files.
    assert number >= 10


LASTING = ("status:503", "status:403", "drop", "lose-answer", "cut-request", "flip-request", "etag")


@pytest.mark.services
@pytest.mark.parametrize("kind", LASTING)
@pytest.mark.parametrize("place", ["/tasks/", "/tasksets/", "/plan.json"])
def test_a_store_that_fails_ends_it_with_what_to_do_and_points_at_nothing(
    suite: Suite, server: Server, between: FaultProxy, kind: str, place: str
) -> None:
    fault = between.add(kind, "PUT", having=place, times=1000)
    with pytest.raises(PlatformError) as caught:
        suite.publish(server.through())
    assert caught.value.code == "store_write_failed"
    assert caught.value.hint
    assert caught.value.retryable
    # A refusal by somebody who knows us is final; everything else is tried again with patience.
    assert fault.hit >= (1 if kind == "status:403" else 4)
    check_store(server.direct)
    between.faults.clear()
    suite.check_finished(server.through())


@pytest.mark.services
@pytest.mark.parametrize(
    "kind", ["status:503", "status:429", "drop", "lose-answer", "cut-request", "flip-request"]
)
def test_a_store_that_fails_now_and_then_is_not_noticed(
    suite: Suite, server: Server, between: FaultProxy, kind: str
) -> None:
    for place in ("/tasks/", "/tasksets/", "/plans/"):
        between.add(kind, "PUT", having=place, times=2)
    if "request" not in kind:
        between.add(kind, "GET", times=2)
    suite.publish(server.through())
    assert all(fault.hit == fault.times for fault in between.faults)
    suite.check_finished(server.direct)


@pytest.mark.services
def test_a_store_that_does_not_answer_ends_it(
    suite: Suite, server: Server, between: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3_client, "READ_SECONDS", 0.2)
    between.add("slow", "PUT", having="/tasksets/", times=1000)
    with pytest.raises(PlatformError, match="does not answer"):
        suite.publish(server.through())
    between.release.set()
    suite.check_finished(server.direct)


def _reader(ref: str, store: Callable[[], Store], expected: Taskset) -> None:
    """Load the taskset as soon as it can be found: then it is whole."""
    limit = time.monotonic() + 60
    with tempfile.TemporaryDirectory() as folder:
        tempfile.tempdir = folder
        while time.monotonic() < limit:
            try:
                assert load_stored(ref, store()) == expected
            except UsageError:
                continue  # not published yet
            return
    raise AssertionError("it was never there")


@pytest.mark.parametrize("kind", ["directory", pytest.param("s3", marks=pytest.mark.services)])
def test_several_publish_the_same_at_once(request: pytest.FixtureRequest, tmp_path: Path, kind: str) -> None:
    suite = make(tmp_path, tasks=12)
    open_store: Callable[[], Store] = lambda: DirectoryStore(tmp_path / "store")  # noqa: E731
    if kind == "s3":
        open_store = partial(open_s3, request.getfixturevalue("s3_server"), root=f"at-once/{os.getpid()}")
    publisher = lambda: suite.publish(open_store())  # noqa: E731
    reader = partial(_reader, suite.taskset.ref, open_store, suite.taskset)
    assert at_once([publisher, publisher, publisher, reader]) == [OK] * 4
    check_store(open_store())
    suite.check_finished(open_store())


class _Place(NamedTuple):
    """Where the real program publishes, and the same store without it."""

    flags: tuple[str, ...]
    environment: dict[str, str]
    store: Store


@pytest.fixture(params=["local", pytest.param("argo", marks=pytest.mark.services)])
def where(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> _Place:
    if request.param == "local":
        return _Place(("--engine", "local"), {}, DirectoryStore(tmp_path / "store" / "local"))
    server: S3Server = request.getfixturevalue("s3_server")
    prefix = f"killed-{os.getpid()}"
    settings = f'bucket = "{server.bucket}"\nprefix = "{prefix}"'
    install(request.getfixturevalue("api"), platform=settings)
    environment = {
        "ARGO_HARBOR_STORE_ENDPOINT": server.endpoint,
        "ARGO_HARBOR_STORE_ACCESS_KEY": server.access_key,
        "ARGO_HARBOR_STORE_SECRET_KEY": server.secret_key,
    }
    return _Place(("--engine", "argo"), environment, open_s3(server, root=f"{prefix}/argo-harbor"))


@pytest.mark.e2e
def test_the_program_killed_at_random_points_leaves_nothing_wrong(where: _Place, tmp_path: Path) -> None:
    suite = make_suite(tmp_path / "suite", tasks=60)
    program = Program(tmp_path / "store", tmp_path)
    command = ("tasksets", "create", "--harbor-dir", suite, *where.flags)
    dice = random.Random(5)
    killed = 0
    # What a killed one leaves among the temporary files goes with the test.
    environment = {**where.environment, "TMPDIR": str(tmp_path)}
    for lines in (1, 20, 40, 59, 5, 61):
        process = program.start(*command, env=environment)
        # Some lines of its output, then a moment: a point in the middle of the uploads.
        assert process.stdout is not None
        for _ in range(lines):
            process.stdout.readline()
        time.sleep(dice.random() / 50)
        process.kill()
        process.communicate()
        killed += process.returncode == -signal.SIGKILL
        check_store(where.store)
        if lines == 59:
            _empty(where.store)
    assert killed >= 3
    done = program(*command, env=where.environment)
    assert done.status == 0, done.stderr
    assert load_stored(done.stdout.splitlines()[-1], where.store) == load_taskset(suite)
    again = program(*command, env=where.environment).stdout.splitlines()
    assert all(line.startswith("Unchanged") for line in again[:-1])
