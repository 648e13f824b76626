"""The bytes of one task.toml to a TaskConfig, or to all findings about it at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from pydantic import ValidationError

from argo_harbor.errors import Finding
from argo_harbor.model.task import MAX_CPUS, MAX_GPUS, MAX_MEGABYTES, MAX_SECONDS, TaskConfig
from argo_harbor.sources.keys import Key, deprecated_keys, dotted, odd_keys
from argo_harbor.sources.toml import BrokenToml, parse_toml

CODE = "invalid_task_config"
_MAX_SHOWN = 60


class ConfigReading(NamedTuple):
    """What one file says: a config, or findings."""

    config: TaskConfig | None
    findings: list[Finding]
    """Without task and file, which the caller knows."""
    unknown: list[Key]
    deprecated: list[Key]
    named: str
    """`[task].name` when it can be read at all, else empty; a hint for messages."""


def read_config(data: bytes) -> ConfigReading:
    """Parse and check a task.toml."""
    try:
        raw = parse_toml(data)
    except BrokenToml as error:
        finding = Finding(CODE, f"broken TOML: {error}", "correct the file; a TOML checker shows the place")
        return ConfigReading(None, [finding], [], [], "")
    odd = list(odd_keys(raw))
    unknown = [key for key in odd if key.name not in deprecated_keys(key.model)]
    deprecated = [key for key in odd if key.name in deprecated_keys(key.model)]
    try:
        config = TaskConfig.model_validate(raw)
    except ValidationError as error:
        return ConfigReading(None, _findings(error), unknown, deprecated, _name_in(raw))
    return ConfigReading(config, [], unknown, deprecated, config.task.name if config.task else "")


def _name_in(raw: Mapping[str, Any]) -> str:
    table = raw.get("task")
    name = table.get("name") if isinstance(table, dict) else None
    return name if isinstance(name, str) and name.isprintable() else ""


_UNIONS = {"user": "a name or a number", "cpus": "a number", "min_reward": "a number or a table of numbers"}
_SCALAR_TAGS = frozenset({"str", "int", "float"})


def _findings(error: ValidationError) -> list[Finding]:
    findings: dict[tuple[str, str], Finding] = {}
    for item in error.errors(include_url=False):
        key, tag = _key(item["loc"])
        if item["type"] == "deprecated_size":
            key = dotted(key, item["ctx"]["key"])
        value = item["input"]
        # Where a number with a point is wrong, the member of the union that takes one says why.
        if (tag == "str" and isinstance(value, dict)) or (tag == "int" and isinstance(value, float)):
            continue
        message, hint = _explain(item, key, tag)
        findings.setdefault((key, message), Finding(CODE, message, hint, key=key))
    return list(findings.values())


def _key(location: tuple[int | str, ...]) -> tuple[str, str]:
    """Dotted key of an error, and the member of a union that pydantic tried, if any."""
    key, tag, previous = "", "", ""
    for part in location:
        if isinstance(part, int):
            key, previous = f"{key}[{part}]", f"{previous}[]"
        elif not tag and (previous in _UNIONS or previous == "artifacts[]"):
            tag = part
        elif part != "[key]":
            key, previous = dotted(key, part), part
    return key, tag


def _explain(item: Mapping[str, Any], key: str, tag: str) -> tuple[str, str]:
    kind, value, context = item["type"], item["input"], item.get("ctx", {})
    last = key.rpartition(".")[2].partition("[")[0]
    if kind == "missing":
        return "is missing", f"add {key}"
    if kind in {"value_error", "deprecated_size"}:
        return str(item["msg"]).removeprefix("Value error, "), f"correct {key or 'the file'}"
    if kind == "literal_error":
        return f"{_shown(value)} is not one of {context['expected']}", f"use one of {context['expected']}"
    if kind in {"greater_than", "greater_than_equal", "less_than", "less_than_equal", "finite_number"}:
        return f"{_shown(value)} is out of range", f"{last} must be {_range(last)}"
    if kind == "string_pattern_mismatch":
        return f"{_shown(value)} is not allowed here", _PATTERN_HINTS.get(last, f"correct {key}")
    wanted = _UNIONS.get(last) if tag in _SCALAR_TAGS or last in _UNIONS else None
    if last == "artifacts" and tag:
        wanted = "a path or a table with a source"
    wanted = wanted or _WANTED.get(kind)
    if wanted is None:
        return f"{_shown(value)}: {item['msg']}", f"correct {key or 'the file'}"
    return f"{_shown(value)} is not {wanted}", f"write {wanted}"


_WANTED = {
    "int_type": "a whole number",
    "float_type": "a number",
    "string_type": "a text in quotes",
    "bool_type": "true or false",
    "list_type": "an array",
    "dict_type": "a table",
    "model_type": "a table",
    "model_attributes_type": "a table",
}
_PATTERN_HINTS = {
    "name": 'names are "org/name" out of letters, digits, ".", "_" and "-"',
    "docker_image": 'image references hold letters, digits and ". _ / : @ -" only',
}


def _range(last: str) -> str:
    if last == "cpus":
        return f"above 0 and at most {MAX_CPUS}"
    if last in {"memory_mb", "storage_mb"}:
        return f"from 1 to {MAX_MEGABYTES} MB"
    if last == "gpus":
        return f"from 0 to {MAX_GPUS}"
    if last == "start_period_sec":
        return f"from 0 to {MAX_SECONDS:.0f} seconds"
    if last.endswith("_sec"):
        return f"above 0 and at most {MAX_SECONDS:.0f} seconds (7 days)"
    return "a finite number that is not negative" if last == "retries" else "a finite number"


def _shown(value: object) -> str:
    """A value as it may be printed: escaped and short."""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = repr(value)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"
