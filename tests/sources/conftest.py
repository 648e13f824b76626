"""Task folders written by hand, for tests of reading."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.trees import fast_folder

WriteTask = Callable[..., Path]


@pytest.fixture
def write_task(tmp_path: Path) -> WriteTask:
    """`write_task(name, toml, {path: text}, without=…)` writes a good task below `suite` and returns its
    folder."""

    def write(
        name: str = "one",
        toml: str = "",
        files: dict[str, str] | None = None,
        *,
        without: tuple[str, ...] = (),
    ) -> Path:
        root = tmp_path / "suite" / name
        good = {
            "instruction.md": "Do it.\n",
            "environment/Dockerfile": "FROM ubuntu:24.04\n",
            "tests/test.sh": "#!/bin/bash\necho 1 > /logs/verifier/reward.txt\n",
        }
        for path, text in (good | {"task.toml": toml} | (files or {})).items():
            if path in without:
                continue
            place = root / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
            if path.endswith(".sh"):
                place.chmod(0o755)
        return root

    return write


@pytest.fixture
def fast_path() -> Iterator[Path]:
    with fast_folder() as folder:
        yield folder
