"""Argo accepts the large runs too, above all every part of one that is really split."""

from __future__ import annotations

from pathlib import Path

import pytest

from argo_harbor.workflow.emit import to_yaml
from tests.support.fixtures_argo import CrdErrors, Lint
from tests.support.large import large_workflows

pytestmark = pytest.mark.lint


def test_argo_accepts_large_workflows(argo_lint: Lint, workflow_crd: CrdErrors, tmp_path: Path) -> None:
    files = []
    for name, document in large_workflows():
        assert workflow_crd(document) == [], name
        files.append(tmp_path / f"{name}.yaml")
        files[-1].write_text(to_yaml(document))
    linted = argo_lint(files)
    assert linted.returncode == 0, linted.stdout + linted.stderr
