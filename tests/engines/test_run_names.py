from __future__ import annotations

import re

from argo_harbor.engines import run_names
from argo_harbor.engines.run_names import collisions, fresh_key, keyed_name, without_collisions
from argo_harbor.workflow.nodes import colliding, node_names
from argo_harbor.workflow.objects import Workflow


def test_a_key_gives_a_name_of_its_own_for_each_user_and_namespace() -> None:
    assert re.fullmatch("run-[0-9a-f]{16}", keyed_name("ns", "me", "k"))
    different = [
        ("ns", "me", "k"),
        ("ns", "me", "l"),
        ("ns", "you", "k"),
        ("ms", "me", "k"),
        ("nsm", "e", "k"),
    ]
    assert len({keyed_name(*each) for each in different}) == 5
    assert keyed_name("ns", "me", "k") == keyed_name("ns", "me", "k")
    assert fresh_key() != fresh_key()


def workflow(entries: list[str]) -> Workflow:
    tasks = [{"name": name, "template": "t"} for name in entries]
    tasks.append(
        {"name": "last", "template": "t", "depends": " && ".join(f"{name}.Succeeded" for name in entries)}
    )
    return {  # type: ignore[typeddict-item]
        "metadata": {},
        "spec": {
            "entrypoint": "main",
            "templates": [{"name": "main", "dag": {"tasks": tasks}}, {"name": "t", "container": {}}],
        },
    }


def colliding_entries(name: str) -> list[str]:
    """Two entries whose nodes share an id under that name, by search: a birthday among 2³² takes 10⁵."""
    seen: dict[int, str] = {}
    prefix = 0x811C9DC5
    for byte in f"{name}.".encode():
        prefix = (prefix ^ byte) * 0x01000193 & 0xFFFFFFFF
    for number in range(1_000_000):
        entry = f"e{number * 2654435761 % 2**32:08x}"
        value = prefix
        for byte in entry.encode():
            value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
        if value in seen:
            return [seen[value], entry]
        seen[value] = entry
    raise AssertionError("no two entries collide")


def test_an_entry_that_argo_would_mix_up_gets_another_name() -> None:
    name = keyed_name("ns", "me", "k")
    pair = colliding_entries(name)
    made = workflow(pair)
    assert collisions(made, name) == [tuple(f"{name}.{entry}" for entry in pair)]
    renamed = without_collisions(made, name)
    assert colliding(node_names(renamed, name)) == []
    tasks = renamed["spec"]["templates"][0]["dag"]["tasks"]
    assert [task["name"] for task in tasks] == [pair[0], f"{pair[1]}-x0", "last"]
    assert tasks[-1]["depends"] == f"{pair[0]}.Succeeded && {pair[1]}-x0.Succeeded"
    assert made["spec"]["templates"][0]["dag"]["tasks"][1]["name"] == pair[1]


def test_a_workflow_without_collisions_stays_as_it_is() -> None:
    made = workflow(["a", "b"])
    assert run_names.without_collisions(made, "run-1") is made
