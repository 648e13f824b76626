"""Hypothesis strategies for task folders with everything that decides a digest: odd names, links, modes,
ignore files. Written to disk by `write_tree`, to be hashed by Harbor and by us."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path
from typing import NamedTuple

from hypothesis import strategies as st

CONFIG = '[environment]\ndocker_image = "ubuntu:24.04"\n'

_NAMES = st.sampled_from(
    (
        "a", "b.txt", "run.sh", "Dockerfile", "data.pyc", ".pyc", "x.swp", "y.swo", "draft~", "~",
        ".DS_Store", "__pycache__", "README.md", "test.sh", "solve.sh", "keep.log", "drop.log", ".hidden",
        ".git", "secret", "-rf", "two words", "line\nbreak", "tail\n", "x.pyc\n", "a\nb.pyc", "tab\t",
        "ünïcödé", "日本語", "é", "e\u0301", "a" * 200, "back\\slash", "'quote", '"', "*", "[x]", "#hash",
        "!bang", "\u2028", "\x07", "tests",
    )
)  # fmt: skip
_ANY_NAME = st.text(
    st.characters(blacklist_categories=("Cs",), blacklist_characters="/\0"), min_size=1, max_size=12
).filter(lambda name: name not in {".", ".."} and len(name.encode()) < 200)
_NAME = st.one_of(_NAMES, _NAMES, _ANY_NAME)
_TOPS = (
    "environment",
    "tests",
    "solution",
    "steps",
    "other",
    "steps/one/tests",
    "steps/one/solution",
    "steps/one",
)
_PATH = st.builds(
    lambda top, middle, name: "/".join([top, *middle, name]),
    st.sampled_from(_TOPS),
    st.lists(_NAME, max_size=2),
    _NAME,
)
_PATTERNS = st.sampled_from(
    (
        "*.log", "!keep.log", "secret", "/secret", "secret/", "a/", "/tests/a", "tests/", "environment/*",
        "**/b.txt", "*", "!*.sh", "!*/", "# comment", "", "  ", "\\#hash", "\\!bang", "a*", "?", "[a-z]",
        "steps/**/tests", "x.pyc", "one/tests/secret", "draft~ ", "two words", ".hidden", "!/b.txt", "/*/a",
        "日本語", "README.md",
    )
)  # fmt: skip
_IGNORE = st.lists(_PATTERNS, max_size=5).map("\n".join)


class Link(NamedTuple):
    """A link at `path`; `target` is a path in the task, made relative, or literal text with `raw`."""

    path: str
    target: str
    raw: bool


class TreePlan(NamedTuple):
    """What to write."""

    files: dict[str, tuple[bytes, int]]
    """Content and mode by path."""
    links: list[Link]
    ignores: dict[str, str]
    """Text of ignore files by path."""


_FILES = st.dictionaries(
    _PATH,
    st.tuples(st.binary(max_size=40), st.sampled_from((0o644, 0o755, 0o600, 0o444, 0o777, 0o4755))),
    max_size=14,
)
_IGNORE_PLACES = st.sampled_from(
    (".gitignore", "tests/.harborignore", "solution/.harborignore", "steps/one/tests/.harborignore",
     "tests/a/.harborignore", "environment/.harborignore", ".harborignore", "steps/.harborignore",
     "tests/a/b.txt/.harborignore", "environment/.gitignore")
)  # fmt: skip


@st.composite
def tree_plans(draw: st.DrawFn, *, inner_links_only: bool = True) -> TreePlan:
    """Plans of a task folder. Links stay inside the task and to files that exist, unless asked otherwise."""
    files = draw(_FILES)
    for single in draw(st.sets(st.sampled_from(("instruction.md", "README.md", "trajectory.json")))):
        files[single] = (single.encode(), 0o644)
    files["task.toml"] = (CONFIG.encode(), 0o644)
    known = sorted(files)
    folders = sorted({path.rpartition("/")[0] for path in known if "/" in path})
    links: list[Link] = []
    for _ in range(draw(st.integers(0, 4))):
        targets = st.sampled_from([*known, *[link.path for link in links]])
        if folders:
            targets = st.one_of(targets, targets, st.sampled_from(folders))
        if not inner_links_only:
            raw = st.sampled_from(("/etc/passwd", "../../..", "nothing", ".", "..", "../../outside", "/"))
            if draw(st.booleans()):
                links.append(Link(draw(_PATH), draw(raw), True))
                continue
        links.append(Link(draw(_PATH), draw(targets), False))
    ignores = draw(st.dictionaries(_IGNORE_PLACES, _IGNORE, max_size=3))
    return TreePlan(files, links, ignores)


def write_tree(plan: TreePlan, root: Path) -> Path:
    """Write the plan into the emptied folder `root`; what contradicts what is already there is left out."""
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    for path, (data, mode) in sorted(plan.files.items()):
        _write(root / path, data, mode)
    for path, text in plan.ignores.items():
        _write(root / path, text.encode(), 0o644)
    for link in plan.links:
        place = root / link.path
        with contextlib.suppress(FileExistsError, NotADirectoryError):
            place.parent.mkdir(parents=True, exist_ok=True)
            target = link.target if link.raw else os.path.relpath(root / link.target, place.parent)
            place.symlink_to(target)
    return root


def _write(path: Path, data: bytes, mode: int) -> None:
    with contextlib.suppress(FileExistsError, NotADirectoryError, IsADirectoryError):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(mode)
