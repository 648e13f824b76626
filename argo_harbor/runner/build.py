"""`python -m argo_harbor.runner build`: makes sure that one image of a task is in the registry.

The registry is asked first, so that a second run builds nothing. What is not there is built by the BuildKit
daemon beside this container. Whatever comes of it stands in the run's build records, which the merge reads to
say why trials never started. Two runs may build one image at once: both push the same tag, whole.
"""

from __future__ import annotations

import argparse
import os
import re
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from argo_harbor.bundle.plans import read_head, read_part
from argo_harbor.errors import EXIT_FAILED, EXIT_OK, HarborError
from argo_harbor.model.base import sha256_hex
from argo_harbor.model.build import BuildRecord
from argo_harbor.model.plan import ImagePlan, PlanHead, TaskPlan
from argo_harbor.registry.client import Registries
from argo_harbor.registry.errors import RegistryError, Unauthorized, Unreachable
from argo_harbor.registry.reference import ImageName, parse_image
from argo_harbor.runner import buildctl
from argo_harbor.runner.build_failure import BuildFailure, explain
from argo_harbor.runner.build_login import BuildLogins, read_logins
from argo_harbor.runner.build_progress import Progress
from argo_harbor.runner.clock import now, say
from argo_harbor.runner.exits import EXIT_AGAIN, Again, run_command
from argo_harbor.runner.pod import Pod, claim_run, read_pod
from argo_harbor.runner.process import Interrupt
from argo_harbor.sources.fetch import fetch_task
from argo_harbor.store import layout
from argo_harbor.store.base import Store
from argo_harbor.workflow import names
from argo_harbor.workflow.buildkit import ADDRESS

DOCKERFILE = "Dockerfile"
MESSAGE_CHARS = 8000
# The stable frontends are built into every BuildKit: fetching one from Docker Hub would only be one more
# thing that can fail.
_STABLE_SYNTAX = re.compile(r"(docker\.io/)?docker/dockerfile(:1(\.\d+)*)?")
_SYNTAX = re.compile(rb"\A(?:\xef\xbb\xbf)?(?:#\s*\w+\s*=.*\n)*?#\s*syntax\s*=\s*(\S+)", re.IGNORECASE)
# Before Argo's deadline, which would end the pod without a word: time to tell what the build was at.
_LAST_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Arguments:
    plan: str
    run: str
    index: int
    side: str
    try_: int


def parse(arguments: Sequence[str]) -> Arguments:
    """Raises SystemExit 2 for a wrong command line."""
    parser = argparse.ArgumentParser(prog="python -m argo_harbor.runner build", description=__doc__)
    parser.add_argument("--plan", required=True, help="digest of the plan, 64 hex")
    parser.add_argument("--run", required=True)
    parser.add_argument("--task", required=True, type=int, help="index of a task that uses the image")
    parser.add_argument("--side", default="agent", help="which of the task's containers uses it")
    parser.add_argument("--try", required=True, type=int, dest="try_")
    given = parser.parse_args(arguments)
    return Arguments(given.plan, given.run, given.task, given.side, given.try_)


def main(arguments: Sequence[str]) -> int:
    """The exit status: 0 when the image is there, 75 to try again, 1 when it cannot be built."""
    given = parse(arguments)
    interrupt = Interrupt()
    interrupt.listen()
    return run_command(lambda: ImageBuild.open(given, read_pod(), interrupt).run())


