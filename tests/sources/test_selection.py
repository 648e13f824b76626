"""`--tasks`: names, folders, indexes and globs."""

from __future__ import annotations

from pathlib import Path

import pytest

from argo_harbor.errors import UsageError
from argo_harbor.model.taskset import Taskset
from argo_harbor.sources import load_taskset
from argo_harbor.sources.selection import select
from tests.support.suites import make_suite


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Taskset:
    return load_taskset(make_suite(tmp_path_factory.mktemp("s") / "suite", tasks=12, shared_images=True))


@pytest.mark.parametrize(
    ("wanted", "indexes"),
    [
        ("0,2", [0, 2]),
        ("2,0,2", [0, 2]),
        (["11", "task-0001"], [1, 11]),
        ("acme/task-0003", [3]),
        (" task-0004 , 5", [4, 5]),
        ("task-000[12]", [1, 2]),
        ("acme/*-0010,task-000?", [*range(11)]),
        ("*", [*range(12)]),
        (None, [*range(12)]),
        ("007", [7]),
    ],
)
def test_selections_keep_the_indexes_of_the_suite(
    suite: Taskset, wanted: str | list[str] | None, indexes: list[int]
) -> None:
    chosen = select(suite, wanted)
    assert [task.index for task in chosen] == indexes
    assert (chosen.total, chosen.ref) == (12, suite.ref)


def test_every_unknown_entry_is_named_with_what_is_near(suite: Taskset) -> None:
    with pytest.raises(UsageError) as caught:
        select(suite, "0,12,task-001,zzz,x*")
    error = caught.value
    assert error.code == "unknown_tasks"
    assert [item.task for item in error.items] == ["12", "task-001", "zzz", "x*"]
    assert error.items[0].hint.startswith("indexes run from 0 to 11")
    assert error.items[1].hint.startswith("did you mean acme/task-0")
    assert "--list-tasks" in error.items[2].hint


@pytest.mark.parametrize("wanted", ["zzz", "99"])
def test_one_unknown_entry_has_its_own_message(suite: Taskset, wanted: str) -> None:
    with pytest.raises(UsageError, match=f"no such task: '{wanted}'"):
        select(suite, wanted)


@pytest.mark.parametrize("wanted", ["", ",", "nothing*", []])
def test_nothing_selected(suite: Taskset, wanted: str | list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        select(suite, wanted)
    assert caught.value.code == "no_tasks_selected"


def test_an_exact_name_is_no_glob(tmp_path: Path) -> None:
    suite = make_suite(tmp_path / "suite", tasks=2, org="")
    (suite / "task-0000").rename(suite / "[ab]")
    (suite / "task-0001").rename(suite / "a")
    taskset = load_taskset(suite, tasks="[ab]")
    assert [task.name for task in taskset] == ["[ab]"]


@pytest.mark.parametrize(("wanted", "indexes"), [("00", [0]), ("007", [7])])
def test_leading_zeros_of_an_index_do_not_count(suite: Taskset, wanted: str, indexes: list[int]) -> None:
    assert [task.index for task in select(suite, wanted)] == indexes


def test_an_index_of_thousands_of_digits_is_no_task(suite: Taskset) -> None:
    with pytest.raises(UsageError) as caught:
        select(suite, "1" * 5000)
    assert caught.value.code == "unknown_tasks"
