"""Settings files into strict models, every mistake at once: file, dotted key, what is wrong, what cures it.

Used for platform, profile and request files alike. Values are shown only where they cannot be secret.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, get_args, get_origin

import tomli
from pydantic import BaseModel, ValidationError

from argo_harbor.errors import Finding, HarborError, Refused
from argo_harbor.model.base import Model

MAX_BYTES = 4 << 20
"""Far above any real settings file, far below what would exhaust memory."""
_MAX_SHOWN = 60

_SECRET_TABLES = frozenset({"env", "env_secrets", "agent_kwargs"})


def broken(code: str, path: Path | str, message: str, hint: str) -> HarborError:
    """The error for a file that cannot be read as what it should be."""
    return Refused.of([Finding(code, message, hint, file=str(path))])


def read_text(path: Path, code: str) -> str:
    """The text of a settings file. Raises Refused with the given code."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise broken(code, path, f"cannot be read: {reason}", "check the path and its permissions") from error
    if len(data) > MAX_BYTES:
        raise broken(code, path, f"has more than {MAX_BYTES} bytes", "name a settings file")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise broken(code, path, f"line {line} is not UTF-8", "save the file as UTF-8") from error


def read_toml(path: Path, code: str) -> dict[str, Any]:
    """A TOML file as data. Raises Refused with the given code."""
    return parse_toml(read_text(path, code), code, str(path))


def parse_toml(text: str, code: str, file: str) -> dict[str, Any]:
    """TOML as data; `file` says where it stands. Raises Refused with the given code."""
    try:
        return tomli.loads(text)
    except (ValueError, RecursionError) as error:
        raise broken(code, file, f"broken TOML: {error}", "correct the file at that place") from error


def parse_model[M: Model](model: type[M], data: Mapping[str, Any], *, code: str, file: str = "") -> M:
    """Data as a model. Raises Refused with one finding for each mistake."""
    try:
        return model.from_data(data)
    except ValidationError as error:
        raise Refused.of(findings_of(error, model, code=code, file=file), what="file") from error
    except ValueError as error:
        raise huge_number(code, file) from error


def huge_number(code: str, file: str) -> HarborError:
    """The error for data with a number of more digits than Python writes out."""
    return Refused.of(
        [Finding(code, "holds a number of thousands of digits", "write a smaller number", file=file)]
    )


def findings_of(error: ValidationError, model: type[BaseModel], *, code: str, file: str) -> list[Finding]:
    """One finding for each key with a mistake, in the order of the fields."""
    found: dict[str, Finding] = {}
    for item in error.errors(include_url=False, include_context=False):
        key, owner = _place(model, item["loc"])
        message, hint = _explain(item, key, owner)
        if key in found:
            # A value that fits no member of a union is reported once for each.
            message = f"{found[key].message}, or {message}"
        found[key] = Finding(code, message, hint, file=file, key=key)
    return list(found.values())


def dotted(parts: Iterable[int | str]) -> str:
    """`a.b[0].c`."""
    text = ""
    for part in parts:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def _place(model: type[BaseModel], location: tuple[int | str, ...]) -> tuple[str, type[BaseModel] | None]:
    """Dotted key of an error, and the model in which it stands.

    pydantic's location also holds the members of a union that it tried; they name nothing in the file.
    """
    parts: list[int | str] = []
    annotation: Any = model
    owner: type[BaseModel] | None = None
    for part in location:
        inner = _model_of(annotation)
        if inner is not None:
            parts.append(part)
            owner = inner
            annotation = _fields(inner).get(str(part))
        elif part != "[key]" and get_origin(_bare(annotation)) in (dict, tuple):
            parts.append(part)
            owner = None
            annotation = next(iter(reversed([a for a in get_args(_bare(annotation)) if a is not ...])), None)
    return dotted(parts), owner


def _fields(model: type[BaseModel]) -> dict[str, Any]:
    return {
        field.alias or name: field.annotation
        for name, field in model.model_fields.items()
        if not field.exclude
    }


def _bare(annotation: Any) -> Any:
    """Without `Annotated` and `None`."""
    arguments = get_args(annotation)
    if hasattr(annotation, "__metadata__"):
        return _bare(arguments[0])
    if type(None) in arguments:
        return _bare(next(argument for argument in arguments if argument is not type(None)))
    return annotation


def _model_of(annotation: Any) -> type[BaseModel] | None:
    bare = _bare(annotation)
    return bare if isinstance(bare, type) and issubclass(bare, BaseModel) else None


def _explain(item: Any, key: str, owner: type[BaseModel] | None) -> tuple[str, str]:
    kind, value = item["type"], item["input"]
    name = key.rpartition(".")[2]
    if kind == "extra_forbidden":
        known = list(_fields(owner)) if owner else []
        near = difflib.get_close_matches(name, known, n=1)
        meant = f"did you mean {near[0]}? " if near else ""
        return "is no known key", f"{meant}known here: {', '.join(known)}"
    if kind == "missing":
        return "is missing", f"add {key}"
    if kind == "json_invalid":
        # Texts go through JSON, and half of a surrogate pair is all that cannot.
        return "holds half a character, such as \\ud800", "write whole characters"
    text = str(item["msg"]).removeprefix("Value error, ")
    message = text[0].lower() + text[1:]
    if _SECRET_TABLES.isdisjoint(key.split(".")) and isinstance(value, str | int | float):
        message = f"{_shown(value)}: {message}"
    return message, f"correct {key}"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"
