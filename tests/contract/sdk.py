"""OpenSandbox's own Python client, pointed straight at execd and egress."""

from __future__ import annotations

from datetime import timedelta

from opensandbox.config.connection_sync import ConnectionConfigSync
from opensandbox.models.sandboxes import SandboxEndpoint
from opensandbox.sync.adapters.factory import AdapterFactorySync
from opensandbox.sync.services.command import CommandsSync
from opensandbox.sync.services.egress import EgressSync
from opensandbox.sync.services.filesystem import FilesystemSync
from opensandbox.sync.services.health import HealthSync

EXECD_PORT = 44772
EGRESS_PORT = 18080
EXECD_HEADER = "X-EXECD-ACCESS-TOKEN"
EGRESS_HEADER = "OPENSANDBOX-EGRESS-AUTH"


class Execd:
    """The client's services for one execd."""

    def __init__(self, token: str) -> None:
        endpoint = SandboxEndpoint(endpoint=f"127.0.0.1:{EXECD_PORT}", headers={EXECD_HEADER: token})
        factory = _factory()
        self.commands: CommandsSync = factory.create_command_service(endpoint)
        self.files: FilesystemSync = factory.create_filesystem_service(endpoint)
        self.health: HealthSync = factory.create_health_service(endpoint)


def egress(token: str) -> EgressSync:
    """The client's service for one egress."""
    endpoint = SandboxEndpoint(endpoint=f"127.0.0.1:{EGRESS_PORT}", headers={EGRESS_HEADER: token})
    return _factory().create_egress_service(endpoint)


def _factory() -> AdapterFactorySync:
    config = ConnectionConfigSync(protocol="http", request_timeout=timedelta(seconds=10))
    return AdapterFactorySync(config.with_transport_if_missing())
