"""The sandbox and the network rules of a trial pod, as the child uses them."""

from __future__ import annotations

import logging
from contextlib import AsyncExitStack
from pathlib import Path

from argo_harbor.model.plan import TaskPlan
from argo_harbor.model.record import RefusedHost
from argo_harbor.model.runner import PodSandboxSettings
from argo_harbor.runner import probes, refusals
from argo_harbor.runner.policy import SwitchedPolicy
from argo_harbor.runner.refusals import Refusals
from argo_harbor.sandbox.base import Sandbox, SandboxStartFailed
from argo_harbor.sandbox.egress import EgressClient, EgressError, read_token
from argo_harbor.sandbox.execd import ExecdSandbox
from argo_harbor.sandbox.execd_client import ExecdClient

LOOPBACK = "127.0.0.1"

_LOG = logging.getLogger(__name__)


class PodSandbox:
    """See `SandboxFactory`: a pod has one sandbox, which the kubelet has started already."""

    ignored_from: tuple[str, ...] = ()
    image_digest = ""

    def __init__(self, settings: PodSandboxSettings, refused: Refusals) -> None:
        self._settings = settings
        self._refused = refused
        self.sandbox: ExecdSandbox | None = None

    @property
    def refused(self) -> dict[str, tuple[RefusedHost, ...]]:
        return self._refused.report()

    async def make(self, context: Path | None, name: str, image: str) -> Sandbox:
        if self.sandbox is not None:
            raise SandboxStartFailed("a pod has one sandbox, and the trial asks for another one")
        client = ExecdClient(LOOPBACK, self._settings.execd_port, self._settings.execd_token)
        self.sandbox = ExecdSandbox(client)
        return self.sandbox


async def pod_ground(
    settings: PodSandboxSettings, part: TaskPlan, stack: AsyncExitStack
) -> tuple[PodSandbox, SwitchedPolicy]:
    """The pod's sandbox and its rules; `stack` ends the listener for refused hosts."""
    refused = Refusals(ignored=probes.NOBODY, domains=refusals.search_domains())
    sandboxes = PodSandbox(settings, refused)
    try:
        token = read_token(Path(settings.egress_token_file))
    except EgressError as error:
        # The first phase finds that out, and does not start.
        _LOG.error("%s", error)
        token = ""
    try:
        server = await refusals.listen(refused, refusals.secret_path(token), port=settings.refusals_port)
        stack.callback(server.close)
    except OSError as error:
        _LOG.warning("refused hosts are not counted: %s", error)
    egress = EgressClient(LOOPBACK, settings.egress_port, token)
    policy = SwitchedPolicy(
        egress,
        settings,
        refused,
        narrowed=part.rules.narrowed,
        sandbox=lambda: sandboxes.sandbox,
    )
    return sandboxes, policy
