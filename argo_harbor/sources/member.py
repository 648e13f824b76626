"""One task folder: its config, files, digests and images, or everything that is wrong with it."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass, field, replace
from pathlib import Path

from argo_harbor.errors import Finding
from argo_harbor.model.task import TaskConfig
from argo_harbor.model.taskset import Task, Warned
from argo_harbor.sources.checks import check_task
from argo_harbor.sources.config import CODE, read_config
from argo_harbor.sources.digest import Content, FileReading, read_content, read_file
from argo_harbor.sources.images import ImageReader, Images
from argo_harbor.sources.keys import Key, nearest_key
from argo_harbor.sources.toml import MAX_BYTES
from argo_harbor.sources.tree import CONFIG, Tree, read_tree

_GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EINVAL})
"""Also what is no longer a regular file."""


@dataclass(slots=True)
class Member:
    """A task as it was read. Without findings, `config`, `content` and `images` are there."""

    name: str
    folder: str
    root: str
    """Real path of the folder."""
    prefix: str
    """What stands before the task's own paths in findings: the folder in a suite, nothing for a single
    task."""
    config: TaskConfig | None = None
    content: Content | None = None
    images: Images | None = None
    findings: list[Finding] = field(default_factory=list)
    warnings: list[Warned] = field(default_factory=list)
    deprecated: list[Key] = field(default_factory=list)

    def find(self, finding: Finding) -> None:
        """Take a finding about a path of the task, once."""
        placed = replace(finding, task=self.name, file=printable((self.prefix + finding.file).rstrip("/")))
        if placed not in self.findings:
            self.findings.append(placed)

    def warn(self, code: str, message: str, *, file: str = CONFIG, key: str = "", hint: str = "") -> None:
        place = printable(self.prefix + file)
        self.warnings.append(Warned(code, message, task=self.name, file=place, key=key, hint=hint))

    def as_task(self, index: int) -> Task:
        """The task at its place in the suite. Raises ValueError when there are findings."""
        if self.config is None or self.content is None or self.images is None:
            raise ValueError(f"{self.name} has findings and is no task")
        return Task(
            name=self.name,
            folder=self.folder,
            index=index,
            digest=self.content.digest,
            config=self.config,
            files=self.content.files,
            agent_image=self.images.agent,
            verifier_image=self.images.verifier,
            step_verifier_images=self.images.step_verifiers,
            compose=self.images.compose,
            root=Path(self.root),
        )


def read_member(path: str, *, folder: str, prefix: str, unpacked: bool = False) -> Member:
    """Read the task at the real path `path`, where an archive was `unpacked` or as its author left it.

    Never raises for what it finds there: all is in the result's findings.
    """
    member = Member(folder, folder, path, prefix)
    try:
        _read(member, read_tree(member.root, unpacked=unpacked))
    except OSError as error:
        finding = unreadable(error, member.root)
        if error.errno in _GONE:
            # The walk has just met it, so somebody works on the task.
            hint = "repeat the command when nobody works on the task any more"
            finding = replace(finding, code="source_changed", hint=hint)
        member.find(finding)
    return member


def unreadable(error: OSError, root: str) -> Finding:
    """A finding for a file or folder below `root` that the system does not let us read."""
    path = str(error.filename or "")
    shown = os.path.relpath(path, root) if root and path.startswith(root) else path
    reason = error.strerror or str(error)
    hint = "give the account that runs this program the right to read it"
    return Finding("source_unreadable", f"cannot be read: {reason}", hint, file="" if shown == "." else shown)


def printable(text: str) -> str:
    """A path or name that may be shown on a terminal: control characters escaped."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape", "surrogatepass").decode()
        for char in text
    )


def _read(member: Member, tree: Tree) -> None:
    known = {}
    if CONFIG in tree.files or CONFIG in tree.left_out:
        known[CONFIG] = read_file(f"{member.root}/{CONFIG}")
        _read_config(member, known[CONFIG])
    elif not any(finding.file == CONFIG for finding in tree.findings):
        member.find(Finding(CODE, "is a link to nothing", f"put a {CONFIG} in its place", file=CONFIG))
    _check_name(member)
    for finding in tree.findings:
        member.find(finding)
    for link in tree.dropped_links:
        hint = "put the files themselves in its place when the task needs them"
        member.warn("link_left_out", "links to a folder or to nothing and is left out", file=link, hint=hint)
    config = member.config
    if config is None:
        return
    for finding in check_task(config, tree):
        member.find(finding)
    if not member.findings:
        _read_content(member, config, tree, known)


def _read_config(member: Member, file: FileReading) -> None:
    data = file.data
    if data is None:
        with open(f"{member.root}/{CONFIG}", "rb") as handle:
            data = handle.read(MAX_BYTES + 1)
    reading = read_config(data)
    member.name = reading.named or member.folder
    member.config = reading.config
    member.deprecated = reading.deprecated
    for finding in reading.findings:
        member.find(replace(finding, file=CONFIG))
    for key in reading.unknown:
        member.warn("unknown_key", "is no key that Harbor knows", key=key.path, hint=nearest_key(key))


def _check_name(member: Member) -> None:
    if not member.name.isprintable():
        member.name = printable(member.name)
        message = "the name of the task holds control characters or is not UTF-8"
        member.find(
            Finding(CODE, message, "rename the folder or set task.name", file=CONFIG, key="task.name")
        )


def _read_content(member: Member, config: TaskConfig, tree: Tree, known: dict[str, FileReading]) -> None:
    separate = any(config.verifier_mode(step) == "separate" for step in config.steps or (None,))
    contexts = ("environment/", "tests/", "steps/") if separate else ("environment/",)
    content = read_content(tree.root, tree.files, keep=contexts, known=known)
    member.images = ImageReader(tree, content).read(config)
    # The bytes have served; kept, they would be the larger part of a suite in memory.
    member.content = content._replace(small={})
