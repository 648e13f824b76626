"""Counting what egress refused, from reports that anybody in the pod may forge or flood."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from argo_harbor.model.record import RefusedHost
from argo_harbor.runner.refusals import MAX_HOSTS, OTHERS, Refusals, listen, search_domains, secret_path

PATH = secret_path("token")


def post(body: bytes, path: str = PATH, method: str = "POST") -> bytes:
    return f"{method} {path} HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def event(host: object) -> bytes:
    return post(json.dumps({"hostname": host, "source": "opensandbox-egress"}).encode())


def send(refusals: Refusals, *requests: bytes) -> list[str]:
    """Status of each answer, empty where there was none."""

    async def work() -> list[str]:
        server = await listen(refusals, PATH, port=0)
        port = server.sockets[0].getsockname()[1]
        answers = []
        for request in requests:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(request)
            writer.write_eof()
            answers.append((await reader.read()).decode().partition("\r\n")[0])
            writer.close()
        server.close()
        return [answer.partition(" ")[2] for answer in answers]

    return asyncio.run(work())


def test_refusals_are_counted_for_the_phase_in_force() -> None:
    refusals = Refusals(ignored=("192.0.2.1",), domains=("svc.cluster.local",))
    refusals.enter("setup")
    assert (
        send(refusals, event("Evil.example."), event("evil.example.svc.cluster.local"))
        == ["204 No Content"] * 2
    )
    refusals.enter("agent")
    send(refusals, event("evil.example"), event("192.0.2.1"), event("2001:DB8::1"), event("2001:db8::1"))
    assert refusals.report() == {
        "setup": (RefusedHost(host="evil.example", count=2),),
        "agent": (RefusedHost(host="2001:db8::1", count=2), RefusedHost(host="evil.example", count=1)),
    }


def test_what_egress_does_not_send_is_not_counted() -> None:
    refusals = Refusals()
    answers = send(
        refusals,
        post(b"{}", path="/denied/guess"),
        post(b"{}", method="GET"),
        post(b"{nope"),
        post(b"[" * 2000),
        post(b"{}"),
        post(b"[1]"),
        event(3),
        event("has space.example"),
        event("x" * 300),
        event("\x1b[31mred.example"),
        post(b"x" * 5000),
        b"POST " + PATH.encode() + b" HTTP/1.1\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"cut",
        b"x" * 20_000,
    )
    assert answers[:2] == ["404 Not Found"] * 2
    assert set(answers[2:12]) == {"400 Bad Request"}
    assert answers[13:] == ["", ""]
    assert refusals.report() == {}


def test_only_so_many_hosts_are_told_apart() -> None:
    refusals = Refusals()
    for number in range(MAX_HOSTS + 10):
        refusals.note(f"h{number}.example")
    [hosts] = refusals.report().values()
    assert len(hosts) == MAX_HOSTS + 1
    assert hosts[0] == RefusedHost(host=OTHERS, count=10)


def test_search_domains_of_the_resolver(tmp_path: Path) -> None:
    file = tmp_path / "resolv.conf"
    assert search_domains(file) == ()
    file.write_text("nameserver 10.0.0.1\nsearch a.local b.longer.local\noptions ndots:5\n")
    assert search_domains(file) == ("b.longer.local", "a.local")
