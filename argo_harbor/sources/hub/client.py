"""The Hub as Harbor's own client sees it. Nothing else among the sources imports Harbor, and this only when a
Hub is asked.

Harbor's client brings the protocol, the address (`HARBOR_SUPABASE_URL`), the account (`harbor auth login`,
`HARBOR_API_KEY`) and the place of its cache; its telemetry belongs to its commands and jobs, which are not
used. Only the last step of a download is not Harbor's: that takes an archive into memory whatever its size,
unpacks it where the next call takes it for complete even if it stopped half-way, and never compares the
content with the digest. Here the session of the same client brings the archive to a file, with a bound, and
`cache` unpacks and compares.
"""

from __future__ import annotations

import difflib
import importlib
import json
import urllib.parse
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

from argo_harbor.errors import Finding, HarborError, PlatformError, Refused, UsageError
from argo_harbor.model.taskset import TasksetMember, Warned
from argo_harbor.sources.hub.asking import LOGIN, Asking, Patience, understood, unreachable
from argo_harbor.sources.hub.dataset import PUBLISHER, HubDataset, HubTask, yanked_warning
from argo_harbor.sources.hub.ref import HubRef
from argo_harbor.sources.member import printable

LARGEST_ARCHIVE = 16 << 30
"""Bytes; packed, no task that can be published takes more."""
_LONGEST_ERROR = 1 << 16
"""Bytes of an error's body that are looked at."""
_ROOM = "make room in the folder for temporary files, or set TMPDIR to another"


def cache_folder() -> Path:
    """Where Harbor keeps packages on this machine: below the home folder that its import found.

    Raises PlatformError `harbor_not_found` when Harbor, or a part of it that a Hub needs, is missing.
    """
    try:
        for part in ("harbor.db.client", "harbor.storage.supabase"):
            importlib.import_module(part)
        from harbor import constants
    except (ImportError, RuntimeError) as error:
        # For an account without a home folder, Harbor's import ends with a RuntimeError.
        raise PlatformError(
            "harbor_not_found",
            f"the Hub is read with Harbor's own client, which cannot be loaded: {error}",
            "pip install 'argo-harbor[pod]' brings it"
            if isinstance(error, ImportError)
            else "set HOME to the folder that Harbor may keep packages in",
        ) from error
    return Path(constants.PACKAGE_CACHE_DIR)


