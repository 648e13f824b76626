"""Going on without tasks that are refused after the plan was made."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from argo_harbor.cli.refused import without_refused
from argo_harbor.errors import Finding, Refused
from argo_harbor.planning.report import Refusals
from tests.cli.conftest import Command
from tests.engines.suite import write_task


def finding(task: str, code: str = "local_user_unsupported") -> Finding:
    return Finding(code, "no", task=task)


def rest(refused: Refusals) -> list[str]:
    return [task for task in "abcd" if task not in refused]


def test_each_refusal_takes_its_tasks_out() -> None:
    answers = [
        Refused.of([finding("a"), finding("a", "preview_unsupported"), finding("c")]),
        Refused.of([finding("d")]),
    ]
    seen: list[Refusals] = []

    def make(refused: Refusals) -> list[str]:
        seen.append({task: list(found) for task, found in refused.items()})
        return rest(refused)

    def use(tasks: list[str]) -> int:
        if answers:
            raise answers.pop(0)
        return len(tasks)

    assert without_refused(make, use, skip=True) == (["b"], 1)
    assert [{task: [each.code for each in found] for task, found in each.items()} for each in seen][1:] == [
        {"a": ["local_user_unsupported", "preview_unsupported"], "c": ["local_user_unsupported"]},
        {
            "a": ["local_user_unsupported", "preview_unsupported"],
            "c": ["local_user_unsupported"],
            "d": ["local_user_unsupported"],
        },
    ]


@pytest.mark.parametrize(
    ("refusal", "skip"),
    [
        (Refused.of([finding("a")]), False),
        (Refused.of([finding("a"), finding("", "local_agent_unsupported")]), True),
        (
            Refused("image_not_built", "tasks without images", "build", [finding("a", "image_not_built")]),
            True,
        ),
        (Refused("invalid_spec", "no", "cure"), True),
    ],
    ids=["not asked for", "of the whole request", "not built yet", "without items"],
)
def test_what_leaving_out_does_not_cure_is_raised(refusal: Refused, skip: bool) -> None:
    def use(tasks: list[str]) -> None:
        raise refusal

    with pytest.raises(Refused) as raised:
        without_refused(rest, use, skip=skip)
    assert raised.value is refusal


def test_a_refusal_that_names_the_same_tasks_again_ends_it() -> None:
    def use(tasks: list[str]) -> None:
        raise Refused.of([finding("a")])

    with pytest.raises(Refused):
        without_refused(rest, use, skip=True)


def test_a_request_that_comes_through_a_pipe_is_read_once(argo_harbor: Command, tmp_path: Path) -> None:
    write_task(tmp_path / "suite", "fine")
    config = write_task(tmp_path / "suite", "other") / "task.toml"
    config.write_text(config.read_text().replace("[agent]", '[agent]\nuser = "nobody"'))
    reader, writer = os.pipe()
    os.write(writer, json.dumps({"spec": {"target": {"source": {"name": "nop"}}}, "execution": {}}).encode())
    os.close(writer)
    place = ("--engine", "local", "--base", "preview", "--dry-run", "--json")
    flags = ("--harbor-dir", tmp_path / "suite", "--spec-file", f"/dev/fd/{reader}", "--skip-refused")
    done = argo_harbor("runs", "submit", *flags, *place)
    os.close(reader)
    assert done.status == 0, done.stderr
    warned = done.json("dry-run-document-1")["warnings"]
    assert [(item["task"], item["code"]) for item in warned] == [
        ("other", "local_user_unsupported"),
        ("", "network_narrowed"),
    ]
