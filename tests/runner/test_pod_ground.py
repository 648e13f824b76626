"""The sandbox and the rules that the child of a trial pod works with."""

from __future__ import annotations

import asyncio
import socket
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from argo_harbor.model.runner import PodSandboxSettings
from argo_harbor.runner.pod_ground import pod_ground
from argo_harbor.runner.policy import NOTHING, PolicyMismatch
from argo_harbor.runner.refusals import secret_path
from argo_harbor.sandbox.base import SandboxStartFailed
from tests.runner.test_refusals import event
from tests.sandbox.odd_server import OddServer, odd_server, reply
from tests.support.records import task_plan

PART = task_plan(0, "acme/one")


def settings(server: OddServer, folder: Path, port: int) -> PodSandboxSettings:
    return PodSandboxSettings(
        execd_port=server.port,
        execd_token="t",
        egress_port=server.port,
        egress_token_file=str(folder / "token"),
        refusals_port=port,
        denied=(),
        hosts=(),
        addresses=(),
    )


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def test_a_pod_has_one_sandbox_and_counts_what_egress_refused(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret")
    port = free_port()

    async def work() -> None:
        async with odd_server() as server, AsyncExitStack() as stack:
            sandboxes, _ = await pod_ground(settings(server, tmp_path, port), PART, stack)
            assert await sandboxes.make(None, "one", "") is sandboxes.sandbox
            with pytest.raises(SandboxStartFailed, match="one sandbox"):
                await sandboxes.make(None, "two", "")
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            request = event("evil.example").replace(
                secret_path("token").encode(), secret_path("secret").encode()
            )
            writer.write(request)
            assert b"204" in await reader.read()
            writer.close()
            assert [each.host for each in sandboxes.refused["before"]] == ["evil.example"]

    asyncio.run(work())


def test_without_its_token_no_phase_starts_and_a_taken_port_only_costs_the_counts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> None:
        async with odd_server() as server, AsyncExitStack() as stack:
            server.on("GET", "/policy", reply(401))
            server.on("PUT", "/policy", reply(401))
            sandboxes, policy = await pod_ground(settings(server, tmp_path, server.port), PART, stack)
            with pytest.raises(PolicyMismatch, match="401"):
                await policy.apply("setup", NOTHING)
            assert sandboxes.refused == {}

    asyncio.run(work())
    assert "token of egress" in caplog.text
    assert "refused hosts are not counted" in caplog.text
