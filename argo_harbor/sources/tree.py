"""One walk over a task folder: which files belong to its content, and what is wrong with the others.

The choice of files is Harbor's packager's. Links are followed where Harbor follows them (to files, and for
the four folders themselves), must stay inside the task, and must not form cycles. Nothing is opened here
except ignore files. Paths are POSIX and relative to the task.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field

from argo_harbor.errors import Finding
from argo_harbor.sources.ignore import GITIGNORE, HARBORIGNORE, HarborIgnore, Matcher, built_in, gitignore

CONFIG = "task.toml"
INSTRUCTION = "instruction.md"
SINGLES = (CONFIG, INSTRUCTION, "README.md", "trajectory.json")
FOLDERS = ("environment", "tests", "solution", "steps")
NOT_IN_IMAGES = frozenset({".DS_Store", ".git", "__pycache__"})

MAX_FILES = 100_000
"""Files of one task; an archive takes no more entries."""
_CODE = "invalid_task_config"


@dataclass(slots=True)
class Tree:
    """The files of one task."""

    root: str
    """Real path of the task folder."""
    files: list[str] = field(default_factory=list)
    """Content files, sorted: what is hashed and archived."""
    links: set[str] = field(default_factory=set)
    """Every link that was met, also below files that are left out."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Files that are there but do not belong to the content, each with the ignore file that says so."""
    dropped_links: list[str] = field(default_factory=list)
    """Links to folders or to nothing, which Harbor's packages do not hold."""
    findings: list[Finding] = field(default_factory=list)
    """Without the task, which the caller knows; `file` is relative to the task."""


def image_files(tree: Tree, folder: str) -> list[str]:
    """Files that make up the image context `folder` for Harbor, relative to it and sorted.

    Ignore files do not count there, links do not belong to it, and three names are left out at any depth.
    """
    prefix = f"{folder}/"
    inside = [
        path[len(prefix) :]
        for paths in (tree.files, tree.left_out)
        for path in paths
        if path.startswith(prefix) and path not in tree.links
    ]
    return sorted(path for path in inside if NOT_IN_IMAGES.isdisjoint(path.split("/")))


def read_tree(root: str, *, unpacked: bool = False) -> Tree:
    """Walk the task at `root`, a real path. Raises OSError when a folder cannot be read.

    A folder that was `unpacked` from an archive holds content only: nothing in it is ignored, although the
    ignore files that let it in are not there any more.
    """
    tree = Tree(root)
    with os.scandir(root) as entries:
        top = {entry.name: entry for entry in entries}
    for name in SINGLES:
        if name in top:
            if top[name].is_file(follow_symlinks=False):
                tree.files.append(name)
            else:
                _take_odd_single(tree, name)
    found = _Found()
    for name in FOLDERS:
        if name in top and (
            top[name].is_dir(follow_symlinks=False)
            or _is_folder_behind_link(tree, name, found, link=top[name].is_symlink())
        ):
            _walk(root, name, found)
    ignored: Matcher = _nothing
    harborignore = None
    if not unpacked:
        ignored = _gitignore(tree) if GITIGNORE in top else built_in
        harborignore = _harborignore(tree, found)
    try:
        _take(tree, found, ignored, harborignore)
    except ValueError as error:
        tree.findings.append(
            Finding(_CODE, str(error), f"correct the {HARBORIGNORE} file", file=HARBORIGNORE)
        )
    tree.files.sort()
    _check_names(tree)
    return tree


@dataclass(slots=True)
class _Found:
    """Everything in the four folders, before ignoring."""

    files: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    folder_links: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)


def _walk(root: str, top: str, found: _Found) -> None:
    folders = [top]
    files, links = found.files, found.links
    while folders:
        folder = folders.pop()
        with os.scandir(f"{root}/{folder}") as entries:
            for entry in entries:
                path = f"{folder}/{entry.name}"
                if entry.is_symlink():
                    links.append(path)
                elif entry.is_dir(follow_symlinks=False):
                    folders.append(path)
                elif entry.is_file(follow_symlinks=False):
                    files.append(path)
                else:
                    found.others.append(path)


def _take_odd_single(tree: Tree, name: str) -> None:
    path = f"{tree.root}/{name}"
    if os.path.islink(path):
        tree.links.add(name)
        if not _stays_inside(tree, name):
            return
        if not os.path.exists(path):
            tree.dropped_links.append(name)
            return
    if os.path.isfile(path):
        tree.files.append(name)
    else:
        tree.findings.append(Finding(_CODE, "is no file", f"make {name} a regular file", file=name))


def _is_folder_behind_link(tree: Tree, name: str, found: _Found, *, link: bool) -> bool:
    if link:
        if not _stays_inside(tree, name):
            return False
        if not os.path.exists(f"{tree.root}/{name}"):
            tree.dropped_links.append(name)
            return False
        found.folder_links.append(name)
    if os.path.isdir(f"{tree.root}/{name}"):
        return True
    tree.findings.append(Finding(_CODE, "is no folder", f"make {name} a folder or remove it", file=name))
    return False


