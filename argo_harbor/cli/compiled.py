"""The output folder of `compile`: written whole beside its place, then swapped in."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from argo_harbor.errors import PlatformError, UsageError
from argo_harbor.store.folder import replacing

if TYPE_CHECKING:
    from argo_harbor.model.plan import RunPlan

_FOLDERS = ("tasks", "parts")
_OURS = re.compile(r"workflow\.yaml|plan\.json|tasks(/[0-9]+\.json)?|parts(/[0-9]{3,}\.yaml)?")


def write_compiled(plan: RunPlan, objects: Sequence[object], target: Path) -> list[str]:
    """Write `workflow.yaml`, `parts/000.yaml…`, `plan.json` and `tasks/<index>.json`.

    Returns the paths relative to `target`, sorted. Raises UsageError `output_not_empty` when the folder holds
    anything that an earlier compile did not write, PlatformError `store_write_failed` when it cannot be
    written; the folder is then as it was.
    """
    from argo_harbor.workflow.emit import to_yaml

    files: dict[str, bytes] = {
        "workflow.yaml": to_yaml(objects[0]).encode(),
        "plan.json": plan.head.canonical(),
    }
    for number, part in enumerate(objects[1:]):
        files[f"parts/{number:03}.yaml"] = to_yaml(part).encode()
    for task in plan.parts:
        files[f"tasks/{task.index}.json"] = task.canonical()
    _check(target)
    with replacing(target) as fresh:
        for folder in {Path(name).parent for name in files}:
            (fresh / folder).mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (fresh / name).write_bytes(content)
    return sorted(files)


def _check(target: Path) -> None:
    try:
        names = _names_in(target)
    except FileNotFoundError:
        return
    except NotADirectoryError as error:
        raise UsageError("output_not_empty", f"{target} is a file", "name a folder with -o") from error
    except OSError as error:
        raise PlatformError(
            "store_write_failed",
            f"cannot read {target}: {error.strerror or error}",
            "name another folder with -o",
        ) from error
    foreign = [name for name in names if not _OURS.fullmatch(name)]
    if foreign or (names and "plan.json" not in names):
        shown = ", ".join((foreign or names)[:3])
        raise UsageError(
            "output_not_empty",
            f"{target} holds files that compile did not write: {shown}",
            "name an empty folder with -o",
        )


def _names_in(target: Path) -> list[str]:
    """What is in an output folder, and in the folders that compile itself makes there; sorted."""
    names = os.listdir(target)
    for folder in _FOLDERS:
        if os.path.isdir(target / folder):
            names += [f"{folder}/{name}" for name in os.listdir(target / folder)]
    return sorted(names)
