"""Runs command lines inside the test's process: quick, and just what `main` does."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema
import pytest

from argo_harbor.cli.main import run
from argo_harbor.schemas import FOLDER


class Done(NamedTuple):
    status: int
    stdout: str
    stderr: str

    def json(self, schema: str) -> dict[str, Any]:
        document = json.loads(self.stdout)
        jsonschema.validate(document, json.loads((FOLDER / f"{schema}.json").read_text()))
        return document  # type: ignore[no-any-return]

    @property
    def error(self) -> dict[str, Any]:
        body = self.json("error-document-1")["error"]
        assert isinstance(body, dict)
        return body


Command = Callable[..., Done]


@pytest.fixture
def argo_harbor(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Command:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ARGO_HARBOR_STORE", str(tmp_path / "store"))

    def command(*arguments: object) -> Done:
        capsys.readouterr()
        status = run([str(argument) for argument in arguments])
        return Done(status, *capsys.readouterr())

    return command
