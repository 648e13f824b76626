"""The forms in which `--harbor-git` names repository, ref and folder, taken apart without asking anybody.

`URL@REF` and `URL/tree/REF/FOLDER`, where URL is a path or any address that git takes. What cannot be told
apart without the repository's refs, a ref with slashes and the folder after it, stays together.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple
from urllib.parse import unquote

from argo_harbor.errors import UsageError
from argo_harbor.sources.member import printable

DEFAULT_FOLDER = "tasks"
TRANSPORTS = ("https", "http", "ssh", "git", "file")
FORMS = "write URL@REF, or URL/tree/REF/FOLDER; REF is a tag, a branch or a commit"

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_HELPER = re.compile(r"[A-Za-z0-9][A-Za-z0-9+.-]*::")
_HOST = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_][A-Za-z0-9._-]*)(?::[0-9]+)?")
_SCP = re.compile(
    r"(?:(?P<user>[A-Za-z0-9_][^/@:]*)@)?(?P<host>\[[^\]/@]+\]|[A-Za-z0-9_][^/@:\[]*):(?P<path>.*)"
)
_SPLIT = re.compile(r"/-/tree/|/tree/|@")
_NOT_IN_REFS = re.compile(r"[\s~^:?*\[\\]|\.\.|@\{|//")
_SERVER = re.compile(r"@[^/@:]+\.[A-Za-z]{2,}(?::[0-9]+)?/")
_NO_REPOSITORY = re.compile(r"/*(?:@[^/]*)?/*")
_HUB = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+")


@dataclass(frozen=True, slots=True)
class GitAddress:
    """One value of `--harbor-git`."""

    url: str
    """What git is given: a URL, `host:path`, or an absolute path."""
    shown: str
    """What people are shown: as it was given, without a user name of http, which may be a token."""
    dataset: str
    """The last two parts of a remote repository's path, `org/repo`; the name of a local one."""
    repository: str
    """The repository's name, without `.git`."""
    ref: str = ""
    """Of `URL@REF`."""
    trail: tuple[str, ...] = ()
    """Of `URL/tree/…`: a ref and a folder, by their slashes. Without it and `ref` no ref was given."""
    local: bool = False
    """True for a repository of this machine."""

    def pinned(self, commit: str, folder: str) -> str:
        """What to give to the same flag to get the folder of that commit."""
        return f"{self.shown}@{commit}" if folder == DEFAULT_FOLDER else self.tree(commit, folder)

    def recorded(self, commit: str, folder: str) -> str:
        """The same for plans and the store: where a local repository lies means nothing on other machines, so
        that its name alone is kept."""
        kept = replace(self, shown=self.repository) if self.local else self
        return kept.pinned(commit, folder)

    def tree(self, ref: str, folder: str) -> str:
        return f"{self.shown}/tree/{ref}/{folder}"


def parse_address(text: str) -> GitAddress:
    """Take a value of `--harbor-git` apart.

    Raises UsageError `unknown_flag_value`, whose message never repeats what may hold a password.
    """
    if not text or not text.isprintable() or text.startswith("-"):
        raise UsageError("unknown_flag_value", "--harbor-git names no repository", FORMS)
    if _HELPER.match(text):
        raise _transport(text.partition("::")[0])
    if schemed := _SCHEME.fullmatch(text):
        scheme, rest = schemed[1].lower(), schemed[2]
        if scheme not in TRANSPORTS:
            raise _transport(scheme)
        return _of_file_url(rest) if scheme == "file" else _of_url(scheme, rest)
    head = text.partition("/")[0]
    if ":" in head:
        return _of_scp(text)
    return _of_path(text)


class _Parts(NamedTuple):
    """A repository and what was written after it."""

    base: str
    ref: str
    trail: tuple[str, ...]


def _splits(text: str) -> Iterator[_Parts]:
    """Every way to end the repository in `text`, from the left, and at last none."""
    for place in _SPLIT.finditer(text):
        base, rest = text[: place.start()], text[place.end() :]
        if place[0] == "@":
            yield _Parts(base, rest, ())
        else:
            yield _Parts(base, "", tuple(rest.strip("/").split("/")) if rest.strip("/") else ())
    yield _Parts(text, "", ())


def _split(text: str, is_repository: Callable[[str], bool]) -> _Parts | None:
    """The first way that leaves a repository on the left."""
    for parts in _splits(text):
        if is_repository(parts.base):
            return parts._replace(base=parts.base.rstrip("/") or "/")
    return None


def _split_remote(path: str) -> _Parts:
    """Of a path on a server. `@` after a slash begins a scoped name; a ref may hold both `@` and slashes."""
    ways = [parts for parts in _splits(path) if not _NO_REPOSITORY.fullmatch(parts.base)]
    trees = [parts for parts in ways if parts.trail]
    refs = [parts for parts in ways if parts.ref and not (parts.base.endswith("/") and "/" in parts.ref)]
    neither = [parts for parts in ways if not parts.trail and not parts.ref]
    chosen = (trees or refs or neither or [_Parts("", "", ())])[0]
    _check_ref(chosen.ref)
    return chosen._replace(base=chosen.base.rstrip("/"))


