"""What every object of the API server has, read without trusting its shape: `Pod`, `Workflow` add theirs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from argo_harbor.cluster.client import Json


@dataclass(frozen=True)
class ApiObject:
    """One object, read once."""

    data: Json

    @property
    def name(self) -> str:
        return str(self.metadata.get("name", ""))

    @property
    def uid(self) -> str:
        return str(self.metadata.get("uid", ""))

    @property
    def created(self) -> str:
        """RFC 3339."""
        return str(self.metadata.get("creationTimestamp", ""))

    @property
    def labels(self) -> Mapping[str, str]:
        return self.metadata.get("labels") or {}

    @property
    def annotations(self) -> Mapping[str, str]:
        return self.metadata.get("annotations") or {}

    @property
    def phase(self) -> str:
        """The word of whoever runs it: empty before it was seen."""
        return str(self.status.get("phase") or "")

    @property
    def metadata(self) -> Mapping[str, Any]:
        return self._part("metadata")

    @property
    def status(self) -> Mapping[str, Any]:
        return self._part("status")

    def _part(self, key: str) -> Mapping[str, Any]:
        found = self.data.get(key)
        return found if isinstance(found, dict) else {}
