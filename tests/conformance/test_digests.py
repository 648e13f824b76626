"""Our digests are Harbor's, on trees with everything that Harbor's packager looks at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pathspec import PathSpec

from argo_harbor.sources.digest import content_digest, environment_digest, read_content
from argo_harbor.sources.ignore import BUILT_IN, built_in
from argo_harbor.sources.tree import read_tree
from tests.support.trees import CONFIG, fast_folder, make_plan, write_tree

packager = pytest.importorskip("harbor.publisher.packager")
definition = pytest.importorskip("harbor.environments.definition")
harbor_task = pytest.importorskip("harbor.models.task.task")

_FOLDERS = ("environment", "tests", "steps/one/tests")


@pytest.fixture
def fast_path() -> Iterator[Path]:
    with fast_folder() as folder:
        yield folder


def test_content_and_environment_digests_equal_harbors(fast_path: Path) -> None:
    compared = 0
    for number in range(340):
        root = write_tree(make_plan(number), fast_path / "task")
        compared += _compare(root, f"tree {number}")
    assert compared >= 300


def _compare(root: Path, which: str) -> bool:
    """Whether the digests of a tree were compared; False when both refuse it."""
    tree = read_tree(str(root))
    try:
        expected, files = packager.Packager.compute_content_hash(root)
    except (ValueError, OSError):
        assert tree.findings, which
        return False
    if tree.findings:
        _assert_harbor_refuses_inputs(root)
        return False
    content = read_content(tree.root, tree.files)
    assert [file.path for file in content.files] == [path.relative_to(root).as_posix() for path in files], (
        which
    )
    assert content.digest == expected, which
    assert content_digest(root) == expected, which
    for folder in _FOLDERS:
        expected = definition.environment_content_hash(root / folder, truncate=64)
        assert environment_digest(tree, folder) == expected, (which, folder)
    return True


def test_links_that_harbor_refuses_are_refused(fast_path: Path) -> None:
    refused = 0
    for number in range(100):
        root = write_tree(make_plan(number, bad_links=True), fast_path / "task")
        findings = read_tree(str(root)).findings
        try:
            harbor_task.Task._validate_input_paths(
                harbor_task.TaskConfig.model_validate_toml(CONFIG), harbor_task.TaskPaths(root)
            )
            packager.Packager.compute_content_hash(root)
        except (ValueError, OSError, RuntimeError):
            refused += 1
            assert findings, f"tree {number}"
    assert refused >= 20


def test_a_broken_tree_has_no_digest(tmp_path: Path) -> None:
    (tmp_path / "tests").symlink_to("/etc")
    with pytest.raises(ValueError, match="links out of the task"):
        content_digest(tmp_path)


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


def _assert_harbor_refuses_inputs(root: Path) -> None:
    """Links inside the task may form cycles, which Harbor finds when it checks the inputs of a trial."""
    from harbor.utils.path_safety import validate_input_tree

    with pytest.raises((ValueError, OSError, RuntimeError)):
        _validate_all(root, validate_input_tree)


def _validate_all(root: Path, validate: Callable[[Path, Path], None]) -> None:
    for folder in ("environment", "tests", "solution", "steps"):
        if (root / folder).exists():
            validate(root / folder, root)
