"""The output folder of `compile`: written whole beside its place, then swapped in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from argo_harbor.errors import UsageError
from argo_harbor.store.folder import replacing

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
    with replacing(target) as fresh:
        for folder in {Path(name).parent for name in files}:
            (fresh / folder).mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (fresh / name).write_bytes(content)
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
