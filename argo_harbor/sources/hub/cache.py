"""Tasks in Harbor's cache on this machine, which this program and Harbor's own share.

A copy there is used only while its files still have the task's content digest: Harbor itself takes any folder
of the right name, also a half-unpacked one and one that somebody edited. The digest is over paths and bytes;
like the Hub, it knows nothing of file modes.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from pathlib import Path

from argo_harbor.errors import Finding, Refused
from argo_harbor.model.taskset import TasksetMember
from argo_harbor.sources.digest import read_content
from argo_harbor.sources.hub.dataset import PUBLISHER
from argo_harbor.sources.member import Member, printable, read_member
from argo_harbor.sources.tree import CONFIG, read_tree
from argo_harbor.sources.unpack import unpack


class HubCache:
    """Folders `<root>/<org>/<name>/<digest>`, as Harbor lays them out."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def path(self, task: TasksetMember) -> Path:
        return self._root / task.name / task.digest

    def has_some(self, task: TasksetMember) -> bool:
        """Whether there is anything in the task's place."""
        return os.path.lexists(self.path(task))

    def read(self, task: TasksetMember) -> Member | None:
        """The task, with its findings, or None when no copy with its digest is here."""
        root = os.path.realpath(self.path(task))
        if not os.path.isdir(root):
            return None
        member = read_member(root, folder=task.folder, prefix=f"{task.folder}/", unpacked=True)
        # The reader hashes only what it finds nothing wrong with.
        found = member.content.digest if member.content is not None else _digest_of(root)
        if found != task.digest:
            return None
        if member.config is not None and member.name != task.name:
            member.findings.append(_other_name(member, task))
        return member

    def keep(self, task: TasksetMember, archive: Path) -> None:
        """Unpack the archive into the task's place, instead of what may be there.

        Raises Refused (`source_unreadable`) when it is not an archive with the task's digest, or when the
        cache does not take it; the place then holds what it held.
        """
        path = self.path(task)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=f".{task.digest[:12]}-", dir=path.parent) as folder:
                unpack(archive, Path(folder, "new"), digest=task.digest, foreign=True)
                if self.has_some(task):
                    os.rename(path, f"{folder}/old")
                _put(f"{folder}/new", path)
        except Refused as error:
            findings = [
                Finding("source_unreadable", item.message, PUBLISHER, task=task.name) for item in error.items
            ]
            raise Refused.of(findings) from error
        except OSError as error:
            message = f"cannot be kept in Harbor's cache: {error.strerror or error}"
            hint = "make room and give this account the right to write there, or set HOME to another folder"
            finding = Finding("source_unreadable", message, hint, task=task.name, file=printable(str(path)))
            raise Refused.of([finding]) from error


def _put(folder: str, path: Path) -> None:
    try:
        os.rename(folder, path)
    except OSError as error:
        # Another program was quicker. Its copy is read back and compared like any other.
        if error.errno not in {errno.EEXIST, errno.ENOTEMPTY}:
            raise
        shutil.rmtree(folder)


def _digest_of(root: str) -> str:
    try:
        tree = read_tree(root, unpacked=True)
        return "" if tree.findings else read_content(tree.root, tree.files).digest
    except OSError:
        # What cannot be read is no copy, whatever it holds; fetching it anew says why it cannot be kept.
        return ""


def _other_name(member: Member, task: TasksetMember) -> Finding:
    """The only thing that ties a task to its name: the digest of a dataset is the same with two of its tasks
    exchanged."""
    message = f"calls itself {printable(member.name)!r}, not as the Hub does"
    file = f"{task.folder}/{CONFIG}"
    return Finding("source_unreadable", message, PUBLISHER, task=task.name, file=file, key="task.name")
