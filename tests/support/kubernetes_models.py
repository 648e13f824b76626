"""Core Kubernetes objects through the Python client's own models, which drop every field they do not know."""

from __future__ import annotations

import json
from typing import Any

from kubernetes import client


def kept(kind: str, data: dict[str, Any]) -> dict[str, Any]:
    """What is left of an object of a model such as ``V1NetworkPolicy``."""
    api = client.ApiClient()
    taken = api.deserialize(json.dumps(data), kind, "application/json")
    left: dict[str, Any] = api.sanitize_for_serialization(taken)
    return left
