"""The client of egress's API: what it sets must be what is in force."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from argo_harbor.sandbox.egress import EgressClient, EgressError, Policy, Rule, read_token
from tests.sandbox.odd_server import OddServer, document, odd_server, reply

POLICY = Policy("deny", (Rule("deny", "10.0.0.0/8"), Rule("allow", "a.example"), Rule("allow", "1.2.3.4")))


def in_force(policy: Policy, enforcement: str = "dns+nft") -> bytes:
    return document({"status": "ok", "enforcementMode": enforcement, "policy": policy.as_data()})


def run[T](work: Callable[[OddServer, EgressClient], Coroutine[Any, Any, T]]) -> T:
    async def whole() -> T:
        async with odd_server() as server:
            return await work(server, EgressClient("127.0.0.1", server.port, "token"))

    return asyncio.run(whole())


def test_a_policy_is_set_whole_and_read_back() -> None:
    async def work(server: OddServer, egress: EgressClient) -> None:
        server.on("PUT", "/policy", in_force(POLICY))
        server.on("GET", "/policy", in_force(POLICY))
        await egress.replace(POLICY)
        await egress.must_be(POLICY)
        assert server.seen[0].json() == POLICY.as_data()
        assert server.seen[0].headers["opensandbox-egress-auth"] == "token"

    run(work)


def test_addresses_may_come_back_in_another_order_and_spelling() -> None:
    async def work(server: OddServer, egress: EgressClient) -> None:
        same = (Rule("allow", "1.2.3.4/32"), Rule("deny", "10.0.0.0/8"), Rule("allow", "A.example"))
        server.on("GET", "/policy", in_force(Policy("deny", same)))
        await egress.must_be(POLICY)

    run(work)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (in_force(POLICY, "dns"), "enforces 'dns'"),
        (document([]), "enforces None"),
        (in_force(POLICY._replace(default="allow")), "not those that were set"),
        (in_force(POLICY._replace(rules=POLICY.rules[1:])), "not those that were set"),
        (in_force(POLICY._replace(rules=(*POLICY.rules, Rule("allow", "b.example")))), "not those"),
        (document({"enforcementMode": "dns+nft", "policy": {"defaultAction": "maybe"}}), "not those"),
        (
            document({"enforcementMode": "dns+nft", "policy": {"defaultAction": "deny", "egress": 3}}),
            "not those",
        ),
        (
            document({"enforcementMode": "dns+nft", "policy": {"defaultAction": "deny", "egress": [3]}}),
            "not those",
        ),
        (reply(401, b"unauthorized", "text/plain"), r"unauthorized \(401\)"),
        (reply(200, b"{"), "no JSON"),
        (b"", "does not answer"),
    ],
)
def test_anything_else_in_force_is_an_error(answer: bytes, reason: str) -> None:
    async def work(server: OddServer, egress: EgressClient) -> None:
        server.on("GET", "/policy", answer)
        await egress.must_be(POLICY)

    with pytest.raises(EgressError, match=reason):
        run(work)


@pytest.mark.parametrize(
    ("answer", "reason"), [(in_force(POLICY), "without its token"), (b"", "does not answer")]
)
def test_an_open_interface_is_an_error(answer: bytes, reason: str) -> None:
    async def work(server: OddServer, egress: EgressClient) -> None:
        server.on("GET", "/policy", reply(401))
        await egress.must_refuse_strangers()
        assert "opensandbox-egress-auth" not in server.seen[0].headers
        server.on("GET", "/policy", answer)
        await egress.must_refuse_strangers()

    with pytest.raises(EgressError, match=reason):
        run(work)


def test_the_digest_is_that_of_the_whole_policy() -> None:
    assert POLICY.digest() == Policy("deny", POLICY.rules).digest()
    assert POLICY.digest() != POLICY._replace(default="allow").digest()


def test_the_token_is_a_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    with pytest.raises(EgressError, match="cannot be read"):
        read_token(file)
    file.write_text("abc\n")
    assert read_token(file) == "abc"
    for broken in (b"", b"a\x00b", b"\xff"):
        file.write_bytes(broken)
        with pytest.raises(EgressError):
            read_token(file)
