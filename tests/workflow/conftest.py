"""Golden files: compared as objects, rewritten with ``pytest tests/workflow --update-goldens``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from argo_harbor.workflow.emit import to_yaml

GOLDENS = Path(__file__).parents[1] / "goldens"

Compare = Callable[[str, Any], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-goldens", action="store_true", help="rewrite the golden files, then review them"
    )


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Compare:
    """A function from a golden's file name and the present object to a failing test if they differ."""
    update = request.config.getoption("--update-goldens", default=False)

    def compare(name: str, present: Any) -> None:
        file = GOLDENS / name
        as_yaml = file.suffix == ".yaml"
        if update:
            text = to_yaml(present) if as_yaml else json.dumps(present, indent=2) + "\n"
            file.write_text(text)
        kept = yaml.safe_load(file.read_text()) if as_yaml else json.loads(file.read_text())
        assert present == kept, f"{name} differs; review the change with --update-goldens"

    return compare
