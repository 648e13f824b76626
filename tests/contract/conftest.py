"""Programs to test, and the namespaces that they run in. Needs root and a Linux with nftables."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.contract import outside
from tests.contract.daemons import EXECD_TOKEN, Egress, Program, execd
from tests.contract.namespaces import Namespace, connect, namespaces
from tests.contract.sdk import Execd
from tests.support import gotools, standins

PUBLISHED = {"execd": "ARGO_HARBOR_EXECD", "egress": "ARGO_HARBOR_EGRESS"}


def _kinds(name: str) -> list[str]:
    return ["stand-in", "published"] if os.environ.get(PUBLISHED[name]) else ["stand-in"]


@pytest.fixture(scope="session")
def _machine() -> None:
    """Skips where namespaces cannot be had; in continuous integration that is a failure."""
    missing = [name for name in ("ip", "nft", "setpriv", "unshare") if shutil.which(name) is None]
    if os.geteuid() != 0:
        _cannot("network namespaces need root")
    if missing:
        _cannot(f"not on PATH: {', '.join(missing)} (Debian: iproute2, nftables, util-linux)")


@pytest.fixture(scope="session")
def built(_machine: None) -> standins.Standins:
    try:
        return standins.build(say=print)
    except gotools.ToolUnavailable as reason:
        _cannot(str(reason))
        raise


@pytest.fixture(scope="session", params=_kinds("execd"))
def execd_program(request: pytest.FixtureRequest, built: standins.Standins) -> Program:
    return _program(request.param, "execd", built.execd)


@pytest.fixture(scope="session", params=_kinds("egress"))
def egress_program(request: pytest.FixtureRequest, built: standins.Standins) -> Program:
    return _program(request.param, "egress", built.egress)


@pytest.fixture(scope="session")
def own_execd(built: standins.Standins) -> Program:
    """The stand-in alone, for what only it promises."""
    return Program(built.execd, ours=True)


@pytest.fixture
def own_egress(built: standins.Standins) -> Program:
    return Program(built.egress, ours=True)


@pytest.fixture(scope="module")
def sandbox(execd_program: Program, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Execd]:
    """A client of an execd that all tests of a module share."""
    folder = tmp_path_factory.mktemp("sandbox")
    # Commands run as other users too.
    for each in (folder, *folder.parents[:2]):
        each.chmod(0o755)
    with namespaces("sandbox") as (place,), place.entered(), execd(execd_program, place, folder):
        yield Execd(EXECD_TOKEN)


@pytest.fixture
def _networks(_machine: None) -> Iterator[list[Namespace]]:
    with namespaces("pod", "outside") as made:
        connect(*made, also=outside.ADDRESSES)
        with made[0].entered():
            yield made


@pytest.fixture
def pod(_networks: list[Namespace]) -> Namespace:
    """An empty pod's network, which the test is in; everything else is one hop away."""
    return _networks[0]


@pytest.fixture
def world(_networks: list[Namespace]) -> Namespace:
    """The network around the pod."""
    return _networks[1]


@pytest.fixture
def asked(world: Namespace, tmp_path: Path) -> Iterator[Path]:
    """Hosts that answer outside the pod, and the file of the names that their resolver was asked for."""
    log = tmp_path / "asked"
    log.touch()
    command = [sys.executable, "-m", "tests.contract.outside", json.dumps(outside.RECORDS), str(log)]
    process = world.start([*command, *outside.ADDRESSES], stdout=subprocess.PIPE, cwd=gotools.REPOSITORY)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield log
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def start_egress(pod: Namespace, asked: Path, tmp_path: Path) -> Iterator[Callable[..., Egress]]:
    """A function that starts an egress in the pod with settings, by their names without the prefix."""
    started: list[Egress] = []

    def start(program: Program, *, wait: bool = True, **env: str) -> Egress:
        running = Egress(program, pod, env, tmp_path / "egress.log")
        started.append(running)
        if wait:
            running.wait()
        return running

    yield start
    for each in started:
        each.process.kill()
        each.process.wait()


@pytest.fixture
def egress(start_egress: Callable[..., Egress], egress_program: Program) -> Egress:
    """An egress that denies everything."""
    return start_egress(egress_program)


def _program(kind: str, name: str, ours: Path) -> Program:
    if kind == "stand-in":
        return Program(ours, ours=True)
    return Program(Path(os.environ[PUBLISHED[name]]).resolve(), ours=False)


def _cannot(reason: str) -> None:
    if os.environ.get("CI") == "true":
        pytest.fail(f"contract tests cannot run: {reason}", pytrace=False)
    pytest.skip(f"contract tests cannot run: {reason}")
