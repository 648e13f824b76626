"""The bases of a run in its scratch folder: each made once, by whoever comes first, in any process.

    bases/<key>.json    the `Base`, or the failure; written last
    bases/<key>/        layers of the base, never written to again
    bases/<key>.lock    held while somebody makes it; its holder's death frees it

A failure is remembered as well: the next trial of that image fails at once with the same words.
"""

from __future__ import annotations

import re
from pathlib import Path

from argo_harbor.model.base import Model
from argo_harbor.sandbox.base import ImageBuildFailed
from argo_harbor.sandbox.image import Base

_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


class _Outcome(Model):
    """What making a base left for later."""

    built: Base | None = None
    step: str = ""
    log: str = ""


class Shelf:
    """The place of one base."""

    def __init__(self, scratch: Path, key: str) -> None:
        """`key` is a name without slashes, such as the image key. Raises: ValueError for any other."""
        if not _KEY.fullmatch(key):
            raise ValueError(f"{key!r} cannot name a base")
        folder = scratch / "bases"
        folder.mkdir(exist_ok=True)
        folder.chmod(0o711)
        self.layers = folder / key
        self.unfinished = folder / f"{key}.building"
        self.lock = folder / f"{key}.lock"
        self._record = folder / f"{key}.json"

    def recall(self) -> Base | None:
        """The base, None when nobody has finished it. Raises: ImageBuildFailed with the remembered words."""
        try:
            outcome = _Outcome.from_json(self._record.read_bytes())
        except FileNotFoundError:
            return None
        if outcome.built is None:
            raise ImageBuildFailed(outcome.step, outcome.log)
        return outcome.built

    def remember(self, made: Base | ImageBuildFailed) -> None:
        match made:
            case Base():
                outcome = _Outcome(built=made)
            case ImageBuildFailed():
                outcome = _Outcome(step=made.step, log=made.log)
        part = self._record.with_suffix(".part")
        part.write_bytes(outcome.canonical())
        part.rename(self._record)
