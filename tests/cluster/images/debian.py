"""Debian from the ground up, where no registry has it: the bottom of every image that the tests make.

Packages come from wherever this machine's own apt gets its packages; what is made is kept as an archive in
the cache.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.cluster.errors import ClusterError
from tests.cluster.images.machine import CA_BUNDLE
from tests.support.gotools import Say

PACKAGES = ("ca-certificates",)
# What Debian's own slim images leave out, and what apt needs only while it works.
LEFT_OUT = ("usr/share/doc/*", "usr/share/man/*", "usr/share/info/*", "usr/share/locale/*")
_TRACES = ("var/cache/apt/archives/*", "var/cache/apt/*.bin", "var/lib/apt/lists/*", "var/log/*", "dev/*")
_SLIM = "etc/dpkg/dpkg.cfg.d/slim"


class DebianUnavailable(ClusterError):
    """No Debian can be made here: the message says what is missing, or ends with debootstrap's words."""


def mirror() -> str:
    """Address from which this machine's apt gets its packages.

    Raises: DebianUnavailable
    """
    command = ["apt-get", "indextargets", "--format", "$(RELEASE) $(REPO_URI)", "Created-By: Packages"]
    try:
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError) as error:
        raise DebianUnavailable("no apt to ask where Debian's packages are; use a Debian machine") from error
    for line in lines:
        release, _, address = line.partition(" ")
        # bookworm, but neither bookworm-updates nor bookworm-security: those hold parts of a Debian.
        if "-" not in release:
            return address
    raise DebianUnavailable("apt has no source of packages; fill /etc/apt/sources.list.d")


def archive(suite: str, *, folder: Path, say: Say) -> Path:
    """Return the tar archive of a small Debian below `folder`, making it the first time (a minute).

    Raises: DebianUnavailable
    """
    finished = folder / f"{suite}.tar"
    if finished.exists():
        return finished
    folder.mkdir(parents=True, exist_ok=True)
    say(f"Debian {suite}: installing, about a minute the first time")
    with tempfile.TemporaryDirectory(prefix=f"{suite}-", dir=folder) as scratch:
        root = Path(scratch, "root")
        command = ["debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}"]
        _run([*command, suite, str(root), mirror()])
        (root / _SLIM).write_text("".join(f"path-exclude=/{pattern}\n" for pattern in LEFT_OUT))
        if CA_BUNDLE.exists():
            # Where this machine reaches its packages through a proxy, so do the images on it.
            shutil.copyfile(CA_BUNDLE, root / CA_BUNDLE.relative_to("/"))
        unfinished = Path(scratch, finished.name)
        # Patterns are anchored at the root, so that no package's own folder of such a name is hit.
        left = [f"--exclude=./{pattern}" for pattern in (*LEFT_OUT, *_TRACES)]
        _run(["tar", "-C", str(root), "--anchored", "--numeric-owner", *left, "-cf", str(unfinished), "."])
        unfinished.replace(finished)
    return finished


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}, check=False
        )
    except FileNotFoundError as error:
        raise DebianUnavailable(f"no `{command[0]}` on PATH; install the Debian package") from error
    if done.returncode:
        last = "\n".join((done.stdout + done.stderr).splitlines()[-20:])
        raise DebianUnavailable(f"`{command[0]}` failed:\n{last}")
