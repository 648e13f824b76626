"""Reads request files (`--spec-file`): JSON, YAML or TOML, with `KEY=VALUE` overrides on top."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import tomli
from pydantic import ValidationError

from argo_harbor.errors import Finding, Refused, UsageError
from argo_harbor.model.spec import RunSpec
from argo_harbor.settings.interpolation import CODE, resolve
from argo_harbor.settings.strict import broken, dotted, findings_of, huge_number, read_text

_PREFIXES = ("host:", "lit:", "runtime:", "secret:")
_ENV_MAPS = (("spec", "target", "env"), ("spec", "verifier", "env"), ("deployment", "env"))
_FORMATS = {".json": "JSON", ".yaml": "YAML", ".yml": "YAML", ".toml": "TOML"}
_HINTS = {
    "execution": 'add "execution"; an empty table takes every default',
    "spec": 'add "spec" with the target: spec.target.source.name is the agent',
}


def read_spec(path: Path, overrides: Iterable[str] = ()) -> RunSpec:
    """The request of a file. The format is that of the suffix, else of the content.

    `overrides` are `KEY=VALUE` with a dotted key and a value as in YAML; they come before references are
    resolved.

    Raises:
        Refused: `invalid_spec`, with all values still to fill, or every mistake, at once.
        UsageError: `unknown_flag_value` for an override that is none.
    """
    data = _parse(read_text(path, CODE), path)
    return _request(data, overrides, str(path))


def spec_of_flags(
    *,
    agent: str,
    profile: str | None = None,
    cpus: float | None = None,
    memory_mb: int | None = None,
    storage_mb: int | None = None,
    canary: int | None = None,
    overrides: Iterable[str] = (),
) -> RunSpec:
    """The request that `--agent` and the sandbox flags stand for. Raises as `read_spec`."""
    sandbox = {"profile": profile, "cpus": cpus, "memory_mb": memory_mb, "storage_mb": storage_mb}
    data = {
        "spec": {"target": {"source": {"name": agent}}},
        "execution": {"sandbox": {key: value for key, value in sandbox.items() if value is not None}},
        "canary": canary or 0,
    }
    return _request(data, overrides, "")


def _parse(text: str, path: Path) -> dict[str, Any]:
    import yaml  # here, because most commands read no YAML and should not wait for it

    kind = _FORMATS.get(path.suffix.lower()) or _guess(text)
    try:
        if kind == "JSON":
            data = json.loads(text)
        elif kind == "TOML":
            data = tomli.loads(text)
        else:
            data = _text_keys(yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        message = " ".join(str(error).split())
        raise broken(CODE, path, f"broken {kind}: {message}", "correct the file at that place") from error
    if not isinstance(data, dict):
        raise broken(CODE, path, "holds no table of keys", 'start with the keys "spec" and "execution"')
    return data


def _text_keys(value: Any) -> Any:
    """YAML keys may be numbers or dates; those of a request are texts."""
    if isinstance(value, dict):
        return {str(key): _text_keys(inner) for key, inner in value.items()}
    return [_text_keys(inner) for inner in value] if isinstance(value, list) else value


def _guess(text: str) -> str:
    if text.lstrip().startswith("{"):
        return "JSON"
    try:
        tomli.loads(text)
    except (ValueError, RecursionError):
        return "YAML"
    return "TOML"


def _request(data: dict[str, Any], overrides: Iterable[str], file: str) -> RunSpec:
    for override in overrides:
        _override(data, override)
    try:
        resolved = resolve(data, file)
        bare = list(_bare_values(resolved, file))
        return RunSpec.from_data(resolved)
    except RecursionError as error:
        raise Refused.of([Finding(CODE, "is nested too deeply", "use plain values", file=file)]) from error
    except ValidationError as error:
        told = {finding.key for finding in bare}
        others = [each for each in findings_of(error, RunSpec, code=CODE, file=file) if each.key not in told]
        raise Refused.of([*bare, *(_with_hint(each) for each in others)], what="file") from error
    except ValueError as error:
        raise huge_number(CODE, file) from error


def _with_hint(finding: Finding) -> Finding:
    hint = _HINTS.get(finding.key)
    if hint is None or finding.message != "is missing":
        return finding
    return Finding(finding.code, finding.message, hint, file=finding.file, key=finding.key)


def _override(data: dict[str, Any], override: str) -> None:
    key, equals, text = override.partition("=")
    parts = key.strip().split(".")
    if not equals or not all(parts):
        raise UsageError(
            "unknown_flag_value",
            f"{override!r} is no KEY=VALUE",
            "write for example spec.target.n_attempts=3",
        )
    table = data
    for part in parts[:-1]:
        inner = table.setdefault(part, {})
        if not isinstance(inner, dict):
            raise UsageError(
                "unknown_flag_value",
                f"{key}: {part} holds a value and no keys",
                "override the whole value, or name another key",
            )
        table = inner
    table[parts[-1]] = _value(text)


def _value(text: str) -> Any:
    """A value as in YAML; a text that YAML would take for a mapping by its colon stays a text."""
    import yaml

    try:
        value = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        return text
    if isinstance(value, dict) and not text.lstrip().startswith("{"):
        return text
    return value if isinstance(value, str | int | float | bool | list | dict | None) else text


def _bare_values(data: Mapping[str, Any], file: str) -> Iterator[Finding]:
    """Environment values without a prefix; the value itself, perhaps a secret, is not repeated."""
    for path in _ENV_MAPS:
        table: Any = data
        for part in path:
            table = table.get(part) if isinstance(table, dict) else None
        for name, value in table.items() if isinstance(table, dict) else ():
            if not isinstance(value, str) or not value.startswith(_PREFIXES):
                yield Finding(
                    CODE,
                    "does not say where its value comes from",
                    f"write host:{name} to read your shell's variable at submit, or lit:VALUE for a text",
                    file=file,
                    key=dotted((*path, str(name))),
                )