def _of_url(scheme: str, rest: str) -> GitAddress:
    authority, _, path = rest.partition("/")
    user, at, host = authority.rpartition("@")
    if ":" in user:
        raise _password()
    if not _HOST.fullmatch(host) or user.startswith("-"):
        raise UsageError("unknown_flag_value", "the URL of --harbor-git has no proper host", FORMS)
    parts = _split_remote(path)
    if not parts.base:
        raise UsageError("unknown_flag_value", "the URL of --harbor-git names no repository", FORMS)
    web = scheme in {"http", "https"}
    if web and ("?" in parts.base or "#" in parts.base):
        raise UsageError(
            "unknown_flag_value", "the URL of --harbor-git has a query", "leave out what stands after ? or #"
        )
    url = f"{scheme}://{authority}/{parts.base}"
    shown = f"{scheme}://{host}/{parts.base}" if web and at else url
    return _address(parts, url=url, shown=shown)


def _of_scp(text: str) -> GitAddress:
    """`user@host:path`, as ssh's own copy program writes it."""
    parsed = _SCP.fullmatch(text)
    if parsed is None:
        raise UsageError("unknown_flag_value", "--harbor-git names no proper host", FORMS)
    path = parsed["path"]
    if parsed["host"].lower() in TRANSPORTS:
        raise UsageError("unknown_flag_value", f"a URL begins with {parsed['host'].lower()}://", FORMS)
    if parsed["user"] is None and _SERVER.search(path):
        # `me:secret@host/…`: a URL whose scheme was forgotten.
        raise _password()
    prefix = f"{parsed['user']}@{parsed['host']}" if parsed["user"] else parsed["host"]
    parts = _split_remote(path)
    if not parts.base:
        raise UsageError("unknown_flag_value", "--harbor-git names a host without a repository", FORMS)
    where = f"{prefix}:{parts.base}"
    return _address(parts, url=where, shown=where)


def _of_path(text: str) -> GitAddress:
    parts = _split(text, lambda base: _is_repository(_absolute(base)))
    if parts is None:
        hub = _HUB.match(text)
        hint = f"of a server: https://github.com/{text}" if hub else FORMS
        # Whatever holds both may hold a password as well.
        shown = "the path of --harbor-git" if ":" in text and "@" in text else printable(text)
        raise UsageError("unknown_flag_value", f"there is no Git repository at {shown}", hint)
    _check_ref(parts.ref)
    path = _absolute(parts.base)
    return _address(parts, url=path, shown=parts.base, path=path)


def _of_file_url(rest: str) -> GitAddress:
    if not rest.startswith("/"):
        raise UsageError(
            "unknown_flag_value", "a file URL names a path of this machine", "write file:///PATH@REF"
        )
    parts = _split(rest, lambda base: _is_repository(unquote(base)))
    if parts is None:
        raise UsageError("unknown_flag_value", f"there is no Git repository at file://{rest}", FORMS)
    _check_ref(parts.ref)
    return _address(parts, url=f"file://{parts.base}", shown=f"file://{parts.base}", path=unquote(parts.base))


def _address(parts: _Parts, *, url: str, shown: str, path: str = "") -> GitAddress:
    names = [name.removesuffix(".git") for name in (path or parts.base).split("/")]
    # Also what is left without the suffix must be a name: it becomes a folder's.
    names = [name for name in names if name.strip(".")] or [DEFAULT_FOLDER]
    return GitAddress(
        url=url,
        shown=shown,
        dataset=names[-1] if path else "/".join(names[-2:]),
        repository=names[-1],
        ref=parts.ref,
        trail=parts.trail,
        local=bool(path),
    )


def _absolute(path: str) -> str:
    return os.path.abspath(os.path.expanduser(path))


def _is_repository(path: str) -> bool:
    """True for what git itself would take: a working tree, a bare repository, or one named without `.git`."""
    return any(
        os.path.lexists(f"{place}/.git")
        or (os.path.isfile(f"{place}/HEAD") and os.path.isdir(f"{place}/objects"))
        for place in (path, f"{path}.git")
    )


def _check_ref(ref: str) -> None:
    if not ref:
        return
    if ":" in ref:
        # Also a password that the rules above did not see, so nothing is repeated.
        raise UsageError("unknown_flag_value", "what stands after @ in --harbor-git is no ref", FORMS)
    if ref.startswith(("-", "/")) or ref.endswith(("/", ".lock")) or _NOT_IN_REFS.search(ref):
        raise UsageError("unknown_flag_value", f"{printable(ref)!r} is no name of a ref", FORMS)


def _transport(name: str) -> UsageError:
    return UsageError(
        "unknown_flag_value",
        f"--harbor-git does not read {printable(name)!r} addresses",
        f"use {', '.join(TRANSPORTS)}, user@host:path, or a path",
    )


def _password() -> UsageError:
    return UsageError(
        "unknown_flag_value",
        "the URL of --harbor-git holds a password",
        "leave it out and let git's credential helper give it (git help credentials); change a password that"
        " was typed here, it may be in the shell's history",
    )
