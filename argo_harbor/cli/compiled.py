"""The output folder of `compile`: written whole beside its place, then swapped in."""

from __future__ import annotations

import errno
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from argo_harbor.cli.exchange import exchange
from argo_harbor.errors import PlatformError, UsageError

if TYPE_CHECKING:
    from argo_harbor.model.plan import RunPlan

_OURS = ("workflow.yaml", "plan.json", "tasks", "parts")


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
    temporary: Path | None = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
        for folder in {Path(name).parent for name in files}:
            (temporary / folder).mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (temporary / name).write_bytes(content)
        temporary.chmod(0o755)
        _swap(temporary, target)
    except OSError as error:
        raise PlatformError(
            "store_write_failed",
            f"cannot write {target}: {error.strerror or error}",
            "free some space or name another folder with -o",
        ) from error
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)
    return sorted(files)


def _check(target: Path) -> None:
    if not target.exists():
        return
    if not target.is_dir():
        raise UsageError("output_not_empty", f"{target} is a file", "name a folder with -o")
    names = {path.name for path in target.iterdir()}
    foreign = sorted(names - set(_OURS))
    if foreign or (names and "plan.json" not in names):
        shown = ", ".join((foreign or sorted(names))[:3])
        raise UsageError(
            "output_not_empty",
            f"{target} holds files that compile did not write: {shown}",
            "name an empty folder with -o",
        )


def _swap(fresh: Path, target: Path) -> None:
    """Put the fresh folder in the target's place; the old one ends where the fresh one was, to be removed."""
    if not target.exists():
        fresh.rename(target)
        return
    try:
        exchange(fresh, target)
    except OSError as error:
        if error.errno not in (errno.ENOSYS, errno.EINVAL):
            raise
        aside = fresh.with_name(fresh.name + "-old")
        target.rename(aside)
        fresh.rename(target)
        aside.rename(fresh)
