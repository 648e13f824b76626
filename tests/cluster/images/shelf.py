"""Builds images and pushes them, each only when its content is new.

An image's digest is over what goes in, so neither a build nor a registry has to be looked into to know that
nothing changed.
"""

from __future__ import annotations

import fcntl
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cluster.images import content, debian, machine
from tests.cluster.images.buildah import Buildah
from tests.cluster.images.catalogue import catalogue
from tests.cluster.images.registry import manifest
from tests.support.gotools import Say, cache_folder

Tools = Callable[[str], Path]
"""The finished program of a name."""


class Shelf:
    """The images of one catalogue, as far as they are made."""

    def __init__(self, *, registry: str, tools: Tools, say: Say) -> None:
        self._registry = registry
        self._images = catalogue()
        self._tools = tools
        self._say = say
        self._digests: dict[str, str] = {}
        self._programs: dict[str, Path] = {}
        self.folder = cache_folder() / "images"
        self.buildah = Buildah(self.folder)

    def names(self) -> list[str]:
        """Images that go into a registry unasked; the others are only below them, or on demand."""
        return [name for name, image in self._images.items() if image.repository and not image.on_demand]

    def push(self, name: str) -> str:
        """Bring the image into the registry if it is not there. Returns its reference.

        Raises: BuildFailed, DebianUnavailable, RegistryUnavailable, and whatever `tools` raises.
        """
        image = self._images[name]
        made = self._digest(name)
        tag = image.tag or made
        there = manifest(self._registry, image.repository, made)
        if there is None or there != manifest(self._registry, image.repository, tag):
            local = self.build(name)
            started = time.monotonic()
            for one in dict.fromkeys((made, tag)):
                self.buildah.push(local, f"docker://{self._registry}/{image.repository}:{one}")
            self._say(f"image {name}: pushed in {time.monotonic() - started:.1f} s")
        return f"{self._registry}/{image.repository}:{tag}"

    def build(self, name: str) -> str:
        """The image's name in the local store, where it is built if it is not there.

        Raises: BuildFailed, DebianUnavailable, and whatever `tools` raises.
        """
        image = self._images[name]
        tag = f"localhost/argo-harbor-tests/{name}:{self._digest(name)}"
        if self.buildah.has(tag):
            return tag
        bases = {argument: self.build(base) for argument, base in image.bases.items()}
        root = debian.archive(image.suite, folder=self.folder, say=self._say) if image.suite else None
        started = time.monotonic()
        self._say(f"image {name}: building")
        with (
            tempfile.TemporaryDirectory(prefix="context-", dir=self.folder) as context,
            machine.secrets() as secrets,
        ):
            content.gather(image, Path(context), programs=self._programs, root=root)
            self.buildah.build(
                tag,
                dockerfile=image.dockerfile,
                context=Path(context),
                arguments={**image.arguments, **bases},
                secrets=secrets,
            )
        self._say(f"image {name}: built in {time.monotonic() - started:.1f} s")
        return tag

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes off the folder: buildah's store is shared, and a Debian is made once."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            try:
                yield
            finally:
                self.buildah.unmount()

    def _digest(self, name: str) -> str:
        """Of one image; taken once, so that a checkout that changes meanwhile cannot mix two states."""
        if name not in self._digests:
            image = self._images[name]
            for program in image.programs.values():
                self._programs[program] = self._tools(program)
            bases = {base: self._digest(base) for base in image.bases.values()}
            self._digests[name] = content.digest(image, programs=self._programs, bases=bases)
        return self._digests[name]
