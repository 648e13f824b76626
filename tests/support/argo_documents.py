"""Finds the documents that ``argo lint`` would pass over without a word.

Among several documents it skips those it cannot parse, those with a key twice and those of other kinds, and
still exits 0 as long as one is left. :func:`tests.support.argo.lint` therefore reads the files itself, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path

import yaml


def overlooked(file: Path, *, kinds: Collection[str]) -> list[str]:
    """Return a line for each document of ``file`` that is no proper object of one of ``kinds``."""
    try:
        documents = list(yaml.compose_all(file.read_text(), Loader=yaml.CSafeLoader))
    except yaml.YAMLError as error:
        return [f"{file}: not linted: {error}"]
    return [
        f"{file}: document {number} not linted: {reason}"
        for number, document in enumerate(documents, start=1)
        for reason in _reasons(document, kinds)
    ] or ([] if documents else [f"{file}: holds no document"])


def _reasons(document: yaml.Node | None, kinds: Collection[str]) -> Iterator[str]:
    if not isinstance(document, yaml.MappingNode):
        yield "no mapping"
        return
    kind = next((value.value for key, value in document.value if key.value == "kind"), None)
    if kind not in kinds:
        yield f"kind {kind!r} is none of {', '.join(kinds)}"
    yield from _repeated_keys(document)


def _repeated_keys(node: yaml.Node) -> Iterator[str]:
    if isinstance(node, yaml.MappingNode):
        for key, count in Counter(key.value for key, _ in node.value).items():
            if count > 1:
                yield f"key {key!r} {count} times in the mapping at line {node.start_mark.line + 1}"
        for _, value in node.value:
            yield from _repeated_keys(value)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _repeated_keys(item)
