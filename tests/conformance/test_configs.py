"""What Harbor and we both accept has the same values, and what Harbor refuses we refuse."""

from __future__ import annotations

import copy
import enum
import warnings
from pathlib import Path

import pytest
import tomli_w
from hypothesis import HealthCheck, assume, given, settings

from argo_harbor.model.task import TaskConfig, TaskModel
from argo_harbor.sources.config import read_config
from tests.support.documents import Document, clean_documents, odd_documents

harbor_config = pytest.importorskip("harbor.models.task.config")

EXAMPLES = Path(__file__).parents[2] / "examples"
example_files = sorted(EXAMPLES.rglob("task.toml"))
many_documents = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def harbors(text: str) -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return harbor_config.TaskConfig.model_validate_toml(text)


def assert_same(ours: object, theirs: object, place: str = "") -> None:
    """Field by field; every field of Harbor's models must exist in ours and the other way round."""
    if isinstance(ours, TaskModel):
        assert set(type(ours).model_fields) == set(type(theirs).model_fields), place
        for name in type(ours).model_fields:
            assert_same(getattr(ours, name), getattr(theirs, name), f"{place}.{name}")
    elif isinstance(ours, list):
        assert isinstance(theirs, list), place
        assert len(ours) == len(theirs), place
        for number, pair in enumerate(zip(ours, theirs, strict=True)):
            assert_same(*pair, f"{place}[{number}]")
    else:
        value = theirs.value if isinstance(theirs, enum.Enum) else theirs
        assert ours == value, place
        assert type(ours) is type(value), place


@given(clean_documents())
@many_documents
def test_accepted_documents_have_harbors_values(document: Document) -> None:
    text = tomli_w.dumps(document)
    reading = read_config(text.encode())
    assert reading.findings == []
    assert reading.unknown == []
    assert_same(reading.config, harbors(text))


@given(odd_documents())
@many_documents
def test_what_harbor_refuses_is_refused(document: Document) -> None:
    try:
        text = tomli_w.dumps(document)
    except ValueError:
        assume(False)
    reading = read_config(text.encode())
    if reading.config is None:
        assert reading.findings
        assert all(finding.message and finding.hint for finding in reading.findings)
    else:
        assert_same(reading.config, harbors(text))


@pytest.mark.parametrize("file", example_files, ids=lambda file: file.parent.name)
def test_examples_have_harbors_values(file: Path) -> None:
    reading = read_config(file.read_bytes())
    assert reading.findings == []
    assert_same(reading.config, harbors(file.read_text()))


def test_there_are_examples() -> None:
    assert example_files


@pytest.mark.parametrize(
    "text",
    [
        "environment = {\n cpus = 1,\n}",
        'source = "\\e"',
        'source = "\\x41"',
        "[metadata]\nt = 07:32",
        "a = 1\r\nb = 2\rc = 3",
        "a = [" * 2000,
        "cpus = 1" + "0" * 5000,
    ],
)
def test_toml_that_harbor_cannot_read_is_refused(text: str) -> None:
    with pytest.raises((ValueError, RecursionError)):
        harbors(text)
    assert read_config(text.encode()).findings[0].message.startswith("broken TOML")


def test_models_do_not_change_what_they_read() -> None:
    document = {"version": "1.0", "environment": {"memory": "2G", "storage": "1G", "allow_internet": False}}
    before = copy.deepcopy(document)
    TaskConfig.model_validate(document)
    assert document == before
