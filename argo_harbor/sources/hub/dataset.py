"""A dataset as the Hub describes it, and what must hold before any of its tasks is fetched.

The Hub's answers are hostile until checked: names become folders of the cache, and the digest of a dataset
covers the digests of its tasks and files, but not their names. That a task is the one that its name says is
therefore checked against its own task.toml, once it is here.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from argo_harbor.errors import Finding, Refused, UsageError
from argo_harbor.model.taskset import Origin, TasksetMember, Warned
from argo_harbor.sources.directory import METRIC
from argo_harbor.sources.hub.ref import HubRef, is_package_name
from argo_harbor.sources.member import printable

_HEX = re.compile(r"[0-9a-f]{64}")
PUBLISHER = "report it to the publisher of the dataset, or take another version"


@dataclass(frozen=True, slots=True)
class HubTask:
    """One task of a dataset."""

    name: str
    """`org/name`."""
    digest: str
    """Content digest, 64 hex."""


@dataclass(frozen=True, slots=True)
class HubDataset:
    """One version of a dataset."""

    name: str
    digest: str
    """64 hex, as the Hub says; `check_dataset` compares."""
    tasks: tuple[HubTask, ...]
    files: tuple[tuple[str, str], ...] = ()
    """Name and SHA-256 of the files that belong to the dataset and to no task."""
    hidden: int = 0
    """Tasks that this account may not see."""
    yanked: str | None = None
    """Why the version was withdrawn; None when it was not."""

    @property
    def pinned(self) -> str:
        return f"{self.name}@sha256:{self.digest}"

    @property
    def origin(self) -> Origin:
        return Origin(pinned=self.pinned, name=self.name, version=f"sha256:{self.digest}")

    @property
    def warnings(self) -> tuple[Warned, ...]:
        if self.yanked is None:
            return ()
        return (yanked_warning(self.yanked, file=self.pinned),)


def yanked_warning(reason: str, *, task: str = "", file: str = "") -> Warned:
    why = f": {printable(reason)[:200]}" if reason else ""
    hint = "take a newer version unless you repeat an old run"
    return Warned("version_yanked", f"was withdrawn by its publisher{why}", hint=hint, task=task, file=file)


def dataset_digest(tasks: Iterable[HubTask], files: Iterable[tuple[str, str]]) -> str:
    """Harbor's content hash of a dataset, 64 hex."""
    text = ",".join(sorted(task.digest for task in tasks))
    listed = sorted(f"{path}:{digest}" for path, digest in files)
    if listed:
        text += ";" + ",".join(listed)
    return hashlib.sha256(text.encode()).hexdigest()


def check_dataset(dataset: HubDataset, asked: HubRef) -> None:
    """Raise for a dataset that cannot be taken as the one that was asked for.

    Raises Refused with every finding, UsageError `no_tasks_selected` for a dataset without tasks.
    """
    if dataset.hidden:
        total = dataset.hidden + len(dataset.tasks)
        message = f"{dataset.hidden} of {total} tasks of {asked} cannot be seen by this account"
        hint = "sign in with `harbor auth login`, or ask their owners for access"
        raise Refused("source_unreadable", message, hint)
    findings = [*_odd_values(dataset), *_metric(dataset), *_repeated(dataset)]
    if not findings:
        findings += _other_digest(dataset, asked)
    if findings:
        raise Refused.of(findings, "dataset")
    if not dataset.tasks:
        raise UsageError("no_tasks_selected", f"{asked} holds no task", "take another version or dataset")


def members_of(dataset: HubDataset) -> tuple[TasksetMember, ...]:
    """The tasks in order of their index, which is by the UTF-8 bytes of their names.

    A folder is the part after `/`; where two organisations share it, it is the whole name with `@`, which no
    name holds, in the place of the `/`.
    """
    shorts = Counter(_short(task.name) for task in dataset.tasks)
    return tuple(
        TasksetMember(
            name=task.name,
            folder=short if shorts[short := _short(task.name)] == 1 else task.name.replace("/", "@"),
            digest=task.digest,
        )
        for task in sorted(dataset.tasks, key=lambda task: task.name.encode())
    )


def _short(name: str) -> str:
    return name.rpartition("/")[2]


def _odd_values(dataset: HubDataset) -> list[Finding]:
    odd = [f"the task name {printable(task.name)[:100]!r}" for task in dataset.tasks if not _is_task(task)]
    odd += [f"the file {printable(path)[:100]!r}" for path, digest in dataset.files if not _is_hex(digest)]
    if not _is_hex(dataset.digest):
        odd.append(f"the digest {printable(dataset.digest)[:100]!r}")
    return [
        Finding(
            "source_unreadable", f"the Hub gives {what}, which is malformed", PUBLISHER, file=dataset.name
        )
        for what in odd
    ]


def _is_task(task: HubTask) -> bool:
    return is_package_name(task.name) and _is_hex(task.digest)


def _is_hex(text: str) -> bool:
    return _HEX.fullmatch(text) is not None


def _metric(dataset: HubDataset) -> list[Finding]:
    hint = "take a dataset without it, or copy the tasks and name the folder with --harbor-dir"
    return [
        Finding("metric_script_unsupported", "metric scripts are not run", hint, file=path)
        for path, _ in dataset.files
        if path == METRIC
    ]


def _repeated(dataset: HubDataset) -> list[Finding]:
    counts = Counter(task.name for task in dataset.tasks)
    return [
        Finding("invalid_task_config", f"is in the dataset {count} times", PUBLISHER, task=printable(name))
        for name, count in counts.items()
        if count > 1
    ]


def _other_digest(dataset: HubDataset, asked: HubRef) -> list[Finding]:
    found = dataset_digest(dataset.tasks, dataset.files)
    wanted = asked.digest or dataset.digest
    if found == wanted == dataset.digest:
        return []
    message = f"its tasks and files have the digest {found}, not {wanted}"
    hint = "do not use it: what the Hub sent is not what was published"
    return [Finding("source_unreadable", message, hint, file=dataset.name)]
