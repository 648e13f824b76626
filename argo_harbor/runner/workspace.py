"""The scratch folder of one try: made before it runs, removed after it, whatever it left there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from argo_harbor.sandbox.scratch import remove_scratch


@contextmanager
def workspace(run_scratch: Path, name: str) -> Iterator[Path]:
    """An empty folder below the run's scratch folder, reachable for sandboxes, gone afterwards."""
    folder = run_scratch / name
    folder.mkdir(mode=0o711)
    folder.chmod(0o711)
    try:
        yield folder
    finally:
        remove_scratch(folder)
