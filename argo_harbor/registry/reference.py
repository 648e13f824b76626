"""Image references taken apart, as container tools read them."""

from __future__ import annotations

import re
from typing import NamedTuple

DOCKER_HUB = "docker.io"
_REFERENCE = re.compile(
    r"(?P<name>[A-Za-z0-9._-]+(?::\d+(?=/))?(?:/[A-Za-z0-9._-]+)*)(?::(?P<tag>[\w][\w.-]{0,127}))?(?:@(?P<digest>sha256:[0-9a-f]{64}))?"
)


class ImageName(NamedTuple):
    """Where an image lies. Docker Hub's short names are written out."""

    registry: str
    """Host, with its port where one is given."""
    repository: str
    version: str
    """A digest where the reference has one, else the tag, `latest` by default."""

    def __str__(self) -> str:
        joint = "@" if self.version.startswith("sha256:") else ":"
        return f"{self.registry}/{self.repository}{joint}{self.version}"


def parse_image(reference: str) -> ImageName:
    """Raises ValueError for what is no image reference."""
    found = _REFERENCE.fullmatch(reference)
    if found is None:
        raise ValueError(f"{reference!r} is no image reference")
    first, slash, rest = found["name"].partition("/")
    # The rule of all container tools: a first part with a dot or a port, or `localhost`, is a host.
    if slash and ("." in first or ":" in first or first == "localhost"):
        registry, repository = first, rest
    else:
        registry, repository = DOCKER_HUB, found["name"]
    if registry in ("index.docker.io", "registry-1.docker.io"):
        registry = DOCKER_HUB
    if registry == DOCKER_HUB and "/" not in repository:
        repository = f"library/{repository}"
    return ImageName(registry, repository, found["digest"] or found["tag"] or "latest")
