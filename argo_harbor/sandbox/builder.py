"""The programs that fetch and build container images on this machine: buildah, podman or docker.

Asked once, before a run starts, whether one of them answers and has the images that the run's tasks start
from. `images.py` then builds with it. All of them are driven by their command lines, which agree in little
more than words.
"""

from __future__ import annotations

import json
import os
import posixpath
import re
import shutil
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

BuilderName = Literal["buildah", "podman", "docker"]
NAMES: tuple[BuilderName, ...] = ("buildah", "podman", "docker")
PROBE_SECONDS = 5.0
PATIENT_SECONDS = 1800.0
"""For all images of a run when somebody asked for images; a large one takes minutes."""
HASTY_SECONDS = 10.0
"""For everything when the preview will do instead."""
_REFERENCE = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]+(?=/))?(/[a-z0-9][a-z0-9._-]*)*(:\w[\w.-]{0,127})?(@sha256:[0-9a-f]{64})?"
)
"""Names of registries' images alone: builders also take `dir:/path` and the like, which are this machine's
files."""
_ROOT_USERS = ("", "root", "0", "root:root", "0:0", "root:0", "0:root")


class BuilderError(Exception):
    """A builder did not do what was asked; the message ends with its own words."""

    def __init__(self, message: str, words: str = "") -> None:
        super().__init__(f"{message} ({words})" if words else message)
        self.brief = message


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """What an image says of itself."""

    env: Mapping[str, str]
    workdir: str
    """Absolute; `/` where it names none."""
    user: str
    digest: str
    """`sha256:…`, or empty."""

    @property
    def runs_as_root(self) -> bool:
        return self.user in _ROOT_USERS


@dataclass(frozen=True, slots=True)
class Builder:
    """One builder that answers."""

    name: BuilderName
    program: str
    chroot: bool = False
    """buildah without a container runtime: it can isolate steps by chroot, but not take the network away."""

    @property
    def prefix(self) -> list[str]:
        """How command lines of a build start that must have no network."""
        return ["unshare", "--net", "--", self.program] if self.chroot else [self.program]

    def build(
        self,
        tag: str,
        context: str,
        dockerfile: str,
        *,
        target: str = "",
        arguments: Iterable[tuple[str, str]] = (),
    ) -> list[str]:
        """The command line of a build without a network that pulls nothing.

        `target` is the stage to stop at, `arguments` are values of build arguments.
        """
        command = [*self.prefix, "build"]
        match self.name:
            case "buildah":
                command += ["--pull-never", "--no-cache", "--force-rm"]
            case "podman":
                command += ["--pull=never", "--force-rm"]
            case "docker":
                command += ["--pull=false", "--force-rm"]
        command += ["--isolation", "chroot"] if self.chroot else ["--network", "none"]
        command += ["--target", target] if target else []
        for name, value in arguments:
            command += ["--build-arg", f"{name}={value}"]
        return [*command, "--tag", tag, "--file", dockerfile, context]

    def flatten(self, context: str, dockerfile: str) -> list[str]:
        """buildah alone: the command line that writes the files of a build to its standard output as tar."""
        command = [*self.prefix, "build", "--pull-never", "--no-cache", "--force-rm", "--quiet"]
        command += ["--isolation", "chroot"] if self.chroot else ["--network", "none"]
        return [*command, "--output", "-", "--file", dockerfile, context]

    def create(self, image: str) -> list[str]:
        """podman and docker: the command line that makes a container, never started, and prints its id."""
        return [self.program, "create", "--pull=never", "--network", "none", image, "never-started"]

    def remove_image(self, tag: str) -> list[str]:
        return [self.program, "rmi", "--force", tag]

    def facts(self, image: str, seconds: float = PROBE_SECONDS) -> ImageFacts | None:
        """What a local image says of itself, None when there is none. Raises: BuilderError."""
        inspect = ["inspect", "--type", "image"] if self.name == "buildah" else ["image", "inspect"]
        try:
            said = ask([self.program, *inspect, image], seconds)
        except BuilderError:
            return None
        try:
            return _facts(json.loads(said))
        except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
            raise BuilderError(f"{self.name} describes {image} in an unknown form") from error

    def get(self, image: str, seconds: float) -> ImageFacts:
        """Have an image on this machine, fetched when it is not there yet. Raises: BuilderError."""
        began = time.monotonic()
        found = self.facts(image)
        if found is None:
            ask([self.program, "pull", "--quiet", image], max(seconds - (time.monotonic() - began), 0.1))
            found = self.facts(image)
        if found is None:
            raise BuilderError(f"{image} is not there after it was fetched")
        return found


