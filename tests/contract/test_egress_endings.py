"""Rules that are in force before egress serves and after it has ended: the stand-in's promise."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.contract.daemons import Egress, Program
from tests.contract.lookups import ask
from tests.contract.outside import ALLOWED, HTTPS, OTHER
from tests.contract.reach import reaches, talks

pytestmark = pytest.mark.contract

Start = Callable[..., Egress]


def test_before_it_runs_everything_is_open(asked: Path) -> None:
    """What the other tests here would prove nothing without."""
    assert reaches(ALLOWED)
    assert reaches(OTHER)


def test_killed_it_leaves_the_pod_closed(start_egress: Start, egress_program: Program) -> None:
    egress = start_egress(egress_program)
    egress.set(ALLOWED)
    egress.process.kill()
    egress.process.wait()
    assert reaches(ALLOWED)
    assert not reaches(OTHER)
    with pytest.raises(OSError, match=r"refused|timed out"):
        ask("ok.example", timeout=1)


def test_asked_to_end_it_leaves_the_pod_closed(start_egress: Start, own_egress: Program) -> None:
    egress = start_egress(own_egress)
    egress.set(ALLOWED)
    egress.process.send_signal(signal.SIGTERM)
    assert egress.process.wait(timeout=10) == 0
    assert reaches(ALLOWED)
    assert not reaches(OTHER)


def test_restart_opens_nothing_in_between(start_egress: Start, own_egress: Program, tmp_path: Path) -> None:
    settings = {"POLICY_FILE": str(tmp_path / "policy.json"), "RULES": '{"defaultAction": "allow"}'}
    egress = start_egress(own_egress, **settings)
    egress.set(ALLOWED)
    with socket.create_connection((ALLOWED, HTTPS), timeout=2) as connection:
        egress.process.kill()
        egress.process.wait()
        assert talks(connection)
        start_egress(own_egress, **settings)
        assert talks(connection)
    assert not reaches(OTHER)


def test_start_that_fails_leaves_the_pod_closed(start_egress: Start, own_egress: Program) -> None:
    with socket.create_server(("127.0.0.1", 15353)):
        egress = start_egress(own_egress, wait=False)
        assert egress.process.wait(timeout=10) == 1
    assert not reaches(ALLOWED)
    assert "address already in use" in egress.log.read_text()


def test_it_does_not_serve_when_lookups_pass_it_by(
    start_egress: Start, own_egress: Program, tmp_path: Path
) -> None:
    """A program that looks like nft and changes nothing: the start-up test finds out."""
    fake = tmp_path / "bin" / "nft"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\nexec cat >/dev/null\n")
    fake.chmod(0o755)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PATH", str(fake.parent), prepend=":")
        egress = start_egress(own_egress, wait=False)
        assert egress.process.wait(timeout=10) == 1
    assert "not redirected" in egress.log.read_text()
