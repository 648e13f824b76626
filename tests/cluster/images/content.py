"""The build context of an image: gathered into a folder, and told apart from others by a digest."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.cluster.images.catalogue import Image
from tests.cluster.images.debian import LEFT_OUT, PACKAGES

_NOT_SOURCES = shutil.ignore_patterns("__pycache__", "*.pyc")


def digest(image: Image, *, programs: Mapping[str, Path], bases: Mapping[str, str]) -> str:
    """16 hex over all that decides what is in the image; `bases` has the digests of the images below."""
    files = {**image.files, **{place: programs[name] for place, name in image.programs.items()}}
    parts = {
        "dockerfile": image.dockerfile.read_text(),
        "suite": [image.suite, *PACKAGES, *LEFT_OUT] if image.suite else [],
        "bases": {argument: bases[name] for argument, name in image.bases.items()},
        "arguments": dict(image.arguments),
        "texts": dict(image.texts),
        "files": {place: list(_listed(source)) for place, source in files.items()},
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def gather(image: Image, context: Path, *, programs: Mapping[str, Path], root: Path | None) -> None:
    """Fill the empty folder `context`; `root` is the archive of the image's Debian."""
    if root is not None:
        os.link(root, context / "root.tar")
    for place, source in image.files.items():
        target = _place(context, place)
        if source.is_dir():
            shutil.copytree(source, target, ignore=_NOT_SOURCES, symlinks=True)
        else:
            shutil.copy2(source, target)
    for place, name in image.programs.items():
        shutil.copyfile(programs[name], _place(context, place))
        (context / place).chmod(0o755)
    for place, text in image.texts.items():
        _place(context, place).write_text(text)


def _place(context: Path, place: str) -> Path:
    target = context / place
    target.parent.mkdir(parents=True, exist_ok=True)
    return target


def _listed(source: Path) -> Iterator[tuple[str, str]]:
    """Every file below `source`, or itself, with a digest of its content."""
    if source.is_file():
        yield "", _sha256(source)
        return
    for folder, folders, names in os.walk(source):
        folders[:] = sorted(set(folders) - {"__pycache__"})
        for name in sorted(names):
            file = Path(folder, name)
            yield str(file.relative_to(source)), _sha256(file)


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
