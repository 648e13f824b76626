"""Which images the cluster's tests need, and what is in each.

The runner is built from the Dockerfile that users build from, on a Debian with the same Python. The other
images are a base, a few Debian packages and finished programs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.gotools import REPOSITORY

HERE = Path(__file__).parent
MIRROR = "mirror"
"""Folder of the registry that stands in for Docker Hub: `base_image_mirror` is `REGISTRY/mirror`."""


@dataclass(frozen=True, kw_only=True)
class Image:
    """One image: everything that decides what is in it."""

    dockerfile: Path
    repository: str = ""
    """Where it goes in the registry; empty when only other images need it."""
    tag: str = ""
    """By which tasks or the node know it. Without one the tag says what is in the image, and new content is a
    new tag."""
    on_demand: bool = False
    """Pushed only when asked for by name."""
    suite: str = ""
    """The Debian that goes in as `root.tar`."""
    bases: Mapping[str, str] = field(default_factory=dict)
    """Other images of the catalogue, by build argument."""
    arguments: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, Path] = field(default_factory=dict)
    """Files and folders by place in the build context."""
    programs: Mapping[str, str] = field(default_factory=dict)
    """Names of finished programs, by place in the build context."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """Small files with the given content, by place in the build context."""


def catalogue() -> dict[str, Image]:
    """All images by short name."""
    files = HERE / "files.Dockerfile"
    return {
        "trixie": Image(dockerfile=HERE / "debian.Dockerfile", suite="trixie"),
        "bookworm": Image(
            dockerfile=HERE / "debian.Dockerfile",
            suite="bookworm",
            repository=f"{MIRROR}/library/debian",
            tag="bookworm-slim",
        ),
        "python": _packages("trixie", "python3-venv"),
        "nftables": _packages("trixie", "nftables"),
        "runc": _packages("trixie", "runc"),
        "busybox-static": _packages("trixie", "busybox-static"),
        "runner": _runner("any"),
        "runner-oracle": _runner("oracle"),
        "execd": Image(
            dockerfile=files,
            repository="argo-harbor/execd",
            bases={"BASE": "trixie"},
            programs={"root/execd": "execd", "root/bootstrap.sh": "bootstrap.sh"},
        ),
        "egress": Image(
            dockerfile=files,
            repository="argo-harbor/egress",
            bases={"BASE": "nftables"},
            programs={"root/opt/opensandbox-egress/egress": "egress"},
        ),
        "buildkit": Image(
            dockerfile=files,
            repository="argo-harbor/buildkit",
            bases={"BASE": "runc"},
            programs={"root/usr/bin/buildkitd": "buildkitd", "root/usr/bin/buildctl": "buildctl"},
        ),
        "argoexec": Image(
            dockerfile=files,
            repository="argo-harbor/argoexec",
            bases={"BASE": "trixie"},
            programs={"root/usr/bin/argoexec": "argoexec"},
        ),
        "coredns": Image(
            dockerfile=files,
            repository="argo-harbor/coredns",
            bases={"BASE": "trixie"},
            programs={"root/coredns": "coredns"},
        ),
        "pause": Image(
            dockerfile=HERE / "pause.Dockerfile",
            repository="argo-harbor/pause",
            tag="1",
            programs={"root/pause": "pause"},
        ),
        "busybox": Image(
            dockerfile=HERE / "busybox.Dockerfile",
            repository=f"{MIRROR}/library/busybox",
            tag="latest",
            bases={"BASE": "busybox-static"},
            texts={
                "root/etc/passwd": "root:x:0:0:root:/root:/bin/sh\n",
                "root/etc/group": "root:x:0:\n",
                "root/tmp/.keep": "",
            },
        ),
        "nonroot": Image(
            dockerfile=HERE / "nonroot.Dockerfile",
            repository=f"{MIRROR}/argo-harbor/nonroot",
            tag="latest",
            bases={"BASE": "bookworm"},
        ),
    }


def _packages(base: str, packages: str) -> Image:
    return Image(
        dockerfile=HERE / "packages.Dockerfile", bases={"BASE": base}, arguments={"PACKAGES": packages}
    )


def _runner(agents: str) -> Image:
    ignored = (REPOSITORY / ".dockerignore").read_text().splitlines()
    parts = [line.removeprefix("!") for line in ignored if line.startswith("!")]
    return Image(
        dockerfile=REPOSITORY / "Dockerfile",
        repository="argo-harbor/runner",
        bases={"PYTHON": "python"},
        arguments={"AGENTS": agents},
        # No pod of the tests needs the second variant.
        on_demand=agents != "any",
        files={part: REPOSITORY / part for part in parts},
    )
