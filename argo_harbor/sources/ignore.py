"""Which files of a task are left out of its content, by the rules of Harbor's packager.

A root .gitignore replaces the built-in list; .harborignore files count only inside `tests` and `solution`,
also those of steps. Patterns are matched by pathspec, which takes long to import, so it is loaded only for
tasks that bring patterns; the built-in list is matched by hand.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec, PathSpec

GITIGNORE = ".gitignore"
HARBORIGNORE = ".harborignore"
BUILT_IN = ("__pycache__/", "*.pyc", ".DS_Store", "*.swp", "*.swo", "*~")
_SUFFIXES = tuple(pattern[1:] for pattern in BUILT_IN if pattern.startswith("*"))
_SCOPES = frozenset({"tests", "solution"})

Matcher = Callable[[str], bool]
"""Takes a file's POSIX path relative to the task and says whether it is left out."""


def built_in(path: str) -> bool:
    """True when the built-in list leaves a file out."""
    if "\n" in path:
        # In the patterns' regular expressions a line break ends or splits a match; not worth imitating.
        return _built_in_spec().match_file(path)
    folder, _, name = path.rpartition("/")
    if name.endswith(_SUFFIXES) or name == ".DS_Store":
        return True
    if "." not in folder and "~" not in folder and "__pycache__" not in folder:
        return False
    return any(part in {"__pycache__", ".DS_Store"} or part.endswith(_SUFFIXES) for part in folder.split("/"))


@cache
def _built_in_spec() -> PathSpec[Any]:
    return _compile(BUILT_IN)


def _compile(patterns: tuple[str, ...] | list[str]) -> PathSpec[Any]:
    from pathspec import PathSpec

    return PathSpec.from_lines("gitignore", patterns)


def gitignore(text: str) -> Matcher:
    """Matcher of a root .gitignore. Raises ValueError for a pattern that is none."""
    return _compile(text.splitlines()).match_file


class HarborIgnore:
    """.harborignore files of one task, read when first needed.

    `root` must be the real path of the task. Methods raise OSError and ValueError (also for bytes that are no
    UTF-8) from reading them.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._specs: dict[str, GitIgnoreSpec] = {}

    def leaves_out(self, path: str, *, is_dir: bool = False) -> bool:
        """True when an entry of the task, or what it links to inside the task, is left out."""
        if HARBORIGNORE in path.split("/") or self._matches(path, is_dir=is_dir):
            return True
        real = os.path.relpath(os.path.realpath(f"{self._root}/{path}"), self._root)
        if real in {path, "."} or real.startswith("../"):
            return False
        return real.rpartition("/")[2] == HARBORIGNORE or self._matches(real, is_dir=is_dir)

    def _matches(self, path: str, *, is_dir: bool) -> bool:
        parts = path.split("/")
        depth = _scope_depth(parts)
        if not depth or (len(parts) == depth and not is_dir):
            return False
        for end in range(depth + 1, len(parts) + 1):
            suffix = "/" if end < len(parts) or is_dir else ""
            verdict = False
            for above in range(depth, end):
                match = self._spec("/".join(parts[:above])).check_file("/".join(parts[above:end]) + suffix)
                if match.include is not None:
                    verdict = match.include
            if verdict:
                return True
        return False

    def _spec(self, folder: str) -> GitIgnoreSpec:
        if folder not in self._specs:
            from pathspec import GitIgnoreSpec

            file = f"{self._root}/{folder}/{HARBORIGNORE}"
            text = ""
            if os.path.lexists(file):
                real = os.path.realpath(file)
                if os.path.commonpath([real, self._root]) != self._root:
                    raise ValueError(f"{folder}/{HARBORIGNORE} links out of the task")
                if os.path.isdir(real):
                    raise ValueError(f"{folder}/{HARBORIGNORE} is no file")
                if os.path.exists(real):
                    with open(real, encoding="utf-8") as handle:
                        text = handle.read()
            self._specs[folder] = GitIgnoreSpec.from_lines(text.splitlines())
        return self._specs[folder]


def _scope_depth(parts: list[str]) -> int:
    """How many leading parts name the folder in which .harborignore counts; 0 outside such folders."""
    if parts[0] in _SCOPES:
        return 1
    if parts[0] == "steps" and len(parts) > 2 and parts[2] in _SCOPES:
        return 3
    return 0
