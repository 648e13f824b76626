"""The published schemas are those of the models, and every document has one."""

from __future__ import annotations

import json
import subprocess
import sys

import jsonschema
import pytest

from argo_harbor import schemas
from argo_harbor.errors import Finding, Refused
from argo_harbor.model import documents
from argo_harbor.model.base import Model
from argo_harbor.model.taskset import Warned


@pytest.mark.parametrize("name", sorted(schemas.PUBLISHED))
def test_committed_schema_is_the_models(name: str) -> None:
    file = schemas.FOLDER / f"{name}.json"
    assert file.read_text(encoding="utf-8") == schemas.schema_text(name), (
        "run `python -m argo_harbor.schemas` and review the change"
    )
    jsonschema.Draft202012Validator.check_schema(json.loads(file.read_text(encoding="utf-8")))


def test_no_schema_of_a_model_that_is_gone() -> None:
    assert {file.stem for file in schemas.FOLDER.glob("*.json")} == set(schemas.PUBLISHED)


def test_every_document_of_the_command_line_is_published() -> None:
    published = {entry.model for entry in schemas.PUBLISHED.values()}
    mine = [
        value
        for name, value in vars(documents).items()
        if name.endswith("Document") and isinstance(value, type) and issubclass(value, Model)
    ]
    assert mine
    assert set(mine) <= published


def test_writing_replaces_and_removes(tmp_path) -> None:
    (tmp_path / "gone-1.json").write_text("{}")
    names = schemas.write_all(tmp_path)
    assert sorted(file.stem for file in tmp_path.glob("*.json")) == names
    assert (tmp_path / "trial-1.json").read_text() == schemas.schema_text("trial-1")


def test_the_module_rewrites_the_files_and_changes_nothing() -> None:
    before = {file: file.read_bytes() for file in schemas.FOLDER.glob("*.json")}
    done = subprocess.run([sys.executable, "-m", "argo_harbor.schemas"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert {file: file.read_bytes() for file in schemas.FOLDER.glob("*.json")} == before


def test_an_error_is_a_document() -> None:
    error = Refused.of([Finding("invalid_task_config", "broken", hint="mend it", task="a", file="task.toml")])
    data = documents.ErrorDocument.of(error).as_data()
    assert data == error.as_json()
    jsonschema.validate(data, json.loads(schemas.schema_text("error-document-1")))


def test_warnings_and_findings_are_items() -> None:
    warned = Warned("unknown_key", "no such key", task="a", key="agent.x")
    (item,) = documents.Item.each([warned])
    assert item.as_data() == warned.as_json()
