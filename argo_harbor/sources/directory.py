"""A suite or a single task in a folder of this machine: `--harbor-dir`.

Everything that is wrong with any task is said at once, and nothing is skipped silently.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import replace

from argo_harbor.collector import collector_paused
from argo_harbor.errors import Finding, Refused, UsageError
from argo_harbor.model.base import canonical_json, sha256_hex
from argo_harbor.model.taskset import Taskset, TasksetMember, Warned
from argo_harbor.sources.keys import deprecated_keys
from argo_harbor.sources.member import Member, printable, read_member, unreadable
from argo_harbor.sources.selection import select
from argo_harbor.sources.source import Listing, Selection
from argo_harbor.sources.toml import MAX_BYTES, BrokenToml, parse_toml
from argo_harbor.sources.tree import CONFIG

MANIFEST = "dataset.toml"
METRIC = "metric.py"
_NOT_IN_NAMES = re.compile(r"[^a-z0-9.-]")


class DirectorySource:
    """`--harbor-dir`. See `TaskSource`."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = path

    def list(self, tasks: Selection = None) -> Listing:
        return Listing.of(self.load(tasks))

    def load(self, tasks: Selection = None) -> Taskset:
        return select(read_directory(self._path), tasks)


def read_directory(path: str | os.PathLike[str]) -> Taskset:
    """The whole suite at `path`, or the one task if `path` holds a task.toml.

    Raises Refused with every finding of every task, UsageError when there is no task at all.
    """
    root = ""
    warnings: list[Warned] = []
    findings: list[Finding] = []
    try:
        root = os.path.abspath(path)
        if os.path.lexists(f"{root}/{CONFIG}"):
            folder = os.path.basename(root) or taskset_name(root)
            members = [read_member(os.path.realpath(root), folder=folder, prefix="")]
        else:
            with collector_paused():
                members = _read_members(root, warnings)
            findings += _manifest_findings(root)
    except OSError as error:
        finding = unreadable(error, root)
        hint = (
            finding.hint
            if isinstance(error, PermissionError)
            else "name a folder that holds tasks, or one task"
        )
        raise Refused.of([replace(finding, file=str(path), hint=hint)]) from error
    findings += [finding for member in members for finding in member.findings]
    findings += _duplicates(members)
    if findings:
        raise Refused.of(findings)
    if not members:
        raise UsageError(
            "no_tasks_selected",
            f"{path} holds no task",
            f"a task is a folder with a {CONFIG}; name the folder that holds such folders",
        )
    warnings += [warning for member in members for warning in member.warnings]
    warnings += deprecations(members)
    members.sort(key=lambda member: member.name.encode())
    tasks = tuple(member.as_task(index) for index, member in enumerate(members))
    refs = tuple(TasksetMember.model_construct(name=t.name, folder=t.folder, digest=t.digest) for t in tasks)
    return Taskset(taskset_name(root), taskset_digest(refs), tasks, len(tasks), tuple(warnings), refs)


def taskset_name(path: str) -> str:
    """Name of the suite in the folder at an absolute `path`: lower case, letters, digits, `.` and `-`
    only."""
    return _NOT_IN_NAMES.sub("-", os.path.basename(path).lower()) or "tasks"


def taskset_digest(tasks: Iterable[TasksetMember]) -> str:
    """SHA-256 over the set of (name, content digest), 64 hex; the order of the tasks does not count."""
    members = sorted((task.name, task.digest) for task in tasks)
    return sha256_hex(canonical_json([list(member) for member in members]))


def _read_members(root: str, warnings: list[Warned]) -> list[Member]:
    members = []
    real = os.path.realpath(root)
    with os.scandir(real) as entries:
        children = sorted((entry.name, entry.is_symlink()) for entry in entries if _is_child(entry))
    for folder, is_link in children:
        path = f"{real}/{folder}"
        if os.path.lexists(f"{path}/{CONFIG}") or not _searchable(path):
            path = os.path.realpath(path) if is_link else path
            members.append(read_member(path, folder=folder, prefix=f"{folder}/"))
        else:
            hint = f"add a {CONFIG}, or move the folder out of the suite"
            warnings.append(
                Warned("not_a_task", f"holds no {CONFIG} and is left out", file=printable(folder), hint=hint)
            )
    return members


def _is_child(entry: os.DirEntry[str]) -> bool:
    """True for folders and for links to nothing, which may have been meant as one."""
    if entry.name.startswith("."):
        return False
    return entry.is_dir() or (entry.is_symlink() and not entry.is_file())


def _searchable(folder: str) -> bool:
    """False for a folder that cannot be entered, so that nobody can say whether it is a task."""
    return not os.path.isdir(folder) or os.access(folder, os.R_OK | os.X_OK)


def _duplicates(members: list[Member]) -> list[Finding]:
    findings = []
    first: dict[str, Member] = {}
    for member in sorted(members, key=lambda member: member.folder):
        other = first.setdefault(member.name, member)
        if other is not member:
            message = f"has the same name as the task in {printable(other.folder)}"
            file = printable(f"{member.prefix}{CONFIG}")
            hint = "give each task a name of its own in task.name"
            findings.append(Finding("invalid_task_config", message, hint, member.name, file, "task.name"))
    return findings


def deprecations(members: list[Member]) -> list[Warned]:
    """One warning a key, not one a task: old suites use the same old keys throughout."""
    counts: dict[tuple[str, str], int] = {}
    for member in members:
        for key in member.deprecated:
            place = re.sub(r"\[\d+\]", "[]", key.path)
            entry = (place, deprecated_keys(key.model)[key.name])
            counts[entry] = counts.get(entry, 0) + 1
    return [
        Warned(
            "deprecated_key",
            f"is an old key, used by {count} {'task' if count == 1 else 'tasks'}",
            file=CONFIG,
            key=place,
            hint=f"write {new} instead",
        )
        for (place, new), count in counts.items()
    ]


def _manifest_findings(root: str) -> list[Finding]:
    """A dataset that brings a metric script is refused: it would run on the machine that merges."""
    manifest = f"{root}/{MANIFEST}"
    if not os.path.isfile(manifest):
        return []
    hint = f"remove the script from {MANIFEST}; rewards are averaged without it"
    refusal = Finding("metric_script_unsupported", "metric scripts are not run", hint)
    if os.path.lexists(f"{root}/{METRIC}"):
        return [replace(refusal, file=METRIC)]
    try:
        with open(manifest, "rb") as handle:
            data = parse_toml(handle.read(MAX_BYTES + 1))
    except BrokenToml as error:
        hint = "correct the file or remove it; it is only looked at for metric scripts"
        return [Finding("invalid_task_config", f"broken TOML: {error}", hint, file=MANIFEST)]
    listed = data.get("files")
    if isinstance(listed, list):
        for number, entry in enumerate(listed):
            if isinstance(entry, dict) and entry.get("path") == METRIC:
                return [replace(refusal, file=MANIFEST, key=f"files[{number}].path")]
    return []
