from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argo_harbor.planning.names import (
    EXPRESSION_WORDS,
    MAX_LENGTH,
    RESERVED,
    RESERVED_PREFIXES,
    dag_names,
)

DISPLAY_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9-]{0,60}[a-zA-Z0-9]")
TASK_NAME = st.text("abAB01._-/", min_size=1, max_size=70)
ODD = st.sampled_from(
    ["acme/gate", "acme/build-x", "b/1", "acme/a.b", "acme/a_b", "acme/a-b", "x/true", "…", ""]
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("acme/hello-world", "hello-world"),
        ("folder", "folder"),
        ("acme/Fix_git.v2", "Fix-git-v2"),
        ("acme/3d-print", "task-3d-print"),
        ("acme/gate", "task-gate"),
        ("acme/Merge", "task-Merge"),
        ("acme/build-kernel", "task-build-kernel"),
        ("acme/network-x", "task-network-x"),
        ("acme/true", "task-true"),
        ("acme/x", "task-x"),
        ("acme/trailing-", "trailing"),
    ],
)
def test_readable_names(name: str, expected: str) -> None:
    assert dag_names([name]) == [expected]


def test_a_name_without_letters_or_digits_still_gets_one() -> None:
    (name,) = dag_names(["…"])
    assert re.fullmatch(r"task-[0-9a-f]{8}", name)


def test_colliding_names_get_a_tail_of_their_whole_name() -> None:
    both = dag_names(["acme/a.b", "acme/a_b", "acme/other"])
    assert both[2] == "other"
    assert all(re.fullmatch(r"a-b-[0-9a-f]{8}", name) for name in both[:2])
    assert dag_names(["acme/a_b", "acme/other", "acme/a.b"]) == [both[1], both[2], both[0]]


def test_long_names_are_cut_and_stay_different() -> None:
    long = [f"acme/{'x' * 80}{tail}" for tail in "ab"]
    names = dag_names(long)
    assert len(set(names)) == 2
    assert all(len(name) == MAX_LENGTH for name in names)


@settings(deadline=None)
@given(st.lists(st.one_of(TASK_NAME, ODD, st.text(max_size=5)), max_size=12, unique=True))
def test_every_name_is_fit_for_argo_and_unique(names: list[str]) -> None:
    found = dag_names(names)
    assert len({name.lower() for name in found}) == len(names)
    for name in found:
        assert DISPLAY_NAME.fullmatch(name)
        assert len(name) <= MAX_LENGTH
        assert name.lower() not in RESERVED | EXPRESSION_WORDS
        assert not name.lower().startswith(RESERVED_PREFIXES)
