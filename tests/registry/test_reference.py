"""Image references, as container tools read them."""

from __future__ import annotations

import pytest

from argo_harbor.registry.reference import parse_image

DIGEST = f"sha256:{'a' * 64}"


@pytest.mark.parametrize(
    ("text", "full"),
    [
        ("debian", "docker.io/library/debian:latest"),
        ("debian:bookworm-slim", "docker.io/library/debian:bookworm-slim"),
        # A number behind the only part is a tag: a port stands before a slash.
        ("postgres:17", "docker.io/library/postgres:17"),
        ("acme/tool:1", "docker.io/acme/tool:1"),
        ("index.docker.io/debian", "docker.io/library/debian:latest"),
        ("localhost/x", "localhost/x:latest"),
        ("ghcr.io/acme/tool:1", "ghcr.io/acme/tool:1"),
        ("10.0.0.1:5000/argo-harbor/env:0a", "10.0.0.1:5000/argo-harbor/env:0a"),
        (f"quay.io/acme/tool:1@{DIGEST}", f"quay.io/acme/tool@{DIGEST}"),
    ],
)
def test_references(text: str, full: str) -> None:
    name = parse_image(text)
    assert str(name) == full
    assert parse_image(full) == name


@pytest.mark.parametrize("text", ["", "a b", "x:", "-/", "x@sha256:12", "{{x}}", "x:\n"])
def test_what_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="is no image reference"):
        parse_image(text)