class HubClient:
    """One conversation with the Hub, inside one event loop: `open`, questions, `close`.

    Every method but `close` raises PlatformError `source_unreachable` for a Hub that does not answer in time,
    answers with an error or with nonsense, or does not let us in.
    """

    def __init__(self, patience: Patience) -> None:
        from harbor.auth.errors import ApiKeyRejectedError, AuthenticationError, NotAuthenticatedError
        from harbor.db.client import RegistryDB

        rejected = (ApiKeyRejectedError, NotAuthenticatedError)
        self._patience = patience
        self._asking = Asking(patience, account=AuthenticationError, rejected=rejected)
        self._db: Any = RegistryDB()
        self._client: Any = None

    async def open(self) -> None:
        """Sign in, if there is an account."""
        from harbor.auth import client, constants
        from harbor.auth.errors import AuthenticationError

        try:
            constants.assert_secure_supabase_url(client.SUPABASE_URL)
        except AuthenticationError as error:
            raise PlatformError(
                "source_unreachable",
                "HARBOR_SUPABASE_URL names a server that is not asked through TLS",
                "write an https:// address; http:// is for servers on this machine",
            ) from error
        self._client = await self._asking.answer(client.create_authenticated_client)
        # Or three layers that each try again would hold a user for minutes.
        self._client.postgrest.retry_enabled = False

    async def close(self) -> None:
        """Give up the connections."""
        from harbor.auth.client import reset_client

        if self._client is not None:
            await self._client.postgrest.aclose()
            await self._client.storage.session.aclose()
        reset_client()

    async def dataset(self, asked: HubRef) -> HubDataset:
        """One version of a dataset, as the Hub says. Raises UsageError `unknown_source_ref`."""
        ask, db = self._asking.answer, self._db
        org, _, short = asked.name.partition("/")
        found = await ask(lambda: _or_none(db.resolve_dataset_version(org, short, asked.ref)))
        if found is None or found[1] is None:
            raise await self._unknown(asked)
        version = found[1]
        with understood():
            number = version["id"]
        rows = await ask(lambda: db.get_dataset_version_tasks(number))
        files = await ask(lambda: db.get_dataset_version_files(number))
        with understood():
            seen = [row.task_version for row in rows if row.task_version is not None]
            return HubDataset(
                name=asked.name,
                digest=_hex(version["content_hash"]),
                tasks=tuple(
                    HubTask(f"{task.package.org.name}/{task.package.name}", _hex(task.content_hash))
                    for task in seen
                ),
                files=tuple((str(file["path"]), _hex(file["content_hash"])) for file in files),
                hidden=len(rows) - len(seen),
                yanked=str(version.get("yanked_reason") or "") if version.get("yanked_at") else None,
            )

    async def fetch(self, task: TasksetMember, into: Path) -> Warned | None:
        """Bring the archive of a task into a file. Gives a warning when its version was withdrawn.

        Raises Refused (`source_unreadable`) when the Hub has no such archive, or an endless one.
        """
        org, _, short = task.name.partition("/")
        found = await self._asking.answer(
            lambda: _or_none(self._db.resolve_task_version(org, short, f"sha256:{task.digest}"))
        )
        if found is None:
            raise _refused(task, "is in the dataset, but the Hub has no such version of it")
        if _hex(found.content_hash) != task.digest:
            raise _refused(task, f"is {printable(found.content_hash)[:80]} on the Hub, not {task.digest}")
        await self._asking.answer(
            lambda: self._download(task, found.archive_path, into), seconds=self._patience.archive
        )
        return yanked_warning(found.yanked_reason or "", task=task.name) if found.yanked_at else None

    async def _download(self, task: TasksetMember, place: str, into: Path) -> None:
        import httpx
        from harbor.auth.client import create_authenticated_client
        from harbor.storage.supabase import BUCKET

        parts = urllib.parse.unquote(place).strip("/").split("/")
        if not {"", ".", ".."}.isdisjoint(parts):
            raise _refused(task, f"has its archive at {printable(place)[:100]!r}, which is no place")
        # Asked for each time, because an account's token lasts for minutes only.
        client = await create_authenticated_client()
        url = str(client.storage_url.joinpath("object", BUCKET, *parts))
        timeout = httpx.Timeout(self._patience.answer)
        async with client.storage.session.stream("GET", url, timeout=timeout) as response:
            if response.is_error:
                meant = await _meant(response)
                if meant in {"400", "404"}:
                    raise _refused(task, "has no archive on the Hub")
                if meant in {"401", "403"}:
                    raise unreachable(f"the Hub does not let us in: {meant} for {task.name}", LOGIN)
            response.raise_for_status()
            try:
                await _write(task, response, into)
            except OSError as error:
                raise _refused(task, f"cannot be written here: {error.strerror or error}", _ROOM) from error

    async def _unknown(self, asked: HubRef) -> UsageError:
        """Why there is no such version, with what there is instead."""
        org, _, short = asked.name.partition("/")
        listed = await self._asking.answer(
            lambda: _or_none(self._db.list_package_versions(org=org, name=short))
        )
        if listed is None:
            known = await self._asking.answer(lambda: self._datasets_of(org))
            near = difflib.get_close_matches(asked.name, known, n=3)
            hint = "look at the spelling; private datasets show only after `harbor auth login`"
            return UsageError("unknown_source_ref", f"the Hub has no dataset {asked.name}", _near(near, hint))
        with understood():
            package, versions = listed
            kind = printable(package["type"])[:40]
            tags = [printable(tag)[:60] for version in versions for tag in version["tags"]]
            there = [*sorted(tags), *(str(int(version["revision"])) for version in versions)]
        if kind != "dataset":
            message = f"{asked.name} is a {kind} on the Hub, not a dataset"
            return UsageError("unknown_source_ref", message, "name a dataset that holds it")
        near = [f"@{tag}" for tag in difflib.get_close_matches(asked.ref, tags, n=3)]
        hint = f"there are {', '.join(there[:20])}" if there else "it has no version that is not withdrawn"
        message = f"the Hub has no version {asked.ref} of {asked.name}"
        return UsageError("unknown_source_ref", message, _near(near, hint))

    async def _datasets_of(self, org: str) -> list[str]:
        rows = await (
            self._client.table("package")
            .select("name, org:org_id!inner(name)")
            .eq("type", "dataset")
            .eq("org.name", org)
            .limit(1000)
            .execute()
        )
        return [f"{org}/{printable(row['name'])[:100]}" for row in rows.data]


def _near(names: list[str], otherwise: str) -> str:
    return f"did you mean {' or '.join(names)}?" if names else otherwise


def _hex(digest: str) -> str:
    return digest.removeprefix("sha256:")


async def _or_none[T](answer: Awaitable[T]) -> T | None:
    """Harbor says by one kind of error that there is no such thing, and by its children that an answer is
    broken."""
    from harbor.db.client import TaskVersionNotFoundError

    try:
        return await answer
    except ValueError as error:
        if type(error) not in (ValueError, TaskVersionNotFoundError):
            raise
        return None


async def _meant(response: Any) -> str:
    """The status of an error of the storage, which often answers 400 and says in the body what it means."""
    body = b""
    async for chunk in response.aiter_bytes():
        body = (body + chunk)[:_LONGEST_ERROR]
        if len(body) == _LONGEST_ERROR:
            break
    try:
        return str(json.loads(body)["statusCode"])
    except (ValueError, LookupError, TypeError):
        return str(response.status_code)


async def _write(task: TasksetMember, response: Any, into: Path) -> None:
    size = 0
    with into.open("wb") as file:
        async for chunk in response.aiter_bytes():
            size += len(chunk)
            if size > LARGEST_ARCHIVE:
                raise _refused(task, f"has an archive of more than {LARGEST_ARCHIVE} bytes")
            file.write(chunk)


def _refused(task: TasksetMember, message: str, hint: str = PUBLISHER) -> HarborError:
    return Refused.of([Finding("source_unreadable", message, hint, task=task.name)])
