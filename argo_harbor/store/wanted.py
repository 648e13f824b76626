"""Which of some objects are in a store, asked in the cheaper of two ways."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from argo_harbor.store.base import Entry, Store

_FEW = 8
"""Prefixes that are listed one by one; for more the whole folder is."""


def list_wanted(store: Store, prefixes: Collection[str], *, folder: str) -> Iterator[Entry]:
    """The objects below these prefixes of a folder, and perhaps others of the folder.

    A folder on a disk is listed by one look at it; of a server the whole listing may be a thousand requests.
    Raises PlatformError `store_unreadable`.
    """
    one_by_one = len(prefixes) <= _FEW and store.parallel > 1
    for prefix in prefixes if one_by_one else [folder]:
        yield from store.list(prefix)
