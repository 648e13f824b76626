from __future__ import annotations

import base64
import gzip
import json
import random
from typing import Any

import pytest

from argo_harbor.workflow.compile import compile_workflow
from argo_harbor.workflow.limits import size
from argo_harbor.workflow.nodes import NodeCounter, colliding, fnv32a, node_id, node_names
from argo_harbor.workflow.objects import Workflow
from tests.support.large import SUITES, Suite, compiled
from tests.support.plans import run_plan, task_plan

RUN = "run-0123456789abcdef"


def whole(**options: Any) -> Workflow:
    [document] = compile_workflow(run_plan([task_plan(0), task_plan(1)], **options))
    return document  # type: ignore[return-value]  # of the kind workflow


@pytest.mark.parametrize(("text", "value"), [("", 0x811C9DC5), ("a", 0xE40C292C), ("foobar", 0xBF9CF968)])
def test_fnv32a(text: str, value: int) -> None:
    assert fnv32a(text) == value


def test_node_ids_are_those_of_argo() -> None:
    assert node_id("run-1", "run-1") == "run-1"
    assert node_id("run-1.a", "run-1") == f"run-1-{fnv32a('run-1.a')}"


def test_names_of_all_nodes() -> None:
    assert node_names(whole(), "r") == [
        "r",
        *(f"r.network-base{retry}" for retry in ("", "(0)", "(1)", "(2)")),
        *(f"r.network-internet{retry}" for retry in ("", "(0)", "(1)", "(2)")),
        *(f"r.A--watch{retry}" for retry in ("", "(0)", "(1)", "(2)")),
        *(f"r.task-0000{retry}" for retry in ("", "(0)", "(1)")),
        *(f"r.task-0001{retry}" for retry in ("", "(0)", "(1)")),
        "r.onExit",
    ]


def test_names_of_attempts() -> None:
    names = node_names(whole(attempts=2), "r")
    assert [name for name in names if name.startswith("r.task-0001")] == [
        "r.task-0001",
        *("r.task-0001(0:0)", "r.task-0001(0:0)(0)", "r.task-0001(0:0)(1)"),
        *("r.task-0001(1:1)", "r.task-0001(1:1)(0)", "r.task-0001(1:1)(1)"),
    ]


@pytest.mark.parametrize("suite", [each for each in SUITES if each.tasks == 250], ids=lambda each: each.name)
def test_counts_agree_with_names(suite: Suite) -> None:
    for document in compiled(suite):
        spec = document["spec"]
        names = node_names(document, RUN)  # type: ignore[arg-type]  # a plain dict
        assert len(names) == len(set(names))
        counter = NodeCounter(spec["templates"], tries=99)
        counts = counter.of(spec["entrypoint"], *([spec["onExit"]] if "onExit" in spec else []))
        assert counts.pods + counts.groups == len(names)
        pods = [name for name in names if name.endswith(")") and f"{name}(0)" not in names]
        assert counts.pods == len(pods) + ("onExit" in spec)


def test_collisions_are_found() -> None:
    assert colliding(["a", "costarring", "b", "liquid"]) == [("costarring", "liquid")]
    assert colliding(["a", "b"]) == []


def stored_status(document: Workflow, *, tries: int, seed: int) -> int:
    """Bytes of the status that Argo would store, from nodes as they are after so many tries of everything."""
    dice = random.Random(seed)
    spec = document["spec"]
    limited = {
        **spec,
        "templates": [
            {**each, "retryStrategy": {**each["retryStrategy"], "limit": str(tries - 1)}}
            if "retryStrategy" in each
            else each
            for each in spec["templates"]
        ],
    }
    names = node_names({"spec": limited}, RUN)  # type: ignore[typeddict-item]  # as read by it
    known = set(names)
    nodes = {}
    for name in names:
        nodes[node_id(name, RUN)] = node(name, pod=f"{name}(0)" not in known and ")" in name, dice=dice)
    text = json.dumps(dict(sorted(nodes.items())), separators=(",", ":")).encode()
    results = {node_id(name, RUN): False for name in names if nodes[node_id(name, RUN)]["type"] == "Pod"}
    compressed = base64.b64encode(gzip.compress(text, 6))
    return len(compressed) + len(json.dumps(results, separators=(",", ":")))


def node(name: str, *, pod: bool, dice: random.Random) -> dict[str, Any]:
    short = name.rpartition(".")[2]
    parent = name.rpartition("(" if pod else ".")[0]
    image = f"registry.example/argo-harbor/env:{random.Random(short.partition('(')[0]).getrandbits(128):032x}"
    data: dict[str, Any] = {
        "id": node_id(name, RUN),
        "name": name,
        "displayName": short,
        "type": "Pod" if pod else "Retry",
        "templateName": "trial-12345678",
        "templateScope": f"local/{RUN}",
        "phase": dice.choice(("Succeeded", "Succeeded", "Failed")),
        "boundaryID": node_id(parent, RUN),
        "startedAt": clock(dice),
        "finishedAt": clock(dice),
        "progress": "1/1",
        "resourcesDuration": {"cpu": dice.randrange(4000), "memory": dice.randrange(90000)},
        "inputs": {"parameters": [{"name": "index", "value": str(dice.randrange(1000))}]},
    }
    if "build-" not in name:
        data["inputs"]["parameters"].append({"name": "image", "value": image})
    if not pod:
        return data | {"children": [node_id(f"{name}({number})", RUN) for number in range(2)]}
    artifact = {"name": "trial", "path": "/trial/artifact", "s3": {"key": f"argo/{RUN}/{data['id']}/trial"}}
    return data | {
        "message": dice.choice(("", "Error (exit code 75)", "pod deleted")),
        "nodeFlag": {"retried": True},
        "outputs": {"artifacts": [artifact | {"archive": {"none": {}}, "optional": True}], "exitCode": "0"},
        "hostNodeName": f"ip-10-0-{dice.randrange(256)}-{dice.randrange(256)}.example.internal",
        "taskResultSynced": True,
    }


def clock(dice: random.Random) -> str:
    hour, minute, second = dice.randrange(24), dice.randrange(60), dice.randrange(60)
    return f"2026-01-01T{hour:02}:{minute:02}:{second:02}Z"


@pytest.mark.parametrize(
    "suite", [Suite(250, "own-images"), Suite(250, "shared-images"), Suite(250, "five-attempts", 5)], ids=str
)
def test_the_estimate_of_the_status_bounds_a_real_one(suite: Suite) -> None:
    for document in compiled(suite):
        estimate = size(document).status  # type: ignore[arg-type]  # a plain dict
        if estimate < 50_000:
            continue
        stored = stored_status(document, tries=2, seed=7)  # type: ignore[arg-type]
        assert 0.6 * estimate < stored <= estimate
