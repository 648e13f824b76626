"""buildah as the tests use it: a store of its own in the cache, no daemon, no user namespaces."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.cluster.errors import ClusterError


class BuildFailed(ClusterError):
    """buildah is missing or said no; the message ends with its last lines."""


class Buildah:
    """Builds and pushes images with a store below one folder."""

    def __init__(self, folder: Path) -> None:
        self._store = folder / "containers"
        self._run = folder / "run"

    def build(
        self,
        tag: str,
        *,
        dockerfile: Path,
        context: Path,
        arguments: Mapping[str, str],
        secrets: Mapping[str, Path],
        target: str = "",
    ) -> None:
        """Raises: BuildFailed"""
        options = [
            "--layers",
            "--force-rm",
            "--pull-never",
            "--format",
            "oci",
            "--file",
            str(dockerfile),
            "--tag",
            tag,
        ]
        for name, value in arguments.items():
            options += ["--build-arg", f"{name}={value}"]
        for name, file in secrets.items():
            options += ["--secret", f"id={name},src={file}"]
        if target:
            options += ["--target", target]
        self.call("bud", *options, str(context))

    def push(self, tag: str, destination: str) -> None:
        """Push to a registry that speaks plain HTTP. Raises: BuildFailed"""
        self.call("push", "--tls-verify=false", "--format", "oci", tag, destination)

    def unmount(self) -> None:
        """End what buildah leaves mounted for its next call, unless a container still uses it."""
        layers = self._store / "overlay"
        if layers.is_mount():
            subprocess.run(["umount", str(layers)], capture_output=True, check=False)

    def has(self, tag: str) -> bool:
        return self._start("inspect", "--type", "image", tag).returncode == 0

    def call(self, *arguments: str) -> str:
        """Standard output of `buildah …`. Raises: BuildFailed"""
        done = self._start(*arguments)
        if done.returncode:
            last = "\n".join((done.stdout + done.stderr).splitlines()[-30:])
            raise BuildFailed(f"`buildah {arguments[0]}` failed:\n{last}")
        return done.stdout

    def _start(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        if shutil.which("buildah") is None:
            raise BuildFailed("no `buildah` on PATH; install the Debian package")
        command = ["buildah", "--root", str(self._store), "--runroot", str(self._run), *arguments]
        # Other isolations need a container runtime that agrees with this machine's cgroups.
        environment = {**os.environ, "BUILDAH_ISOLATION": "chroot"}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
