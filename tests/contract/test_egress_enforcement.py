"""What the pod reaches under a policy: by name, by address, over connections that are already open."""

from __future__ import annotations

import socket
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from argo_harbor.workflow.confinement import DROPPED_CAPABILITIES
from tests.contract import tcp
from tests.contract.daemons import EGRESS_TOKEN, Egress, Program
from tests.contract.lookups import AAAA, FORMAT_ERROR, NO_SUCH_NAME, OK, ask
from tests.contract.namespaces import Namespace
from tests.contract.outside import ALLOWED, ALLOWED6, DNS_OVER_TLS, HTTPS, OTHER, OTHER6, RESOLVER, THIRD
from tests.contract.reach import reaches, talks

pytestmark = pytest.mark.contract

Start = Callable[..., Egress]

MARKED = """
import socket, sys
with socket.socket() as s:
    s.settimeout(0.7)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_MARK if hasattr(socket, "SO_MARK") else 36, 1)
    s.connect((sys.argv[1], int(sys.argv[2])))
"""
"""Connects with the mark that egress puts on its own queries."""
RAW = "import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0x0300)"


def as_sandbox(pod: Namespace, *command: str, keep: str = "") -> subprocess.CompletedProcess[str]:
    """Run a program as root with the capabilities of a sandbox, and `keep`."""
    dropped = [f"-{each.lower()}" for each in DROPPED_CAPABILITIES if each != keep]
    return pod.run(["setpriv", "--bounding-set", ",".join(dropped), *command])


def test_everything_is_denied_at_first(egress: Egress, asked: Path) -> None:
    assert ask("ok.example").code == NO_SUCH_NAME
    assert ask("ok.example", tcp=True).code == NO_SUCH_NAME
    assert not reaches(ALLOWED)
    assert "ok.example" not in asked.read_text().split(), "the resolver heard of a denied name"


def test_allowed_name_opens_its_addresses_and_no_others(egress: Egress) -> None:
    egress.set("ok.example")
    assert not reaches(ALLOWED), "nothing is open before it was looked up"
    assert ask("ok.example") == (OK, (ALLOWED,))
    # At once: the address was open before the answer went out.
    assert reaches(ALLOWED)
    assert not reaches(OTHER)
    assert ask("other.example").code == NO_SUCH_NAME


def test_lookups_over_tcp_open_addresses_too(egress: Egress) -> None:
    egress.set("ok.example")
    assert ask("ok.example", tcp=True) == (OK, (ALLOWED,))
    assert reaches(ALLOWED)


def test_names_that_have_no_such_record(egress: Egress) -> None:
    egress.set("zone.example", "nothing.example")
    assert ask("zone.example", kind=AAAA) == (OK, ())
    assert ask("nothing.example") == (NO_SUCH_NAME, ())


def test_wildcard_and_apex(egress: Egress) -> None:
    egress.set("*.zone.example")
    assert ask("zone.example").code == NO_SUCH_NAME
    assert ask("notzone.example").code == NO_SUCH_NAME
    assert ask("a.zone.example") == (OK, (THIRD,))
    assert ask("B.A.Zone.Example") == (OK, (THIRD,))
    egress.set("zone.example")
    assert ask("zone.example").code == OK
    assert ask("a.zone.example").code == NO_SUCH_NAME


def test_of_names_the_first_rule_counts(egress: Egress) -> None:
    egress.set("*.zone.example", deny=("a.zone.example",))
    assert ask("a.zone.example").code == NO_SUCH_NAME
    assert ask("b.a.zone.example").code == OK


def test_addresses_and_ranges(egress: Egress) -> None:
    egress.set(ALLOWED, "198.18.0.0/15")
    assert reaches(ALLOWED)
    assert not reaches(OTHER)
    egress.set("203.0.113.0/29")
    assert reaches(ALLOWED)
    assert not reaches(OTHER)


