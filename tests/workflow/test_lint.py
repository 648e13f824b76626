"""What the compiler writes is accepted by ``argo lint`` and by the schema that the API server enforces."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tests.support.fixtures_argo import CrdErrors, Lint
from tests.support.good_workflow import GOOD_WORKFLOW

pytestmark = pytest.mark.lint

GOLDENS = Path(__file__).parents[1] / "goldens"


def golden_workflows() -> list[Path]:
    """Every golden file that holds an object for Argo; other goldens lie beside them."""
    return [file for file in sorted(GOLDENS.rglob("*.yaml")) if "argoproj.io/" in file.read_text()]


def test_there_are_goldens_to_check() -> None:
    assert golden_workflows()


@pytest.mark.parametrize("golden", golden_workflows(), ids=lambda file: str(file.relative_to(GOLDENS)))
def test_argo_accepts_the_golden(golden: Path, argo_lint: Lint, workflow_crd: CrdErrors) -> None:
    linted = argo_lint(golden)
    assert linted.returncode == 0, linted.stdout + linted.stderr
    for document in yaml.load_all(golden.read_text(), Loader=yaml.CSafeLoader):
        assert workflow_crd(document) == []


def test_lint_takes_a_good_workflow(argo_lint: Lint) -> None:
    linted = argo_lint(GOOD_WORKFLOW)
    assert linted.returncode == 0, linted.stdout + linted.stderr


@pytest.mark.parametrize(
    ("good", "bad", "complaint"),
    [
        pytest.param("onExit: merge", "onexit: merge", "XXX", id="unknown field"),
        pytest.param("onExit: merge", "onExit: mergers", "XXX", id="unknown exit handler"),
        pytest.param("entrypoint: main", "entrypoint: other", "XXX", id="unknown entrypoint"),
        pytest.param(
            "name: first\n        template: work",
            "name: first\n        template: wrok",
            "XXX",
            id="unresolved template",
        ),
        pytest.param(
            "template: work\n        depends",
            "templateRef: {name: other, template: work}\n        depends",
            "XXX",
            id="unresolved reference",
        ),
        pytest.param("build-x.Succeeded", "build-y.Succeeded", "XXX", id="dependency on nobody"),
        pytest.param("build-x.Succeeded", "build-x.Succeded", "XXX", id="unknown result of a dependency"),
        pytest.param("build-x.Succeeded", "first.Succeeded", "XXX", id="cycle"),
        pytest.param(
            "depends: build-x.Succeeded",
            "depends: build-x.Succeeded\n        dependencies: [build-x]",
            "XXX",
            id="depends and dependencies",
        ),
        pytest.param("name: first", "name: 1st", "XXX", id="digit with depends"),
        pytest.param("name: first", "name: build-x", "XXX", id="two tasks of one name"),
        pytest.param("name: first", 'name: "#1"', "XXX", id="task name"),
        pytest.param(
            "{{inputs.parameters.index}}", "{{inputs.parameters.idnex}}", "XXX", id="unknown parameter"
        ),
        pytest.param("{{workflow.name}}", "{{workflow.parameters.run}}", "XXX", id="unknown argument"),
        pytest.param(
            'arguments: {parameters: [{name: index, value: "1"}]}', "", "XXX", id="missing argument"
        ),
        pytest.param("- name: merge", "- name: work", "XXX", id="two templates of one name"),
        pytest.param("dag:\n", "activeDeadlineSeconds: 5\n    dag:\n", "XXX", id="dag deadline"),
        pytest.param("    podSpecPatch", "    suspend: {}\n    podSpecPatch", "XXX", id="two template types"),
        pytest.param('limit: "2"', "limit: [2]", "XXX", id="wrong type"),
        pytest.param("parallelism: 20", "parallelism: 20\n  parallelism: 20", "XXX", id="key twice"),
    ],
)
def test_lint_refuses(good: str, bad: str, complaint: str, argo_lint: Lint) -> None:
    broken = GOOD_WORKFLOW.replace(good, bad)
    assert broken != GOOD_WORKFLOW
    linted = argo_lint(broken)
    assert linted.returncode == 1
    assert re.search(complaint, linted.stdout + linted.stderr)