class ImageBuild:
    """One try to get one image into the registry."""

    def __init__(
        self,
        *,
        run: str,
        head: PlanHead,
        part: TaskPlan,
        image: ImagePlan,
        pod: Pod,
        store: Store,
        interrupt: Interrupt,
        logins: BuildLogins,
        program: str = buildctl.PROGRAM,
        address: str = ADDRESS,
    ) -> None:
        self._run = run
        self._head = head
        self._part = part
        self._image = image
        self._pod = pod
        self._store = store
        self._interrupt = interrupt
        self._logins = logins
        self._client = {"program": program, "address": address}
        self._name = parse_image(image.reference)
        self._insecure = head.platform.insecure_registries
        self._registries = Registries(logins=logins.by_host, insecure=self._insecure)
        self._began = time.monotonic()

    @classmethod
    def open(
        cls,
        given: Arguments,
        pod: Pod,
        interrupt: Interrupt,
        *,
        secrets: Path = Path(names.REGISTRY_PATH),
        **client: str,
    ) -> ImageBuild:
        """Reads what the plan says about the image. Raises PlatformError."""
        store = pod.store()
        claim_run(store, given.run, pod.workflow_uid)
        head = read_head(given.plan, store)
        part = read_part(head, given.plan, given.index, store)
        image = part.sides.get(given.side)
        if image is None or image.kind != "build":
            raise ValueError(f"task {given.index} has no image to build for its {given.side}")
        return cls(
            run=given.run,
            head=head,
            part=part,
            image=image,
            pod=pod,
            store=store,
            interrupt=interrupt,
            logins=read_logins(head.platform.secrets, secrets),
            **client,
        )

    def run(self) -> int:
        """Look, build when there is nothing, record. Returns the exit status.

        Raises PlatformError of the store.
        """
        say(f"image {self._name} for {self._part.name}")
        for trouble in self._login_troubles():
            say(trouble)
        try:
            found = self._registries.digest(self._name)
        except RegistryError as error:
            return self._fail(self._refused(error))
        if found is not None:
            say(f"it is there: {found}")
            self._record(ok=True, found=True, digest=found)
            return EXIT_OK
        return self._build()

    def _build(self) -> int:
        with tempfile.TemporaryDirectory(prefix="build-") as folder:
            scratch = Path(folder)
            task = scratch / "task"
            try:
                fetch_task(self._store, self._part.digest, task)
            except HarborError as error:
                if error.retryable:
                    raise
                return self._fail(BuildFailure("image_build_failed", "", error.message))
            context = task / self._image.context
            if not (context / DOCKERFILE).is_file():
                message = f"the task's archive has no {self._image.context}/{DOCKERFILE}"
                return self._fail(BuildFailure("image_build_failed", "", message))
            return self._solve(scratch, context)

    def _solve(self, scratch: Path, context: Path) -> int:
        request = self._request(scratch, context)
        config = scratch / "docker"
        config.mkdir(mode=0o700)
        (config / "config.json").write_bytes(self._logins.config)
        environ = {"PATH": os.defpath, "HOME": str(scratch), "DOCKER_CONFIG": str(config)}
        progress = Progress()
        try:
            ended = buildctl.run(
                buildctl.command(request, **self._client),
                environ,
                on_event=lambda event: _show(progress, event),
                stop=lambda: self._interrupt.asked or self._late(),
            )
        except OSError as error:
            raise Again(f"BuildKit's client cannot be started: {error}") from error
        if self._interrupt.asked:
            raise Again("the build was told to stop")
        bases = {_full(name): digest for name, digest in sorted(progress.bases.items())}
        if ended.status == 0:
            digest = buildctl.image_digest(request.metadata)
            say(f"pushed {self._name}: {digest}")
            self._record(ok=True, digest=digest, bases=bases)
            return EXIT_OK
        if self._late():
            message = f"the build did not end within {self._seconds:.0f} s"
            return self._fail(BuildFailure("image_build_failed", "", message), bases)
        mirror = self._head.platform.base_image_mirror
        failure = explain(progress.failed, ended.said, reference=self._image.reference, mirror=mirror)
        return self._fail(failure, bases)

    def _request(self, scratch: Path, context: Path) -> buildctl.BuildRequest:
        cache = self._cache()
        return buildctl.BuildRequest(
            context=context,
            reference=str(self._name),
            cache=str(cache),
            use_cache=self._has(cache),
            plain_http=self._name.registry in self._insecure,
            own_frontend=_wants_frontend(context / DOCKERFILE),
            metadata=scratch / "metadata.json",
        )

    def _cache(self) -> ImageName:
        """One cache for each Dockerfile of a task: an edited one finds the layers of the version before."""
        scope = sha256_hex(f"{self._part.name}\n{self._image.context}".encode())
        return self._name._replace(version=f"cache-{scope[:32]}")

    def _has(self, cache: ImageName) -> bool:
        try:
            return self._registries.digest(cache) is not None
        except RegistryError as error:
            say(f"no cache: {error}")
            return False

    @property
    def _seconds(self) -> float:
        return max(self._head.limits.build_seconds - _LAST_SECONDS, self._head.limits.build_seconds / 2)

    def _late(self) -> bool:
        return time.monotonic() - self._began > self._seconds

    def _refused(self, error: RegistryError) -> BuildFailure:
        """Of the look for the image itself."""
        code = "registry_unauthorized" if isinstance(error, Unauthorized) else "registry_unreachable"
        return BuildFailure(
            code,
            "looking for the image",
            str(error),
            again=isinstance(error, Unreachable),
            registry=self._name.registry,
            image=str(self._name),
        )

    def _login_troubles(self) -> list[str]:
        missing = [
            f"Secret {name} is not in namespace {self._pod.namespace}, or holds no registry login"
            for name in self._logins.missing
        ]
        return [*missing, *self._logins.broken]

    def _fail(self, failure: BuildFailure, bases: Mapping[str, str] | None = None) -> int:
        """Record why there is no image. Returns the exit status."""
        secret = self._logins.secrets.get(failure.registry, "")
        message = failure.message
        if failure.code == "registry_unauthorized":
            message = "\n".join((self._who_was_refused(failure, secret), message))
        elif failure.code == "base_image_not_found":
            message = f"{failure.registry} has no {failure.image}\n{message}"
        record = self._record(
            ok=False,
            step=failure.step[:MESSAGE_CHARS],
            message=message[-MESSAGE_CHARS:],
            code=failure.code,
            registry=failure.registry,
            image=failure.image,
            secret=secret,
            bases=dict(bases or {}),
        )
        say(f"error[{record.code}]: {record.step or 'build'}")
        for line in record.message.splitlines():
            say(f"  {line}")
        return EXIT_AGAIN if failure.again else EXIT_FAILED

    def _who_was_refused(self, failure: BuildFailure, secret: str) -> str:
        act = "a push of" if failure.pushed else "a pull of"
        login = f"with the login of Secret {secret}" if secret else "without a login"
        troubles = self._login_troubles()
        named = f"no Secret of [secrets] has one for {failure.registry}"
        hint = "" if secret else f" ({'; '.join(troubles) or named})"
        return f"{failure.registry} refuses {act} {failure.image} {login}{hint}"

    def _record(self, **facts: Any) -> BuildRecord:
        record = BuildRecord(
            image_key=self._image.key,
            reference=self._image.reference,
            seconds=round(time.monotonic() - self._began, 3),
            finished_at=now(),
            **facts,
        )
        key = layout.build_record(self._run, self._image.key, self._pod.uid)
        self._store.put(key, record.canonical())
        return record


def _show(progress: Progress, event: buildctl.Event) -> None:
    for line in progress.feed(event):
        print(line, flush=True)


def _full(name: str) -> str:
    try:
        return str(parse_image(name))
    except ValueError:
        return name


def _wants_frontend(dockerfile: Path) -> bool:
    """Whether the Dockerfile's `# syntax=` names more than what every BuildKit has built in."""
    with dockerfile.open("rb") as file:
        found = _SYNTAX.match(file.read(4096))
    return found is not None and not _STABLE_SYNTAX.fullmatch(found[1].decode(errors="replace"))
