"""One try to get one image into the registry: look, build what is not there, record what came of it."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from argo_harbor.bundle.images import ready_record, record_image
from argo_harbor.errors import EXIT_FAILED, EXIT_OK, HarborError
from argo_harbor.model.base import sha256_hex
from argo_harbor.model.build import BuildRecord
from argo_harbor.planning.images import DOCKERFILE
from argo_harbor.registry.client import Registries
from argo_harbor.registry.errors import RegistryError, Unauthorized, Unreachable
from argo_harbor.registry.reference import ImageName, parse_image
from argo_harbor.runner import buildctl
from argo_harbor.runner.build_context import find_dockerfile, wants_frontend
from argo_harbor.runner.build_failure import BuildFailure, explain
from argo_harbor.runner.build_job import BuildJob
from argo_harbor.runner.build_login import BuildLogins
from argo_harbor.runner.build_progress import Progress
from argo_harbor.runner.build_secrets import BuildSecrets
from argo_harbor.runner.clock import now, say
from argo_harbor.runner.exits import EXIT_AGAIN, Again
from argo_harbor.runner.pod import Pod
from argo_harbor.runner.process import Interrupt
from argo_harbor.sources.fetch import fetch_task
from argo_harbor.store import layout
from argo_harbor.store.base import Store
from argo_harbor.workflow.buildkit import ADDRESS

MESSAGE_CHARS = 8000
# Before Argo's deadline, which would end the pod without a word: time to tell what the build was at.
_LAST_SECONDS = 60.0


class ImageBuild:
    """One try to get one image into the registry."""

    def __init__(
        self,
        job: BuildJob,
        *,
        pod: Pod,
        store: Store,
        interrupt: Interrupt,
        logins: BuildLogins,
        secrets: BuildSecrets,
        program: str = buildctl.PROGRAM,
        address: str = ADDRESS,
    ) -> None:
        self._job = job
        self._image = job.image
        self._pod = pod
        self._store = store
        self._interrupt = interrupt
        self._logins = logins
        self._secrets = secrets
        self._client = {"program": program, "address": address}
        self._name = parse_image(job.image.reference)
        self._insecure = job.platform.insecure_registries
        self._registries = Registries(logins=logins.by_host, insecure=self._insecure)
        self._began = time.monotonic()

    def run(self) -> int:
        """Look, build when there is nothing, record. Returns the exit status.

        Raises PlatformError of the store.
        """
        say(f"image {self._name} for {self._job.task}")
        for trouble in self._login_troubles():
            say(trouble)
        try:
            found = self._registries.digest(self._name)
        except RegistryError as error:
            return self._fail(self._refused(error))
        if found is not None:
            say(f"it is there: {found}")
            self._record(ok=True, found=True, digest=found, bases=self._bases_of(found))
            return EXIT_OK
        if self._secrets.missing:
            return self._fail(self._without_secrets())
        return self._build()

    def _bases_of(self, digest: str) -> dict[str, str]:
        """Base images of an image that is there, as far as the build that made it has told."""
        made = ready_record(self._store, self._image.key)
        return made.bases if made is not None and made.digest == digest else {}

    def _without_secrets(self) -> BuildFailure:
        lacking = [
            f"for {identity}: no key {key} of a Secret {name} in namespace {self._pod.namespace}"
            for identity, reference in self._secrets.missing
            for name, _, key in [reference.partition("/")]
        ]
        return BuildFailure("build_secret_missing", "reading build secrets", "\n".join(lacking))

    def _build(self) -> int:
        with tempfile.TemporaryDirectory(prefix="build-") as folder:
            scratch = Path(folder)
            task = scratch / "task"
            try:
                fetch_task(self._store, self._job.digest, task)
            except HarborError as error:
                if error.retryable:
                    raise
                return self._fail(BuildFailure("image_build_failed", "", error.message))
            dockerfile = find_dockerfile(task, self._image)
            if dockerfile is None:
                message = f"the task's archive has no {self._image.context}/{self._image.dockerfile}"
                return self._fail(BuildFailure("image_build_failed", "", message))
            return self._solve(self._request(scratch, task / self._image.context, dockerfile), scratch)

    def _solve(self, request: buildctl.BuildRequest, scratch: Path) -> int:
        config = scratch / "docker"
        config.mkdir(mode=0o700)
        (config / "config.json").write_bytes(self._logins.config)
        environ = {"PATH": os.defpath, "HOME": str(scratch), "DOCKER_CONFIG": str(config)}
        redact = self._secrets.redact
        progress = Progress(redact)
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
        mirror = self._job.platform.base_image_mirror
        said = redact(ended.said)
        failure = explain(progress.failed, said, reference=self._image.reference, mirror=mirror)
        return self._fail(failure, bases)

    def _request(self, scratch: Path, context: Path, dockerfile: Path) -> buildctl.BuildRequest:
        cache = self._cache()
        return buildctl.BuildRequest(
            context=context,
            dockerfile=dockerfile,
            target=self._image.target,
            arguments=self._image.arguments,
            secrets=self._secrets.files,
            reference=str(self._name),
            cache=str(cache),
            use_cache=self._has(cache),
            plain_http=self._name.registry in self._insecure,
            own_frontend=wants_frontend(dockerfile),
            metadata=scratch / "metadata.json",
        )

    def _cache(self) -> ImageName:
        """One cache for each Dockerfile of a task: an edited one finds the layers of the version before."""
        image = self._image
        parts = [self._job.task, image.context]
        if (image.dockerfile, image.target) != (DOCKERFILE, ""):
            parts += [image.dockerfile, image.target]
        scope = sha256_hex("\n".join(parts).encode())
        return self._name._replace(version=f"cache-{scope[:32]}")

    def _has(self, cache: ImageName) -> bool:
        try:
            return self._registries.digest(cache) is not None
        except RegistryError as error:
            say(f"no cache: {error}")
            return False

    @property
    def _seconds(self) -> float:
        return max(self._job.seconds - _LAST_SECONDS, self._job.seconds / 2)

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
        if self._job.run:
            key = layout.build_record(self._job.run, self._image.key, self._pod.uid)
            self._store.put(key, record.canonical())
        record_image(self._store, record)
        return record


def _show(progress: Progress, event: buildctl.Event) -> None:
    for line in progress.feed(event):
        print(line, flush=True)


def _full(name: str) -> str:
    try:
        return str(parse_image(name))
    except ValueError:
        return name
