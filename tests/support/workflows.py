"""Reading emitted workflows: what tests of the compiler and of its goldens look for."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from argo_harbor.model.plan import RunPlan

Object = dict[str, Any]

TAGS = re.compile(r"\{\{.*?\}\}", re.DOTALL)


def spec_of(document: Object) -> Object:
    """The workflow's own specification, whatever kind carries it."""
    spec: Object = document["spec"]
    return spec.get("workflowSpec", spec)


def templates(document: Object) -> dict[str, Object]:
    return {template["name"]: template for template in spec_of(document)["templates"]}


def entries(document: Object) -> Iterator[tuple[str, Object]]:
    """Every DAG entry, with the name of the template it stands in."""
    for template in spec_of(document)["templates"]:
        for entry in template.get("dag", {}).get("tasks", []):
            yield template["name"], entry


def arguments(entry: Object) -> dict[str, str]:
    return {each["name"]: each["value"] for each in entry.get("arguments", {}).get("parameters", [])}


def trial_entries(document: Object) -> Iterator[tuple[str, Object]]:
    """Entries of tasks: those that bring an image."""
    return (
        (where, entry)
        for where, entry in entries(document)
        if not where.startswith("trial-verified") and "image" in arguments(entry)
    )


def trials(documents: list[Object]) -> Counter[tuple[int, int]]:
    """How often each (task index, attempt) is run over all objects of a run."""
    found: Counter[tuple[int, int]] = Counter()
    for document in documents:
        for _, entry in trial_entries(document):
            count = int(entry["withSequence"]["count"]) if "withSequence" in entry else 1
            for attempt in range(count):
                found[int(arguments(entry)["index"]), attempt] += 1
    return found


def strings(data: Any) -> Iterator[str]:
    """Every string of an object, keys included."""
    if isinstance(data, str):
        yield data
    elif isinstance(data, dict):
        for key, value in data.items():
            yield from strings(key)
            yield from strings(value)
    elif isinstance(data, list):
        for item in data:
            yield from strings(item)


def without_digests(document: Object, plan: RunPlan) -> Object:
    """The object with the plan's digest blotted out: it changes with every new field of the plan."""
    found: Object = json.loads(blotted(json.dumps(document), plan))
    return found


def blotted(text: str, plan: RunPlan) -> str:
    for digest in (plan.digest, plan.digest[:16]):
        text = text.replace(digest, "0" * len(digest))
    return text
