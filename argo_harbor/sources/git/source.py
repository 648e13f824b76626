"""Tasks in a Git repository: `--harbor-git`.

The ref becomes a commit, and of that commit only the folder's files come to this machine, byte for byte as
they were committed. From there on they are read like any other folder.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from argo_harbor.errors import PlatformError, Refused, UsageError
from argo_harbor.model.taskset import Origin, Taskset
from argo_harbor.sources.directory import read_directory, taskset_name
from argo_harbor.sources.git.address import DEFAULT_FOLDER, FORMS, GitAddress, parse_address
from argo_harbor.sources.git.errors import GitFailed, explain
from argo_harbor.sources.git.files import check_links, check_sizes, write_files
from argo_harbor.sources.git.folders import WHOLE, check_folder, no_folder, no_tasks
from argo_harbor.sources.git.pointers import hashed_pointers, placed_pointers
from argo_harbor.sources.git.program import PATIENCE, UPLOAD_PACK, Git, find_git
from argo_harbor.sources.git.refs import (
    Wanted,
    default_branch,
    look_up,
    parse_refs,
    possible_refs,
    whole_commit,
)
from argo_harbor.sources.git.snapshot import Snapshot
from argo_harbor.sources.git.tree import Choice, choose
from argo_harbor.sources.selection import select
from argo_harbor.sources.source import Listing, Selection, program_folder

_PATIENCE_FOR_A_HINT = 10.0


class GitSource:
    """See `TaskSource`. The digest of a suite needs all of its files, so both calls fetch them."""

    def __init__(
        self, text: str, *, say: Callable[[str], None] = lambda text: None, patience: float = PATIENCE
    ) -> None:
        """`patience`: seconds that a server may send nothing."""
        self._text = text
        self._say = say
        self._patience = patience

    def list(self, tasks: Selection = None) -> Listing:
        return Listing.of(select(self._read(), tasks))

    def load(self, tasks: Selection = None) -> Taskset:
        """Raises Refused `lfs_pointer` besides what a folder of this machine would give."""
        taskset = self._read()
        self._say("Its packages hold build, solution and verifier code that will run")
        return select(taskset, tasks)

    def _read(self) -> Taskset:
        address = parse_address(self._text)
        program = find_git()
        folder = program_folder("git")
        try:
            with tempfile.TemporaryDirectory(dir=folder) as work:
                git = Git(program, Path(work), address.shown, self._say, self._patience)
                return _Reading(git, address).read(folder)
        except BaseException as error:
            shutil.rmtree(folder, ignore_errors=True)
            if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
                raise _unwritable(error, address) from error
            raise


class _Reading:
    """The steps from an address to a taskset."""

    def __init__(self, git: Git, address: GitAddress) -> None:
        self._git = git
        self._address = address
        self._snapshot = Snapshot(git, address)

    def read(self, folder: Path) -> Taskset:
        wanted = self._resolve()
        check_folder(wanted.folder)
        commit = self._snapshot.fetch(wanted)
        self._git.say(f"Git source {self._address.pinned(commit, wanted.folder)}")
        choice = self._choose(wanted, commit)
        last = wanted.folder.rpartition("/")[2]
        # The name of the folder is the name of a single task that has none of its own.
        root = folder / "suite" / (self._address.repository if last == WHOLE else last)
        pointers = self._bring(choice, root)
        taskset = _read_tasks(root, pointers, is_task=choice.is_task)
        named_by_folder = wanted.folder not in {DEFAULT_FOLDER, WHOLE}
        within = "" if wanted.folder == DEFAULT_FOLDER else f"/{wanted.folder}"
        return replace(
            taskset,
            name=taskset_name(f"/{last if named_by_folder else self._address.repository}"),
            warnings=(*choice.warnings, *taskset.warnings),
            origin=Origin(
                self._address.recorded(commit, wanted.folder), f"{self._address.dataset}{within}", commit
            ),
        )

    def _resolve(self) -> Wanted:
        if not self._address.ref and not self._address.trail:
            raise self._no_ref()
        if whole := whole_commit(self._address):
            return whole
        try:
            try:
                return look_up(self._address, parse_refs(self._refs(self._git, "--heads", "--tags")))
            except UsageError:
                # Refs of neither kind, such as pull/12/head, are listed only when asked for: there are many.
                others = parse_refs(self._refs(self._git, named=possible_refs(self._address)))
                if not others:
                    raise
                return look_up(self._address, others)
        except GitFailed as failed:
            raise explain(failed, self._address) from failed

    def _refs(self, git: Git, *options: str, named: Sequence[str] = ()) -> bytes:
        """Refs of the repository, all or those `named`. Raises GitFailed."""
        served = [f"--upload-pack={UPLOAD_PACK}"] if self._address.local else []
        return git.ask("ls-remote", *options, *served, "--", self._address.url, *named)

    def _no_ref(self) -> UsageError:
        """Asks for the default branch, so that the hint can be copied."""
        branch = ""
        hurried = replace(self._git, patience=min(self._git.patience, _PATIENCE_FOR_A_HINT))
        try:
            branch = default_branch(self._refs(hurried, "--symref", named=["HEAD"]))
        except (GitFailed, PlatformError) as error:
            self._git.say(f"{self._address.shown} did not name its default branch: {error}")
        if not branch:
            return UsageError("unknown_flag_value", f"{self._address.shown} has no ref", FORMS)
        return UsageError(
            "unknown_flag_value",
            f"{self._address.shown} has no ref: tasks of a branch change, so it has to be named",
            f"{self._address.shown}@{branch}, or {self._address.tree(branch, 'FOLDER')}",
        )

    def _choose(self, wanted: Wanted, commit: str) -> Choice:
        kind, tree = self._snapshot.folder(commit, wanted.folder)
        if kind != "tree":
            raise no_folder(self._address, wanted, kind, self._snapshot.suites(commit))
        choice = choose(self._snapshot.entries(tree))
        if not choice.has_tasks:
            raise no_tasks(self._address, wanted, self._snapshot.suites(commit))
        return choice

    def _bring(self, choice: Choice, root: Path) -> list[str]:
        """Write the chosen files below `root` and return those that are Git LFS pointers."""
        self._git.say(f"Fetching {len(choice.files)} files")
        sizes = self._snapshot.fetch_blobs(choice.files)
        check_sizes(choice.files, sizes)
        root.mkdir(parents=True)
        for other in choice.others:
            (root / other).mkdir(exist_ok=True)
        with self._snapshot.contents(choice.files) as contents:
            pointers = write_files(choice.files, contents, str(root))
        if not choice.is_task:
            check_links(str(root))
        return pointers


def _unwritable(error: OSError, address: GitAddress) -> PlatformError:
    return PlatformError(
        "source_unreachable",
        f"the files of {address.shown} cannot be written: {error.strerror or error}",
        f"make room in {tempfile.gettempdir()}, or set TMPDIR to another folder",
    )


def _read_tasks(root: Path, pointers: list[str], *, is_task: bool) -> Taskset:
    """The whole suite. Raises Refused, with the pointers before what may come of them."""
    try:
        taskset = read_directory(root)
    except Refused as error:
        placed = placed_pointers(pointers, is_task=is_task)
        if placed:
            raise Refused.of([*placed, *error.items]) from error
        raise
    findings = hashed_pointers(taskset.tasks, str(root), pointers)
    if findings:
        raise Refused.of(findings)
    return taskset
