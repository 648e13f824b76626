"""How this machine reaches package indexes, lent to a build and never part of an image."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CA_BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")
_CA_IN_BUILD = "/run/secrets/ca.crt"


@contextmanager
def secrets() -> Iterator[dict[str, Path]]:
    """Files for `RUN --mount=type=secret`, by id: pip's settings, and the certificates trusted here."""
    with tempfile.TemporaryDirectory(prefix="secrets-") as folder:
        settings = Path(folder, "pip.conf")
        settings.write_text(pip_conf())
        found = {"pip.conf": settings}
        if CA_BUNDLE.exists():
            found["ca.crt"] = CA_BUNDLE
        yield found


def pip_conf() -> str:
    """This machine's settings of pip, from files and environment, as one file for the build container."""
    listing = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True
    ).stdout
    lines = ["[global]"]
    for line in listing.splitlines():
        name, _, value = line.partition("=")
        key = name.rpartition(".")[2]
        # Folders of this machine are not in the container.
        if key not in ("cert", "find-links", "cache-dir"):
            lines.append(f"{key} = {value.strip(chr(39))}")
    if CA_BUNDLE.exists():
        lines.append(f"cert = {_CA_IN_BUILD}")
    return "\n".join(lines) + "\n"
