"""The Dockerfile of a build in the unpacked task: where it is, and which frontend it asks for."""

from __future__ import annotations

import re
from pathlib import Path

from argo_harbor.model.plan import ImagePlan

# The stable frontends are built into every BuildKit: fetching one from Docker Hub would only be one more
# thing that can fail.
_STABLE_SYNTAX = re.compile(r"(docker\.io/)?docker/dockerfile(:1(\.\d+)*)?")
_SYNTAX = re.compile(rb"\A(?:\xef\xbb\xbf)?(?:#\s*\w+\s*=.*\n)*?#\s*syntax\s*=\s*(\S+)", re.IGNORECASE)


def find_dockerfile(task: Path, image: ImagePlan) -> Path | None:
    """The Dockerfile in the folder `task`; None when there is none, or when it would lie elsewhere."""
    file = (task / image.context / image.dockerfile).resolve()
    return file if file.is_relative_to(task.resolve()) and file.is_file() else None


def wants_frontend(dockerfile: Path) -> bool:
    """Whether the Dockerfile's `# syntax=` names more than what every BuildKit has built in."""
    with dockerfile.open("rb") as file:
        found = _SYNTAX.match(file.read(4096))
    return found is not None and not _STABLE_SYNTAX.fullmatch(found[1].decode(errors="replace"))
