"""Which folder of a repository is meant, and what to say when it is not there: which others hold tasks."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from argo_harbor.errors import UsageError
from argo_harbor.sources.git.address import GitAddress
from argo_harbor.sources.git.refs import Wanted
from argo_harbor.sources.member import printable

WHOLE = "."
"""Names the repository itself, where it is the suite."""
_SHOWN = 4

type Suites = Mapping[str, int]
"""Number of tasks by the folder that holds them."""


def check_folder(folder: str) -> None:
    """Raises UsageError for what no folder of a repository is called."""
    if folder != WHOLE and any(part in {"", ".", ".."} for part in folder.split("/")):
        hint = f"name it from the top of the repository, or {WHOLE} for the repository itself"
        raise UsageError("unknown_flag_value", f"{printable(folder)} is no folder of a repository", hint)


def no_folder(address: GitAddress, wanted: Wanted, kind: str, suites: Suites) -> UsageError:
    """The error for a folder that is not there, or is a `link`, a `blob` or a submodule (`commit`)."""
    what = {
        "link": "is a link, and no folder,",
        "blob": "is a file, and no folder,",
        "commit": "is a submodule, which is not read,",
    }.get(kind, "does not exist")
    message = f"{printable(wanted.folder)} {what} in {address.shown} at {printable(wanted.ref)}"
    return UsageError("unknown_source_ref", message, _hint(address, wanted, suites))


def no_tasks(address: GitAddress, wanted: Wanted, suites: Suites) -> UsageError:
    """The error for a folder without a task."""
    message = f"{printable(wanted.folder)} in {address.shown} at {printable(wanted.ref)} holds no task"
    return UsageError("no_tasks_selected", message, _hint(address, wanted, suites))


def _hint(address: GitAddress, wanted: Wanted, suites: Suites) -> str:
    if not suites:
        return "no folder of it holds tasks: a task is a folder with a task.toml"
    near = difflib.get_close_matches(wanted.folder, suites, n=_SHOWN)
    most = sorted(suites, key=lambda folder: (-suites[folder], folder))
    best = list(dict.fromkeys([*near, *most]))[:_SHOWN]
    named = [f"{printable(folder)} ({suites[folder]})" for folder in best]
    more = f" and {len(suites) - len(best)} more" if len(suites) > len(best) else ""
    return f"{printable(address.tree(wanted.ref, best[0]))}; tasks are in {', '.join(named)}{more}"