def test_denied_addresses_stay_denied(egress: Egress) -> None:
    """Whatever the order, and whichever name leads there."""
    egress.set("203.0.113.0/24", "ok.example", deny=(f"{ALLOWED}/32",))
    assert ask("ok.example") == (OK, (ALLOWED,))
    assert not reaches(ALLOWED)
    assert reaches(OTHER)


def test_overlapping_ranges(egress: Egress) -> None:
    egress.set("203.0.113.0/24", "203.0.113.7", "203.0.113.0/28", "2001:db8::/32", "2001:db8::1")
    assert reaches(ALLOWED)
    assert reaches(OTHER)


def test_open_by_default(egress: Egress) -> None:
    egress.set(default="allow", deny=(OTHER, "zone.example"))
    assert ask("ok.example").code == OK
    assert ask("zone.example").code == NO_SUCH_NAME
    assert reaches(ALLOWED)
    assert not reaches(OTHER)


def test_ipv6(start_egress: Start, own_egress: Program) -> None:
    """The published program of older releases drops what IPv6 needs to find its neighbours."""
    egress = start_egress(own_egress)
    egress.set("ok.example", "2001:db8::8/127")
    assert not reaches(ALLOWED6)
    assert reaches(OTHER6)
    assert ask("ok.example", kind=AAAA) == (OK, (ALLOWED6,))
    assert reaches(ALLOWED6)
    egress.set("2001:db8::/64", deny=(OTHER6,))
    assert reaches(ALLOWED6)
    assert not reaches(OTHER6)


def test_closing_a_phase_cuts_ipv6_too(start_egress: Start, own_egress: Program) -> None:
    egress = start_egress(own_egress)
    egress.set(ALLOWED6)
    with socket.create_connection((ALLOWED6, HTTPS), timeout=2) as connection:
        assert talks(connection)
        egress.set()
        assert not talks(connection)


@pytest.mark.parametrize("default", ["allow", "deny"])
def test_no_dns_over_tls(egress: Egress, default: str) -> None:
    egress.set(ALLOWED, default=default)
    assert reaches(ALLOWED)
    assert not reaches(ALLOWED, DNS_OVER_TLS)


def test_closing_a_phase_cuts_what_is_open(start_egress: Start, own_egress: Program) -> None:
    egress = start_egress(own_egress)
    egress.set("ok.example", OTHER)
    ask("ok.example")
    with (
        socket.create_connection((ALLOWED, HTTPS), timeout=2) as by_name,
        socket.create_connection((OTHER, HTTPS), timeout=2) as by_address,
    ):
        assert talks(by_name)
        assert talks(by_address)
        egress.set()
        assert not talks(by_name)
        assert not talks(by_address)


def test_what_stays_allowed_stays_open(egress: Egress) -> None:
    egress.set("ok.example", OTHER)
    ask("ok.example")
    with (
        socket.create_connection((ALLOWED, HTTPS), timeout=2) as by_name,
        socket.create_connection((OTHER, HTTPS), timeout=2) as by_address,
    ):
        egress.set("ok.example", OTHER, "another.example")
        assert talks(by_name)
        assert talks(by_address)


def test_new_connections_need_no_new_lookup_after_a_change(start_egress: Start, own_egress: Program) -> None:
    egress = start_egress(own_egress)
    egress.set("ok.example", "other.example")
    ask("ok.example")
    ask("other.example")
    egress.set("ok.example")
    assert reaches(ALLOWED)
    assert not reaches(OTHER)


def test_expired_addresses_close_for_new_connections_only(
    start_egress: Start, own_egress: Program, pod: Namespace
) -> None:
    egress = start_egress(own_egress)
    egress.set("ok.example")
    ask("ok.example")
    with socket.create_connection((ALLOWED, HTTPS), timeout=2) as connection:
        assert talks(connection)
        assert pod.run(["nft", "flush", "set", "inet", "opensandbox", "dyn_allow_v4"]).returncode == 0
        assert talks(connection)
        assert not reaches(ALLOWED)
    ask("ok.example")
    assert reaches(ALLOWED)


