"""The steps of a workflow as Argo's status tells them: typed, and decoded where the status is compressed.

Used by everything that says what a run is doing or why a part of it never ran. What stands in a status comes
from outside: whatever has another shape than expected is left out.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MAX_NODES_BYTES = 256 << 20
"""Of a decompressed status: a hundred times and more what the API server takes, so only a bomb is larger."""

DONE = frozenset({"Succeeded", "Failed", "Error", "Skipped", "Omitted"})
BROKEN = frozenset({"Failed", "Error"})


@dataclass(frozen=True, slots=True)
class Node:
    """One node: a pod, or a group of nodes (DAG, sequence, retries)."""

    id: str
    name: str
    """Path from the workflow's name: `run-1.main-entry(0:0)(1)`."""
    entry: str
    """Name of the DAG entry that it belongs to, as the graph shows it, without attempt and try."""
    type: str
    """Argo's word: Pod, Retry, TaskGroup, DAG, …"""
    template: str
    phase: str
    """Pending, Running, Succeeded, Failed, Error, Skipped, Omitted; empty before the first look at it."""
    message: str
    inputs: Mapping[str, str]
    """Parameters by name."""
    started: str
    """RFC 3339; empty before it starts."""
    finished: str
    exit_code: int | None
    boundary: str
    """Id of the DAG that it is an entry of."""
    children: tuple[str, ...]
    """Ids of the nodes behind it."""

    @property
    def is_pod(self) -> bool:
        return self.type == "Pod"

    @property
    def over(self) -> bool:
        return self.phase in DONE

    @property
    def index(self) -> int | None:
        """Index of the task that it works for; None for steps of the whole run."""
        text = self.inputs.get("index", "")
        return int(text) if text.isascii() and text.isdecimal() else None


def read_nodes(status: Mapping[str, Any]) -> tuple[Node, ...] | None:
    """The nodes of a workflow's status, by id; None when the status does not hold them.

    Argo packs a large status (`compressedNodes`), and may move it to a database, where only its own server
    finds it.
    """
    packed = status.get("compressedNodes")
    if isinstance(packed, str) and packed:
        found = _unpack(packed)
    elif status.get("offloadNodeStatusVersion"):
        found = None
    else:
        found = status.get("nodes") or {}
    if not isinstance(found, Mapping):
        return None
    return tuple(_node(identity, data) for identity, data in sorted(found.items()) if isinstance(data, dict))


def _unpack(packed: str) -> object:
    try:
        decoder = zlib.decompressobj(zlib.MAX_WBITS | 16)
        plain = decoder.decompress(base64.b64decode(packed, validate=True), MAX_NODES_BYTES)
        return json.loads(plain) if decoder.eof else None
    except (binascii.Error, zlib.error, ValueError, RecursionError):
        return None


def _node(identity: str, data: Mapping[str, Any]) -> Node:
    outputs = data.get("outputs")
    return Node(
        id=identity,
        name=_text(data, "name"),
        entry=_text(data, "displayName").partition("(")[0],
        type=_text(data, "type"),
        template=_text(data, "templateName"),
        phase=_text(data, "phase"),
        message=_text(data, "message"),
        inputs=_parameters(data.get("inputs")),
        started=_text(data, "startedAt"),
        finished=_text(data, "finishedAt"),
        exit_code=_number(outputs.get("exitCode")) if isinstance(outputs, dict) else None,
        boundary=_text(data, "boundaryID"),
        children=tuple(child for child in data.get("children") or () if isinstance(child, str)),
    )


def _parameters(inputs: object) -> dict[str, str]:
    listed = inputs.get("parameters") if isinstance(inputs, dict) else None
    return {
        str(each["name"]): str(each["value"])
        for each in listed or ()
        if isinstance(each, dict) and "name" in each and "value" in each
    }


def _text(data: Mapping[str, Any], key: str) -> str:
    found = data.get(key)
    return found if isinstance(found, str) else ""


def _number(value: object) -> int | None:
    try:
        return int(value) if isinstance(value, str | int) else None
    except ValueError:
        return None
