"""`--list-tasks`: which tasks a source has, uploading nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from argo_harbor.cli import output

if TYPE_CHECKING:
    from argo_harbor.sources.source import Listing


def print_tasks(listing: Listing, *, as_json: bool) -> None:
    if as_json:
        from argo_harbor.model.documents import Item, ListedTask, TaskListDocument

        output.document(
            TaskListDocument(
                taskset_ref=listing.ref,
                source=listing.origin.pinned if listing.origin else "",
                tasks=tuple(ListedTask(index=index, name=task.name) for index, task in listing.tasks),
                warnings=Item.each(listing.warnings),
            )
        )
        return
    output.warnings(listing.warnings)
    output.table(
        ["#", "Task", "Folder"],
        ([str(index), task.name, task.folder] for index, task in listing.tasks),
        right=["#"],
    )
    pinned = f", {listing.origin.pinned}" if listing.origin else ""
    output.line(f"\n{len(listing.tasks)} of {listing.total} tasks, {listing.ref}{pinned}")
