"""Our digests are Harbor's, on trees with everything that Harbor's packager looks at."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pathspec import PathSpec

from argo_harbor.sources.digest import environment_digest, read_content
from argo_harbor.sources.ignore import BUILT_IN, built_in
from argo_harbor.sources.tree import read_tree
from tests.support.trees import TreePlan, tree_plans, write_tree

packager = pytest.importorskip("harbor.publisher.packager")
definition = pytest.importorskip("harbor.environments.definition")
harbor_task = pytest.importorskip("harbor.models.task.task")

_FOLDERS = ("environment", "tests", "steps/one/tests")
many_trees = settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@given(plan=tree_plans())
@many_trees
def test_content_and_environment_digests_equal_harbors(plan: TreePlan, tmp_path: Path) -> None:
    root = write_tree(plan, tmp_path / "task")
    tree = read_tree(str(root))
    try:
        expected, files = packager.Packager.compute_content_hash(root)
    except (ValueError, OSError):
        assert tree.findings
        return
    if tree.findings:
        _assert_harbor_refuses_inputs(root, tree.findings)
        return
    content = read_content(tree.root, tree.files)
    assert [file.path for file in content.files] == [path.relative_to(root).as_posix() for path in files]
    assert content.digest == expected
    for folder in _FOLDERS:
        expected = definition.environment_content_hash(root / folder, truncate=64)
        assert environment_digest(tree, folder) == expected


@given(plan=tree_plans(inner_links_only=False))
@settings(many_trees, max_examples=60)
def test_links_that_harbor_refuses_are_refused(plan: TreePlan, tmp_path: Path) -> None:
    root = write_tree(plan, tmp_path / "task")
    findings = read_tree(str(root)).findings
    config = harbor_task.TaskConfig.model_validate_toml((root / "task.toml").read_text())
    try:
        harbor_task.Task._validate_input_paths(config, harbor_task.TaskPaths(root))
        packager.Packager.compute_content_hash(root)
    except (ValueError, OSError, RuntimeError):
        assert findings


def test_an_empty_environment_is_known_by_its_image_or_its_name(tmp_path: Path) -> None:
    (tmp_path / "environment").mkdir()
    tree = read_tree(str(tmp_path))
    for image in ("", "ubuntu:24.04"):
        expected = definition.environment_content_hash(
            tmp_path / "environment", docker_image=image or None, truncate=64
        )
        assert environment_digest(tree, "environment", docker_image=image) == expected
    assert environment_digest(tree, "tests") == definition.environment_content_hash(
        tmp_path / "tests", truncate=64
    )


_SPEC = PathSpec.from_lines("gitignore", BUILT_IN)
_PART = st.one_of(
    st.sampled_from(
        ("__pycache__", ".DS_Store", "a.pyc", ".pyc", "pyc", "b~", "~", "x.swp", "x.swo", "a", "x.swpx")
    ),
    st.text("a.~py\nc", min_size=1, max_size=6),
)


@given(st.lists(_PART, min_size=1, max_size=4).map("/".join))
@settings(max_examples=300)
def test_the_built_in_list_is_matched_as_its_patterns_are(path: str) -> None:
    assert built_in(path) == _SPEC.match_file(path)


def test_the_built_in_list_is_harbors() -> None:
    assert list(BUILT_IN) == packager.DEFAULT_IGNORES


def _assert_harbor_refuses_inputs(root: Path, findings: object) -> None:
    """Links inside the task can still form cycles, which Harbor finds when it checks the inputs of a
    trial."""
    from harbor.utils.path_safety import validate_input_tree

    with pytest.raises((ValueError, OSError, RuntimeError)):
        _validate_all(root, validate_input_tree)
    assert findings


def _validate_all(root: Path, validate: Callable[[Path, Path], None]) -> None:
    for folder in ("environment", "tests", "solution", "steps"):
        if (root / folder).exists():
            validate(root / folder, root)
