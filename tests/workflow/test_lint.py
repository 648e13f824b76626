"""What the compiler writes is accepted by ``argo lint`` and by the schema that the API server enforces."""

from __future__ import annotations

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
        pytest.param("onExit: merge", "onexit: merge", 'unknown field "spec.onexit"', id="unknown field"),
        pytest.param(
            "onExit: merge", "onExit: mergers", "template name 'mergers' undefined", id="unknown exit handler"
        ),
        pytest.param(
            "entrypoint: main",
            "entrypoint: other",
            "template name 'other' undefined",
            id="unknown entrypoint",
        ),
        pytest.param(
            "name: first\n        template: work",
            "name: first\n        template: wrok",
            "template name 'wrok' undefined",
            id="unresolved template",
        ),
        pytest.param(
            "template: work\n        depends",
            "templateRef: {name: other, template: work}\n        depends",
            'find workflow template "other"',
            id="unresolved reference",
        ),
        pytest.param(
            "build-x.Succeeded", "build-y.Succeeded", "invalid dependency build-y", id="dependency on nobody"
        ),
        pytest.param(
            "build-x.Succeeded",
            "build-x.Succeded",
            "result 'Succeded' for task 'build-x' is invalid",
            id="unknown result of a dependency",
        ),
        pytest.param("build-x.Succeeded", "first.Succeeded", "graph with cycle", id="cycle"),
        pytest.param(
            "depends: build-x.Succeeded",
            "depends: build-x.Succeeded\n        dependencies: [build-x]",
            "cannot use both 'depends' and 'dependencies'",
            id="depends and dependencies",
        ),
        pytest.param("name: first", "name: 1st", "name cannot begin with a digit", id="digit with depends"),
        pytest.param(
            "name: first", "name: build-x", "duplicated nodeName build-x", id="two tasks of one name"
        ),
        pytest.param("name: first", 'name: "#1"', "'#1' is invalid", id="task name"),
        pytest.param(
            "{{inputs.parameters.index}}",
            "{{inputs.parameters.idnex}}",
            "failed to resolve {{inputs.parameters.idnex}}",
            id="unknown parameter",
        ),
        pytest.param(
            "{{workflow.name}}",
            "{{workflow.parameters.run}}",
            "failed to resolve {{workflow.parameters.run}}",
            id="unknown argument",
        ),
        pytest.param(
            'arguments: {parameters: [{name: index, value: "1"}]}',
            "",
            "index was not supplied",
            id="missing argument",
        ),
        pytest.param("- name: merge", "- name: work", "'work' is not unique", id="two templates of one name"),
        pytest.param(
            "dag:\n",
            "activeDeadlineSeconds: 5\n    dag:\n",
            "activeDeadlineSeconds is only valid for leaf",
            id="dag deadline",
        ),
        pytest.param(
            "    podSpecPatch",
            "    suspend: {}\n    podSpecPatch",
            "multiple template types",
            id="two template types",
        ),
        pytest.param('limit: "2"', "limit: [2]", "cannot unmarshal array", id="wrong type"),
        pytest.param(
            "parallelism: 20",
            "parallelism: 20\n  parallelism: 20",
            "key 'parallelism' 2 times",
            id="key twice",
        ),
    ],
)
def test_lint_refuses(good: str, bad: str, complaint: str, argo_lint: Lint) -> None:
    broken = GOOD_WORKFLOW.replace(good, bad)
    assert broken != GOOD_WORKFLOW
    linted = argo_lint(broken)
    assert linted.returncode == 1
    assert complaint in linted.stdout + linted.stderr


@pytest.mark.parametrize(
    ("second", "complaint"),
    [
        pytest.param(GOOD_WORKFLOW.replace("onExit", "onexit"), "unknown field", id="broken"),
        pytest.param(
            GOOD_WORKFLOW + "kind: Workflow", "document 2 not linted: key 'kind' 2 times", id="key twice"
        ),
        pytest.param("a: [", "not linted: while parsing", id="no YAML"),
        pytest.param("- a", "document 2 not linted: no mapping", id="a list"),
        pytest.param("kind: Pod", "document 2 not linted: kind 'Pod' is none of", id="another kind"),
    ],
)
def test_no_document_is_passed_over(second: str, complaint: str, argo_lint: Lint) -> None:
    linted = argo_lint(f"{GOOD_WORKFLOW}\n---\n{second}")
    assert linted.returncode == 1
    assert complaint in linted.stdout + linted.stderr


def test_lint_refuses_nothing_at_all(argo_lint: Lint) -> None:
    linted = argo_lint("# no document")
    assert linted.returncode == 1
    assert "holds no document" in linted.stdout


def test_lint_resolves_references_between_files(tmp_path: Path, argo_lint: Lint) -> None:
    shared, user = tmp_path / "shared.yaml", tmp_path / "user.yaml"
    shared.write_text(
        GOOD_WORKFLOW.replace("kind: Workflow", "kind: WorkflowTemplate").replace(
            "generateName: run-", "name: shared"
        )
    )
    user.write_text(
        GOOD_WORKFLOW.replace(
            "template: work\n        depends", "templateRef: {name: shared, template: work}\n        depends"
        )
    )
    assert argo_lint(user).returncode == 1
    assert argo_lint([user, shared]).returncode == 0
