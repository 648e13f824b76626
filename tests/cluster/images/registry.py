"""What a registry without TLS already holds."""

from __future__ import annotations

import http.client
import json
from typing import Any

from tests.cluster.errors import ClusterError

_MANIFEST = "application/vnd.oci.image.manifest.v1+json"


class RegistryUnavailable(ClusterError):
    """There is no registry at the address, or it answers with a failure."""


def manifest(registry: str, repository: str, tag: str) -> dict[str, Any] | None:
    """The image's manifest; None when the registry has no such tag.

    Raises: RegistryUnavailable
    """
    connection = http.client.HTTPConnection(registry, timeout=10)
    try:
        connection.request("GET", f"/v2/{repository}/manifests/{tag}", headers={"Accept": _MANIFEST})
        answer = connection.getresponse()
        body = answer.read()
    except OSError as error:
        raise RegistryUnavailable(f"no registry at {registry}: {error}") from error
    finally:
        connection.close()
    if answer.status == http.client.NOT_FOUND:
        return None
    if answer.status != http.client.OK:
        raise RegistryUnavailable(f"{registry} says {answer.status} about {repository}:{tag}")
    found: dict[str, Any] = json.loads(body)
    return found