def test_answer_that_comes_after_the_change_opens_nothing(
    start_egress: Start, own_egress: Program, pod: Namespace
) -> None:
    """Lookups and changes at the same time: afterwards nothing of the old policy is open."""
    egress = start_egress(own_egress)
    for _ in range(5):
        egress.set("ok.example")
        lookups = [threading.Thread(target=ask, args=("ok.example",)) for _ in range(8)]
        for each in lookups:
            each.start()
        egress.set("other.example")
        for each in lookups:
            each.join()
        listed = pod.run(["nft", "list", "set", "inet", "opensandbox", "dyn_allow_v4"]).stdout
        assert ALLOWED not in listed


def test_two_questions_in_one(start_egress: Start, own_egress: Program) -> None:
    """The second would go to the resolver unjudged."""
    start_egress(own_egress).set("ok.example")
    assert ask("ok.example", "other.example").code == FORMAT_ERROR


def test_resolvers_are_open_for_the_proxy_alone(start_egress: Start, own_egress: Program) -> None:
    start_egress(own_egress)
    assert ask("other.example", resolver=RESOLVER).code == NO_SUCH_NAME
    assert not reaches(RESOLVER)


def test_connections_from_outside_are_answered(egress: Egress, world: Namespace) -> None:
    """As the kubelet's probes are."""
    with socket.create_server(("10.77.0.2", 8080)) as server:
        with world.entered():
            client = socket.create_connection(("10.77.0.2", 8080), timeout=2)
        with client:
            served, _ = server.accept()
            with served:
                client.sendall(b"x")
                assert served.recv(1) == b"x"
                served.sendall(b"y")
                assert client.recv(1) == b"y"


def test_cut_connection_cannot_come_back_as_one_from_outside(
    start_egress: Start, own_egress: Program, pod: Namespace, world: Namespace
) -> None:
    """The kernel forgets a cut connection after minutes; what the other side sends then opens nothing."""
    start_egress(own_egress)
    with world.entered():
        assert tcp.answers(tcp.SYN, port=8081), "a closed port refuses a new connection"
        assert not tcp.answers(tcp.ACK, port=8081)
        assert not tcp.answers(tcp.SYN | tcp.ACK, port=8081)
    assert pod.run(["nft", "flush", "chain", "inet", "opensandbox", "inbound"]).returncode == 0
    with world.entered():
        assert tcp.answers(tcp.ACK, port=8082), "without its rules it would"


def test_sandbox_cannot_pass_as_egress(egress: Egress, pod: Namespace) -> None:
    """The mark of egress's own queries, and packets past the rules: both take what it does not have."""
    egress.set(ALLOWED)
    marked = as_sandbox(pod, "python3", "-c", MARKED, ALLOWED, str(HTTPS))
    assert "PermissionError" in marked.stderr
    raw = as_sandbox(pod, "python3", "-c", RAW)
    assert "PermissionError" in raw.stderr
    assert "Operation not permitted" in as_sandbox(pod, "nft", "flush", "ruleset").stderr
    assert "Operation not permitted" in as_sandbox(pod, "ip", "route", "del", "default").stderr


def test_even_the_mark_opens_only_the_resolver(
    start_egress: Start, own_egress: Program, pod: Namespace
) -> None:
    start_egress(own_egress)
    marked = as_sandbox(pod, "python3", "-c", MARKED, ALLOWED, str(HTTPS), keep="NET_RAW")
    assert "TimeoutError" in marked.stderr
    assert as_sandbox(pod, "python3", "-c", MARKED, RESOLVER, "53", keep="NET_RAW").returncode == 0


def test_names_only(start_egress: Start, egress_program: Program) -> None:
    """In the mode `dns` addresses are not judged: what the trial pod must never run with."""
    egress = start_egress(egress_program, MODE="dns")
    egress.set("ok.example")
    assert ask("other.example").code == NO_SUCH_NAME
    assert ask("ok.example").code == OK
    assert reaches(OTHER)
    reply = egress.ask("GET", token=EGRESS_TOKEN).json()
    assert isinstance(reply, dict)
    assert reply["enforcementMode"] == "dns"
