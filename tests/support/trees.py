"""Task folders with everything that decides a digest: odd names, links, modes, ignore files.

Made from a number, so that a failing tree can be made again: `write_tree(make_plan(17), folder)`. Plain
random numbers, because drawing as many trees from strategies takes longer than hashing them.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

CONFIG = '[environment]\ndocker_image = "ubuntu:24.04"\n'

_NAMES = (
    "a", "b.txt", "run.sh", "Dockerfile", "data.pyc", ".pyc", "x.swp", "y.swo", "draft~", "~", ".DS_Store",
    "__pycache__", "README.md", "test.sh", "solve.sh", "keep.log", "drop.log", ".hidden", ".git", "secret",
    "-rf", "two words", "line\nbreak", "tail\n", "x.pyc\n", "a\nb.pyc", "tab\t", "ünïcödé", "日本語", "é",
    "e\u0301", "a" * 200, "back\\slash", "'quote", '"', "*", "[x]", "#hash", "!bang", "\u2028", "\x07",
    "tests",
)  # fmt: skip
_ODD_LETTERS = "abz.~-_ \n\t\\*?[]!#$%'\"éß日😀\x01\x7f\u200f"
_TOPS = (
    "environment", "tests", "solution", "steps", "other", "steps/one/tests", "steps/one/solution",
    "steps/one",
)  # fmt: skip
_MODES = (0o644, 0o755, 0o600, 0o444, 0o777, 0o4755)
_PATTERNS = (
    "*.log", "!keep.log", "secret", "/secret", "secret/", "a/", "/tests/a", "tests/", "environment/*",
    "**/b.txt", "*", "!*.sh", "!*/", "# comment", "", "  ", "\\#hash", "\\!bang", "a*", "?", "[a-z]",
    "steps/**/tests",
    "x.pyc", "one/tests/secret", "draft~ ", "two words", ".hidden", "!/b.txt", "/*/a", "日本語",
    "README.md",
)  # fmt: skip
_IGNORE_FILES = (
    ".gitignore", ".gitignore", "tests/.harborignore", "tests/.harborignore", "solution/.harborignore",
    "steps/one/tests/.harborignore", "tests/a/.harborignore", "environment/.harborignore", ".harborignore",
    "steps/.harborignore", "tests/a/b.txt/.harborignore", "environment/.gitignore",
)  # fmt: skip
_BAD_TARGETS = ("/etc/passwd", "../../..", "nothing", ".", "..", "../../outside", "/")


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


def make_plan(number: int, *, bad_links: bool = False) -> TreePlan:
    """The tree of that number. Its links lead to files and folders of the task, or elsewhere if asked for."""
    dice = random.Random(number)
    files = {
        _path(dice): (dice.randbytes(dice.randrange(40)), dice.choice(_MODES))
        for _ in range(dice.randrange(15))
    }
    for single in ("instruction.md", "README.md", "trajectory.json"):
        if dice.random() < 0.5:
            files[single] = (single.encode(), 0o644)
    files["task.toml"] = (CONFIG.encode(), 0o644)
    folders = sorted({path.rpartition("/")[0] for path in files if "/" in path})
    links: list[Link] = []
    for _ in range(dice.randrange(5)):
        if bad_links and dice.random() < 0.5:
            links.append(Link(_path(dice), dice.choice(_BAD_TARGETS), True))
            continue
        targets = [*files, *files, *(link.path for link in links), *folders]
        links.append(Link(_path(dice), dice.choice(targets), False))
    ignores = {
        dice.choice(_IGNORE_FILES): "\n".join(dice.choices(_PATTERNS, k=dice.randrange(6)))
        for _ in range(dice.choice((0, 0, 1, 2, 3)))
    }
    return TreePlan(files, links, ignores)


@contextlib.contextmanager
def fast_folder() -> Iterator[Path]:
    """A temporary folder in memory where there is one: on disks, removing hundreds of trees takes longest."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        yield Path(folder)


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


def _path(dice: random.Random) -> str:
    parts = [_name(dice) for _ in range(1 + dice.choice((0, 0, 1, 2)))]
    return "/".join([dice.choice(_TOPS), *parts])


def _name(dice: random.Random) -> str:
    if dice.random() < 0.8:
        return dice.choice(_NAMES)
    name = "".join(dice.choices(_ODD_LETTERS, k=1 + dice.randrange(8)))
    return "x" if name in {".", ".."} else name


def _write(path: Path, data: bytes, mode: int) -> None:
    with contextlib.suppress(FileExistsError, NotADirectoryError, IsADirectoryError):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(mode)
