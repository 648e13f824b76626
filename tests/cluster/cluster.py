"""The running cluster as tests see it: where things are, and a kubectl."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from tests.cluster import addresses, services
from tests.cluster.kubectl import kubectl
from tests.cluster.state import State


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """A cluster that is up."""

    state: State
    kubeconfig: Path
    """Its one context is the administrator's, in the namespace of the platform."""
    context: str
    namespace: str
    platform: Path
    """The platform file, which is installed in the namespace."""
    store_endpoint: str
    store_bucket: str
    store_access_key: str
    store_secret_key: str
    registry: str
    """HOST:PORT, without TLS, open to everybody."""
    private_registry: str
    """The same with a user and a password."""
    private_user: str
    private_password: str
    programs: Path
    """Folder of the finished programs: kubectl, argo, buildctl and the cluster's own."""

    @classmethod
    def of(cls, state: State) -> Cluster:
        record = state.load()
        return cls(
            state=state,
            kubeconfig=state.kubeconfig,
            context=addresses.CONTEXT,
            namespace=addresses.NAMESPACE,
            platform=state.platform,
            store_endpoint=addresses.STORE,
            store_bucket=services.BUCKET,
            store_access_key=record.store_access_key,
            store_secret_key=record.store_secret_key,
            registry=addresses.REGISTRY,
            private_registry=addresses.PRIVATE_REGISTRY,
            private_user=services.PRIVATE_USER,
            private_password=services.PRIVATE_PASSWORD,
            programs=state.programs,
        )

    @property
    def environment(self) -> dict[str, str]:
        """Variables with which a program finds the cluster and no other."""
        return {"KUBECONFIG": str(self.kubeconfig)}

    def document(self) -> dict[str, str]:
        """Everything as plain JSON, keys included."""
        names = [each.name for each in fields(self) if each.name != "state"]
        return {name: str(getattr(self, name)) for name in names} | {"logs": str(self.state.logs)}

    def kubectl(self, *arguments: str | Path, text: str | None = None, seconds: float = 150.0) -> str:
        """Return what kubectl prints; ``text`` becomes its standard input.

        Raises:
            ClusterError: it failed.
        """
        return kubectl(self.state, *arguments, text=text, seconds=seconds)

    def create(self, *documents: dict[str, Any]) -> str:
        """Create objects and return the name of the last one as ``kind/name``."""
        text = "\n---\n".join(json.dumps(document) for document in documents)
        return self.kubectl("create", "--filename=-", "--output=name", text=text).split()[-1]

    def get(self, *what: str) -> dict[str, Any]:
        """An object, or a list of them, as the API has it."""
        answer: dict[str, Any] = json.loads(self.kubectl("get", *what, "--output=json"))
        return answer
