"""A compose file as plain data, or what is wrong with it as YAML.

Stricter than YAML allows, because readers differ there: a key stands once in its mapping, and only `true`,
`false`, `null` and decimal numbers are anything but text, so that `22:22` and `no` stay what they look like.
Aliases are fine as long as what they stand for stays small.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

MAX_BYTES = 1 << 20
_MAX_NODES = 20_000
"""Nodes with every alias written out: far above any compose file, far below what would take long."""
_MAX_DEPTH = 50


class BrokenCompose(ValueError):
    """The file is no YAML that we take; the message says why."""


class _Loader(yaml.SafeLoader):
    """YAML 1.2's idea of what is a number, as compose itself has it."""


_Loader.yaml_implicit_resolvers = {}


for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*)", "-+.0123456789"),
    ("merge", "<<", "<"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), list(_first))


def read_yaml(data: bytes) -> dict[str, Any]:
    """The mapping that the document is. Raises BrokenCompose."""
    if len(data) > MAX_BYTES:
        raise BrokenCompose(f"has more than {MAX_BYTES} bytes")
    try:
        loader = _Loader(data.decode())
        try:
            node = loader.get_single_node()
            if node is None:
                return {}
            _check(node)
            document = loader.construct_document(node)
        finally:
            loader.dispose()
    except UnicodeDecodeError as error:
        raise BrokenCompose("is not UTF-8") from error
    except (yaml.YAMLError, ValueError, RecursionError, OverflowError) as error:
        if isinstance(error, BrokenCompose):
            raise
        raise BrokenCompose(f"is no YAML: {' '.join(str(error).split())[:300]}") from error
    if not isinstance(document, dict):
        raise BrokenCompose("is no mapping")
    return document


def _check(root: yaml.Node) -> None:
    sizes: dict[int, int] = {}
    if _size(root, sizes, frozenset(), 0) > _MAX_NODES:
        raise BrokenCompose("has too many values, or aliases that multiply them")


def _size(node: yaml.Node, sizes: dict[int, int], above: frozenset[int], depth: int) -> int:
    """Nodes below and including this one, aliases written out; checks keys on the way."""
    if id(node) in above:
        raise BrokenCompose("holds an alias of something that it is part of")
    if depth > _MAX_DEPTH:
        raise BrokenCompose(f"is nested deeper than {_MAX_DEPTH} levels")
    if id(node) not in sizes:
        inside = above | {id(node)}
        if isinstance(node, yaml.MappingNode):
            _check_keys(node)
            children = [child for pair in node.value for child in pair]
        else:
            children = node.value if isinstance(node, yaml.SequenceNode) else []
        sizes[id(node)] = 1 + sum(_size(child, sizes, inside, depth + 1) for child in children)
    return sizes[id(node)]


def _check_keys(node: yaml.MappingNode) -> None:
    seen: set[str] = set()
    for key, _ in node.value:
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode) or key.tag not in _TEXT_KEYS:
            raise BrokenCompose(f"line {line}: a key must be text")
        if key.value in seen:
            raise BrokenCompose(f"line {line}: the key {key.value!r} stands twice in one mapping")
        seen.add(key.value)


_TEXT_KEYS = frozenset({"tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"})
