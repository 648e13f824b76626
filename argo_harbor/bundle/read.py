"""Reading a bundle back: `read_trials`, and the rows that checks and exports are made of."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from argo_harbor.bundle.trust import is_safe_path
from argo_harbor.errors import PlatformError
from argo_harbor.model.base import Model
from argo_harbor.model.bundle import RUN_FILE, TRIALS_FILE, Evidence, Trial
from argo_harbor.store.layout import BUNDLE


def read_trials(path: str | os.PathLike[str]) -> list[Trial]:
    """Every trial of a bundle, with evidence refs made absolute paths.

    `path` is the bundle's folder, or the folder that holds it as `agent-eval-results`. A ref that leaves the
    bundle, also through a link, is refused.

    Raises PlatformError `bundle_unreadable`: the bundle is not whole, a row is broken, or a ref leaves it.
    """
    folder = bundle_folder(Path(path))
    root = os.path.realpath(folder)
    return [_resolved(trial, root) for trial in read_rows(folder / TRIALS_FILE, Trial)]


def bundle_folder(path: Path) -> Path:
    """The bundle at or below `path`. Raises PlatformError `bundle_unreadable` when there is no whole one."""
    for folder in (path, path / BUNDLE):
        try:
            if (folder / RUN_FILE).is_file():
                return folder
        except OSError as error:
            raise _unreadable(f"{folder}: {error.strerror or error}") from error
    raise PlatformError(
        "bundle_unreadable",
        f"{path} holds no {RUN_FILE}: the results are not there, or not whole",
        "argo-harbor runs merge RUN writes them again",
    )


def read_rows[Row: Model](path: Path, model: type[Row]) -> Iterator[Row]:
    """The lines of a JSONL file. Raises PlatformError `bundle_unreadable`, naming file and line."""
    try:
        with path.open("rb") as source:
            for number, text in enumerate(source, start=1):
                try:
                    yield model.from_json(text)
                except ValidationError as error:
                    raise _unreadable(f"{path}, line {number}: {error.errors()[0]['msg']}") from error
    except OSError as error:
        raise _unreadable(f"{path}: {error.strerror or error}") from error


def read_file[Content: Model](path: Path, model: type[Content]) -> Content:
    """A JSON file. Raises PlatformError `bundle_unreadable`."""
    try:
        return model.from_json(path.read_bytes())
    except OSError as error:
        raise _unreadable(f"{path}: {error.strerror or error}") from error
    except ValidationError as error:
        raise _unreadable(f"{path}: {error.errors()[0]['msg']}") from error


def _resolved(trial: Trial, root: str) -> Trial:
    descriptors = {
        name: evidence.model_copy(update={"ref": _inside(trial, evidence, root)})
        for name, evidence in trial.evidence.descriptors.items()
    }
    return trial.model_copy(
        update={"evidence": trial.evidence.model_copy(update={"descriptors": descriptors})}
    )


def _inside(trial: Trial, evidence: Evidence, root: str) -> str | None:
    if evidence.ref is None:
        return None
    path = os.path.join(root, evidence.ref)
    if not is_safe_path(evidence.ref) or not os.path.realpath(path).startswith(root + os.sep):
        raise _unreadable(f"trial {trial.id} names evidence outside the bundle: {evidence.ref!r}")
    return path


def _unreadable(message: str) -> PlatformError:
    return PlatformError("bundle_unreadable", message, "argo-harbor runs merge RUN writes the results again")
