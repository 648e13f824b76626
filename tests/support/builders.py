"""Builders of images for tests: buildah with a storage of its own, and stand-ins for podman and docker.

No registry can be reached by tests, so the real base image is made of this machine's own programs. podman and
docker need more of a machine than a test may take; a script answers in their place, with the forms of output
that their manuals give, and does what it is told with one ready archive.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

BASE = "localhost/argo-harbor-test-base"
_PROGRAMS = ("bash", "cat", "chmod", "cp", "env", "id", "ls", "mkdir", "rm", "sleep", "touch", "true", "wc")


def needs_buildah() -> None:
    """Skip a test, with the reason, on a machine without it."""
    if shutil.which("buildah") is None:
        pytest.skip("buildah is not installed, and images cannot be built without a builder")
    if os.geteuid() != 0 and shutil.which("crun") is None and shutil.which("runc") is None:
        pytest.skip("buildah needs a container runtime when the tests do not run as root")


def run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@contextmanager
def own_storage(folder: Path, environ: pytest.MonkeyPatch) -> Iterator[None]:
    """Let buildah keep its images below `folder`."""
    settings = folder / "storage.conf"
    lines = ["[storage]", 'driver = "vfs"', f'graphroot = "{folder}/graph"', f'runroot = "{folder}/run"']
    settings.write_text("\n".join(lines) + "\n")
    environ.setenv("CONTAINERS_STORAGE_CONF", str(settings))
    environ.delenv("STORAGE_DRIVER", raising=False)
    environ.delenv("BUILDAH_ISOLATION", raising=False)
    yield
    shutil.rmtree(folder)


def make_base_image(folder: Path, name: str = BASE, *config: str) -> str:
    """An image with bash and a few programs of this machine; no tar, no setpriv, no setsid."""
    root = folder / "base"
    files = {Path(str(shutil.which(program))) for program in _PROGRAMS}
    for program in list(files):
        listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
        files |= {Path(found) for found in re.findall(r"(/\S+) \(0x", listed)}
    for file in files:
        target = root / file.relative_to("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, target)
    if not (root / "bin").exists():
        (root / "bin").symlink_to("usr/bin")
    (root / "bin" / "sh").symlink_to("bash")
    (root / "etc").mkdir()
    (root / "tmp").mkdir()
    (root / "tmp").chmod(0o1777)
    users = "root:x:0:0:root:/root:/bin/bash\napp:x:1000:1000:app:/:/bin/bash\n"
    (root / "etc" / "passwd").write_text(users)
    return commit(name, root, *config)


def commit(name: str, root: Path | None, *config: str) -> str:
    """An image of the files in `root`. Returns its name."""
    container = run("buildah", "from", "scratch")
    try:
        if root is not None:
            run("buildah", "add", "-q", container, str(root), "/")
        if config:
            run("buildah", "config", *config, container)
        run("buildah", "commit", "-q", container, name)
    finally:
        run("buildah", "rm", container)
    return name


def stand_in(
    folder: Path, name: str, *, image: str = "example/base:1", config: object = None, script: str = ""
) -> Path:
    """A program `name` that has one image, whose files are `<name>.tar`; its calls go to `<name>.log`.

    `script` is shell code that runs first, with the call as its arguments.
    """
    described = [{"Id": "sha256:" + "a" * 64, "RepoDigests": [], "Config": config or {}}]
    (folder / f"{name}.json").write_text(json.dumps(described))
    program = folder / name
    program.write_text(
        f"""#!/bin/bash
cd {folder}
echo "$*" >> {name}.log
{script}
case "$1 $2" in
    "info "*) echo ready ;;
    "image inspect") [ "$3" = {image} ] || [ -e built-"${{3//\\//_}}" ] || exit 1; cat {name}.json ;;
    "build "*)
        echo "Step 1/1 : FROM x"
        while [ "$1" != --tag ]; do shift; done
        touch built-"${{2//\\//_}}" ;;
    "create "*) echo 0123abcd ;;
    "export "*) cat {name}.tar ;;
    "rmi "*) rm built-"${{3//\\//_}}" ;;
    "rm "*) ;;
    *) echo "Error: no such thing: $*" >&2; exit 125 ;;
esac
"""
    )
    program.chmod(0o755)
    return program
