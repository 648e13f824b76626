"""One commit of a repository, fetched without its history and without content that nobody asked for.

First the commit with its folders, then the blobs of the chosen files, in one exchange each. Servers that do
not take a filter send the whole commit instead; servers that give no single commits are asked for everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import BinaryIO

from argo_harbor.errors import PlatformError, UsageError
from argo_harbor.sources.git.address import GitAddress
from argo_harbor.sources.git.errors import GitFailed, explain
from argo_harbor.sources.git.program import UPLOAD_PACK, Git
from argo_harbor.sources.git.refs import Wanted
from argo_harbor.sources.git.tree import MAX_ENTRIES, Entry, parse_entries, split_entries
from argo_harbor.sources.tree import CONFIG

_REMOTE = "argo-harbor-source"
_FILTER = "--filter=blob:none"
_WHOLE = "--no-filter"
"""Said expressly, since git keeps the filter of an earlier attempt."""
_DEPTH = "--depth=1"
_QUIET = ("--progress", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--stdin")
_EVERYTHING = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")


class Snapshot:
    """A commit in our own bare repository. Methods raise PlatformError for a server that does not give it."""

    def __init__(self, git: Git, address: GitAddress) -> None:
        self._git = git
        self._address = address
        self._settings = [f"remote.{_REMOTE}.url={address.url}"]
        if address.local:
            self._settings.append(f"remote.{_REMOTE}.uploadpack={UPLOAD_PACK}")
        self._filter = _FILTER

    def fetch(self, wanted: Wanted) -> str:
        """Fetch the commit, without content, and return its full id.

        Raises UsageError `unknown_source_ref` when the repository has no such commit.
        """
        kind = "sha256" if len(wanted.object) == 64 else "sha1"
        folder = str(self._git.repository)
        try:
            self._git.ask("init", "--quiet", "--bare", "--template=", f"--object-format={kind}", folder)
            self._fetch_commit(wanted.object)
        except GitFailed as failed:
            if failed.says("not our ref", "couldn't find remote ref"):
                raise _no_commit(self._address, wanted) from failed
            raise explain(failed, self._address) from failed
        try:
            name = self._git.read("rev-parse", "--verify", "--quiet", f"{wanted.object}^{{commit}}")
        except GitFailed as failed:
            raise _no_commit(self._address, wanted) from failed
        return name.decode("ascii").strip()

    def folder(self, commit: str, path: str) -> tuple[str, str]:
        """(type, id) of what stands at `path` of the commit: `tree`, `blob`, `link`, `commit`, or nothing."""
        if path == ".":
            return "tree", f"{commit}^{{tree}}"
        printed = self._read("ls-tree", "-z", commit, "--", path)
        for attributes, found in _lines(printed):
            if found == path.encode(errors="surrogateescape"):
                mode, kind, identity = attributes.decode("ascii").split(" ")
                return ("link" if mode == "120000" else kind), identity
        return "", ""

    def entries(self, tree: str) -> list[Entry]:
        """Everything below a tree. Raises Refused for a malformed one."""
        with self._stream("ls-tree", "-r", "-z", tree) as listed:
            return parse_entries(listed)

    def suites(self, commit: str) -> dict[str, int]:
        """Number of tasks by the folder of the commit that holds them, `.` for the repository itself."""
        found: dict[str, int] = {}
        with self._stream("ls-tree", "-r", "-z", commit) as listed:
            for _, path in islice(split_entries(listed), MAX_ENTRIES):
                parts = path.decode(errors="replace").split("/")
                if parts[-1] == CONFIG and len(parts) > 1 and not parts[-2].startswith("."):
                    folder = "/".join(parts[:-2]) or "."
                    found[folder] = found.get(folder, 0) + 1
        return found

    def fetch_blobs(self, entries: Iterable[Entry]) -> dict[str, int]:
        """Fetch the content of entries; bytes of each by its id."""
        ids = list(dict.fromkeys(entry.id for entry in entries))
        sizes = self._sizes(ids)
        missing = [identity for identity in ids if identity not in sizes]
        if missing:
            try:
                self._git.fetch(*_QUIET, self._filter, _REMOTE, settings=self._settings, wants=missing)
            except GitFailed as failed:
                raise explain(failed, self._address) from failed
            sizes |= self._sizes(missing)
        lost = sum(identity not in sizes for identity in ids)
        if lost:
            raise PlatformError(
                "source_unreachable",
                f"{self._address.shown} did not send {lost} files of the commit",
                "the repository may be damaged; clone it yourself and use --harbor-dir",
            )
        return sizes

    @contextmanager
    def contents(self, entries: Iterable[Entry]) -> Iterator[BinaryIO]:
        """The contents of entries, one after another, as `git cat-file --batch` frames them."""
        given = "".join(f"{entry.id}\n" for entry in entries).encode()
        with self._stream("cat-file", "--batch", given=given) as stream:
            yield stream

    def _fetch_commit(self, wanted: str) -> None:
        """Raises GitFailed."""
        kind, depth, wants = _FILTER, [_DEPTH], [wanted]
        while True:
            try:
                self._git.fetch(*_QUIET, kind, *depth, _REMOTE, settings=self._settings, wants=wants)
            except GitFailed as failed:
                if kind == _FILTER and failed.says("filter"):
                    kind = _WHOLE
                elif depth and failed.says("does not support shallow"):
                    depth = []
                elif wants == [wanted] and failed.says("unadvertised object"):
                    self._git.say(
                        f"{self._git.server} gives no single commits: fetching all branches and tags"
                    )
                    depth, wants = [], list(_EVERYTHING)
                else:
                    raise
            else:
                self._filter = kind
                return

    def _sizes(self, ids: Iterable[str]) -> dict[str, int]:
        """Bytes of those blobs that are here. Asked for one by one, git would turn to the server for the
        others."""
        wanted = frozenset(ids)
        sizes = {}
        with self._stream("cat-file", "--batch-all-objects", "--unordered", "--batch-check") as printed:
            for line in printed:
                identity, kind, size = line.decode("ascii").split()
                if identity in wanted and kind == "blob":
                    sizes[identity] = int(size)
        return sizes

    def _read(self, *arguments: str) -> bytes:
        try:
            return self._git.read(*arguments)
        except GitFailed as failed:
            raise _damaged(self._address, failed) from failed

    @contextmanager
    def _stream(self, *arguments: str, given: bytes = b"") -> Iterator[BinaryIO]:
        try:
            with self._git.stream(*arguments, given=given) as stream:
                yield stream
        except GitFailed as failed:
            raise _damaged(self._address, failed) from failed


def _lines(printed: bytes) -> Iterator[tuple[bytes, bytes]]:
    for line in printed.split(b"\0"):
        attributes, tab, path = line.partition(b"\t")
        if tab:
            yield attributes, path


def _no_commit(address: GitAddress, wanted: Wanted) -> UsageError:
    return UsageError(
        "unknown_source_ref",
        f"{address.shown} has no commit {wanted.ref}",
        "name a branch, a tag, or the full id of a commit that the server has",
    )


def _damaged(address: GitAddress, failed: GitFailed) -> PlatformError:
    return PlatformError(
        "source_unreachable",
        f"what {address.shown} sent cannot be read: {failed.reason}",
        "the repository may be damaged; clone it yourself and use --harbor-dir",
    )
