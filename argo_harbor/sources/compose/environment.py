"""The variables of a service: `environment` as a mapping or a list, and `build.args` alike."""

from __future__ import annotations

import re
from collections.abc import Iterator

from argo_harbor.model.services import ServiceValue
from argo_harbor.sources.compose.notes import Notes
from argo_harbor.sources.compose.values import Known, Variable, check_text, expand, scalar

_NAME = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")
"""What every supported Kubernetes takes as the name of a variable."""


def read_environment(key: str, value: object, known: Known | None, notes: Notes) -> tuple[ServiceValue, ...]:
    """Sorted by name; of a name that stands twice the last counts, as in compose.

    With None for `known` the texts have been filled in already.
    """
    found: dict[str, ServiceValue] = {}
    for name, text in _entries(key, value, notes):
        where = f"{key}.{name}"
        if not _NAME.fullmatch(name):
            notes.refuse(key, f"{name!r} is no name of a variable", "correct the name")
            continue
        found[name] = _value(where, name, text, known, notes)
    return tuple(found[name] for name in sorted(found))


def _entries(key: str, value: object, notes: Notes) -> Iterator[tuple[str, str | None]]:
    if isinstance(value, list):
        for position, entry in enumerate(value):
            text = notes.tried(f"{key}[{position}]", scalar, entry, "")
            name, equals, rest = text.partition("=")
            if text:
                yield name, rest if equals else None
        return
    for name, entry in notes.mapping(key, value, "a mapping or a list").items():
        yield name, None if entry is None else notes.tried(f"{key}.{name}", scalar, entry, "")


def _value(where: str, name: str, text: str | None, known: Known | None, notes: Notes) -> ServiceValue:
    if known is None:
        return ServiceValue(name, text, optional=text is None)
    if text is None:
        # Without a value compose passes on the variable of that name, if there is one.
        value = known.get(name)
        if isinstance(value, str):
            return ServiceValue(name, value)
        asked = value or Variable(name, None)
        return ServiceValue(name, asked.default, asked.name, optional=True)
    expanded = notes.tried(where, lambda given: expand(given, known), text, None)
    if expanded is None:
        return ServiceValue(name, "")
    notes.tried(where, check_text, expanded.text, "")
    if expanded.whole and expanded.left:
        [variable] = expanded.left
        return ServiceValue(name, variable.default, variable.name)
    for variable in expanded.left:
        if variable.default is None:
            notes.refuse(
                where,
                f"reads {variable.name} inside a longer text, and a run can grant whole values only",
                f"give the container {variable.name} by itself, and put the text together there",
                code="env_not_granted",
            )
    return ServiceValue(name, expanded.text)
