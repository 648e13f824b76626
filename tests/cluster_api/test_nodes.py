from __future__ import annotations

import base64
import gzip
import json
from typing import Any

import pytest

from argo_harbor.cluster import nodes
from argo_harbor.cluster.nodes import read_nodes

POD = {
    "id": "run-1-99",
    "name": "run-1.main-entry(0:0)(1)",
    "displayName": "main-entry(1)",
    "type": "Pod",
    "templateName": "trial-0a",
    "phase": "Failed",
    "message": "main: exit 75",
    "inputs": {"parameters": [{"name": "index", "value": "7"}, {"name": "attempt", "value": "2"}]},
    "outputs": {"exitCode": "75"},
    "startedAt": "2026-01-02T03:04:05Z",
    "boundaryID": "run-1",
    "children": ["run-1-100"],
}


def packed(found: object) -> str:
    return base64.b64encode(gzip.compress(json.dumps(found).encode())).decode()


def test_a_node_as_argo_tells_it() -> None:
    (node,) = read_nodes({"nodes": {"run-1-99": POD}}) or ()
    assert (node.id, node.entry, node.template, node.index) == ("run-1-99", "main-entry", "trial-0a", 7)
    assert (node.is_pod, node.over, node.exit_code) == (True, True, 75)
    assert node.inputs == {"index": "7", "attempt": "2"}
    assert (node.started, node.finished, node.boundary, node.children) == (
        "2026-01-02T03:04:05Z",
        "",
        "run-1",
        ("run-1-100",),
    )


def test_a_packed_status_says_the_same_as_a_plain_one() -> None:
    found = {f"run-1-{number}": {**POD, "id": str(number)} for number in range(300)}
    assert read_nodes({"compressedNodes": packed(found)}) == read_nodes({"nodes": found})


@pytest.mark.parametrize(
    "status",
    [
        {"offloadNodeStatusVersion": "fnv:1"},
        {"compressedNodes": "no base64!"},
        {"compressedNodes": base64.b64encode(b"no gzip").decode()},
        {"compressedNodes": packed("no object")},
        {"compressedNodes": packed({"a": POD})[:-20]},
        {"nodes": ["no object"]},
    ],
)
def test_a_status_without_readable_nodes_is_told_from_one_without_nodes(status: dict[str, Any]) -> None:
    assert read_nodes(status) is None
    assert read_nodes({}) == ()


def test_a_bomb_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "MAX_NODES_BYTES", 10_000)
    assert read_nodes({"compressedNodes": packed({"a": {"message": "x" * 20_000}})}) is None


@pytest.mark.parametrize(
    "odd",
    [
        {"inputs": [], "outputs": "x", "children": [1, "c"]},
        {"inputs": {"parameters": [{"name": "index"}, "x", {"name": "index", "value": "-1"}]}},
        {"phase": 7, "outputs": {"exitCode": "none"}},
        {"outputs": {"exitCode": None}},
    ],
)
def test_what_has_another_shape_is_left_out(odd: dict[str, Any]) -> None:
    (node,) = read_nodes({"nodes": {"a": odd, "b": "no node"}}) or ()
    assert (node.index, node.exit_code, node.phase) == (None, None, "")