def _take(tree: Tree, found: _Found, ignored: Matcher, harborignore: HarborIgnore | None) -> None:
    for path in found.files:
        if harborignore is not None and harborignore.leaves_out(path):
            tree.left_out[path] = HARBORIGNORE
        else:
            tree.files.append(path)
    tree.links.update(found.links)
    for path in found.links:
        target = f"{tree.root}/{path}"
        is_dir = os.path.isdir(target)
        if harborignore is not None and harborignore.leaves_out(path, is_dir=is_dir):
            tree.left_out[path] = HARBORIGNORE
        elif path.startswith("environment/") and ignored(path):
            # A .venv of the author's machine may link anywhere: it is neither hashed nor sent.
            tree.left_out[path] = GITIGNORE
        elif _stays_inside(tree, path):
            if is_dir:
                found.folder_links.append(path)
                tree.dropped_links.append(path)
            elif os.path.isfile(target):
                tree.files.append(path)
            elif os.path.exists(target):
                found.others.append(path)
            else:
                tree.dropped_links.append(path)
    kept = []
    for path in tree.files:
        if ignored(path):
            tree.left_out[path] = GITIGNORE
        else:
            kept.append(path)
    tree.files = kept
    for path in found.others:
        hint = "leave out pipes, sockets and devices"
        tree.findings.append(Finding(_CODE, "is neither file, folder nor link", hint, file=path))
    if found.folder_links:
        _follow(tree, found.folder_links)


def _nothing(_path: str) -> bool:
    return False


def _gitignore(tree: Tree) -> Matcher:
    path = f"{tree.root}/{GITIGNORE}"
    if os.path.islink(path) and not _stays_inside(tree, GITIGNORE):
        return built_in
    if not os.path.exists(path):
        return built_in
    try:
        with open(path, encoding="utf-8") as handle:
            return gitignore(handle.read())
    except (ValueError, IsADirectoryError) as error:
        hint = "correct the patterns or remove the file"
        tree.findings.append(Finding(_CODE, f"cannot be understood: {error}", hint, file=GITIGNORE))
        return built_in


def _harborignore(tree: Tree, found: _Found) -> HarborIgnore | None:
    suffix = f"/{HARBORIGNORE}"
    for path in found.files:
        if path.endswith(suffix) or f"{suffix}/" in path:
            return HarborIgnore(tree.root)
    for path in found.links:
        if path.endswith(suffix) or os.path.realpath(f"{tree.root}/{path}").endswith(suffix):
            return HarborIgnore(tree.root)
    return None


def _stays_inside(tree: Tree, path: str) -> bool:
    real = os.path.realpath(f"{tree.root}/{path}")
    if real == tree.root or real.startswith(f"{tree.root}/"):
        return True
    hint = "copy the file into the task and link to it by a relative path"
    tree.findings.append(Finding(_CODE, "links out of the task", hint, file=path))
    return False


def _follow(tree: Tree, links: Iterable[str]) -> None:
    """Look behind links to folders for cycles and for links that leave the task."""
    seen: set[str] = set()
    for link in links:
        start = os.path.realpath(f"{tree.root}/{link}")
        trail = _folders_above(tree.root, link)
        if start in trail:
            _report_cycle(tree, link)
            continue
        pending = [(link, start, trail | {start})]
        while pending:
            shown, folder, ancestors = pending.pop()
            if folder in seen:
                continue
            seen.add(folder)
            with os.scandir(folder) as entries:
                children = sorted((entry.name, entry.is_symlink(), entry.is_dir()) for entry in entries)
            for name, is_link, is_dir in children:
                path = f"{shown}/{name}"
                if is_link and not _stays_inside(tree, path):
                    continue
                if not is_dir:
                    continue
                real = os.path.realpath(f"{folder}/{name}")
                if real in ancestors:
                    _report_cycle(tree, path)
                else:
                    pending.append((path, real, ancestors | {real}))


def _folders_above(root: str, path: str) -> frozenset[str]:
    """Real paths of the folders that hold an entry, from the task down."""
    folder = os.path.realpath(os.path.dirname(f"{root}/{path}"))
    below = folder[len(root) :]
    return frozenset(root + below[:end] for end, char in enumerate(f"{below}/") if char == "/")


def _report_cycle(tree: Tree, path: str) -> None:
    hint = "link to a folder that does not hold the link"
    tree.findings.append(Finding(_CODE, "links to a folder that holds it", hint, file=path))


def _check_names(tree: Tree) -> None:
    if len(tree.files) > MAX_FILES:
        hint = "pack data into one file or bring it in the image"
        tree.findings.append(Finding(_CODE, f"has {len(tree.files)} files, more than {MAX_FILES}", hint))
    for path in tree.files:
        if not path.isascii():
            try:
                path.encode()
            except UnicodeEncodeError:
                shown = path.encode(errors="backslashreplace").decode()
                tree.findings.append(
                    Finding(_CODE, "has a name that is not UTF-8", "rename the file", file=shown)
                )