@dataclass(frozen=True, slots=True)
class Found:
    """A builder that has everything."""

    builder: Builder
    images: Mapping[str, ImageFacts]


class NoBuilder(Exception):
    """No builder answers and has all images; the message says why, of each that is installed."""

    def __init__(self, reasons: Sequence[tuple[str, BuilderError]]) -> None:
        none = f"no {', '.join(NAMES[:-1])} or {NAMES[-1]} on this machine"
        super().__init__("; ".join(f"{name}: {error}" for name, error in reasons) or none)
        self.brief = "; ".join(f"{name} {error.brief}" for name, error in reasons) or none
        """The same without the builders' own words."""


def find_builder(images: Iterable[str], *, seconds: float) -> Found:
    """The first builder that answers and has, or can fetch, all `images`; `seconds` for everything.

    Raises: NoBuilder.
    """
    deadline = time.monotonic() + seconds
    wanted = sorted(set(images))
    reasons: list[tuple[str, BuilderError]] = []
    for name in NAMES:
        program = shutil.which(name)
        if program is None:
            continue
        try:
            builder = _answering(name, program, min(PROBE_SECONDS, _left(deadline)))
            return Found(builder, {image: _get(builder, image, _left(deadline)) for image in wanted})
        except BuilderError as error:
            reasons.append((name, error))
    raise NoBuilder(reasons)


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise BuilderError("had no time left to be asked")
    return left


def _answering(name: BuilderName, program: str, seconds: float) -> Builder:
    try:
        said = ask([program, "info"], seconds)
    except BuilderError as error:
        raise BuilderError("does not answer", str(error)) from error
    if name != "buildah":
        return Builder(name, program)
    isolation = os.environ.get("BUILDAH_ISOLATION", "")
    try:
        runtime = json.loads(said)["host"].get("OCIRuntime", "")
    except (ValueError, KeyError, AttributeError):
        runtime = "unknown"
    chroot = isolation == "chroot" or (not isolation and not runtime)
    if chroot and os.geteuid() != 0:
        raise BuilderError("needs a container runtime such as crun to build without a network")
    return Builder(name, program, chroot)


def _get(builder: Builder, image: str, seconds: float) -> ImageFacts:
    if not _REFERENCE.fullmatch(image):
        raise BuilderError(f"does not know {image!r} as a name of an image")
    try:
        return builder.get(image, seconds)
    except BuilderError as error:
        raise BuilderError(f"cannot get {image}", str(error)) from error


def ask(command: list[str], seconds: float) -> str:
    """The standard output of a builder's command. Raises: BuilderError with its last line of complaint."""
    try:
        answer = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds,
            check=False,
            cwd="/",
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        raise BuilderError(f"no answer within {seconds:.0f} s") from None
    except OSError as error:
        raise BuilderError(str(error.strerror)) from error
    if answer.returncode != 0:
        lines = (answer.stderr or answer.stdout).decode(errors="replace").strip().splitlines()
        raise BuilderError(lines[-1].strip()[:300] if lines else f"exit status {answer.returncode}")
    return answer.stdout.decode(errors="replace")


def _facts(said: Any) -> ImageFacts:
    """Reads what `inspect` prints: an object of buildah's own, or a list with the one image."""
    if isinstance(said, dict):
        config, digest = said["OCIv1"]["config"], said.get("FromImageDigest", "")
    else:
        config, digest = said[0]["Config"], said[0].get("Digest", "") or _repository_digest(said[0])
    workdir = posixpath.join("/", config.get("WorkingDir") or "")
    if "\0" in workdir:
        raise ValueError("a folder with a zero byte")
    pairs = (pair.partition("=")[::2] for pair in config.get("Env") or ())
    return ImageFacts(
        env={name: value for name, value in pairs if name.isascii() and name.isidentifier()},
        workdir=workdir,
        user=config.get("User") or "",
        digest=digest,
    )


def _repository_digest(said: Mapping[str, Any]) -> str:
    """docker: the digest under which a registry knows the image; a local build has only its id."""
    named = said.get("RepoDigests") or ()
    return str(named[0]).partition("@")[2] if named else str(said.get("Id", ""))
