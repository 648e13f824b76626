"""What was refused: events to the webhook, in the published shape, and lines of the log."""

from __future__ import annotations

import json
import queue
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from tests.contract.daemons import Egress, Program
from tests.contract.lookups import AAAA, ask
from tests.contract.namespaces import Namespace
from tests.contract.outside import ALLOWED, HTTPS, OTHER
from tests.contract.reach import reaches

pytestmark = pytest.mark.contract

Start = Callable[..., Egress]
Events = queue.Queue[dict[str, Any]]
PORT = 18082
WEBHOOK = f"http://127.0.0.1:{PORT}/denied/secret"


@pytest.fixture
def events(pod: Namespace) -> Iterator[Events]:
    """What arrives where the runner of the pod listens; the first delivery fails and must come again."""
    arrived: Events = queue.Queue()
    failures = iter([503])

    class Listener(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status = next(failures, 204)
            if status == 204:
                arrived.put({"path": self.path, "type": self.headers["Content-Type"], **json.loads(body)})
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Nobody reads it."""

    server = HTTPServer(("127.0.0.1", PORT), Listener)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield arrived
    server.shutdown()
    thread.join()
    server.server_close()


def hosts(events: Events) -> Counter[str]:
    found: Counter[str] = Counter()
    while not events.empty():
        found[events.get()["hostname"]] += 1
    return found


def test_refused_names(start_egress: Start, egress_program: Program, events: Events) -> None:
    start_egress(egress_program, DENY_WEBHOOK=WEBHOOK, SANDBOX_ID="trial-1")
    ask("Evil.Example")
    event = events.get(timeout=10)
    assert event.pop("path") == "/denied/secret"
    assert event.pop("type") == "application/json"
    told = datetime.strptime(event.pop("timestamp"), "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    assert abs((datetime.now(UTC) - told).total_seconds()) < 60
    assert event == {"hostname": "evil.example", "source": "opensandbox-egress", "sandboxId": "trial-1"}
    ask("evil.example", kind=AAAA)
    assert events.get(timeout=10)["hostname"] == "evil.example"


def test_allowed_names_are_no_news(start_egress: Start, egress_program: Program, events: Events) -> None:
    egress = start_egress(egress_program, DENY_WEBHOOK=WEBHOOK)
    egress.set("ok.example")
    ask("ok.example")
    ask("evil.example")
    assert events.get(timeout=10)["hostname"] == "evil.example"
    assert events.empty()


def test_change_of_policy_waits_for_the_reports(
    start_egress: Start, own_egress: Program, events: Events
) -> None:
    """So each refusal is counted for the phase whose rules refused."""
    egress = start_egress(own_egress, DENY_WEBHOOK=WEBHOOK)
    ask("first.example")
    events.get(timeout=10)
    for _ in range(3):
        ask("evil.example")
    reaches(OTHER)
    egress.set("ok.example")
    assert hosts(events) == {"evil.example": 3, OTHER: 1}


def test_refused_connections_are_counted_once_each(
    start_egress: Start, own_egress: Program, events: Events
) -> None:
    egress = start_egress(own_egress, DENY_WEBHOOK=WEBHOOK)
    ask("first.example")
    events.get(timeout=10)
    # The second one sends its first packet again after a second.
    reaches(OTHER, timeout=0.2)
    reaches(OTHER, timeout=1.5)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams, pytest.raises(PermissionError):
        datagrams.sendto(b"x", (ALLOWED, 4433))
    egress.ask("PUT", "")
    assert hosts(events) == {OTHER: 2, ALLOWED: 1}


def test_open_connection_that_is_cut_counts_as_refused(
    start_egress: Start, own_egress: Program, events: Events
) -> None:
    egress = start_egress(own_egress, DENY_WEBHOOK=WEBHOOK)
    ask("first.example")
    events.get(timeout=10)
    egress.set(ALLOWED)
    with socket.create_connection((ALLOWED, HTTPS), timeout=2) as connection:
        egress.set()
        connection.sendall(b"x")
        assert events.get(timeout=10)["hostname"] == ALLOWED


def test_log_tells_what_was_refused(start_egress: Start, own_egress: Program) -> None:
    egress = start_egress(own_egress)
    ask("evil.example")
    reaches(OTHER)
    egress.set()
    lines = [json.loads(line) for line in egress.log.read_text().splitlines()]
    refused = [line for line in lines if line["msg"] == "refused"]
    assert [(line.get("host"), line.get("qtype")) for line in refused if "host" in line] == [
        ("evil.example", "A")
    ]
    assert [(line["address"], line["port"], line["proto"]) for line in refused if "address" in line] == [
        (OTHER, HTTPS, "tcp")
    ]


def test_listener_that_is_gone_holds_nothing_up(start_egress: Start, own_egress: Program) -> None:
    egress = start_egress(own_egress, DENY_WEBHOOK=WEBHOOK)
    for number in range(300):
        ask(f"{number}.example")
    egress.set("ok.example")
    assert ask("ok.example").addresses == (ALLOWED,)
