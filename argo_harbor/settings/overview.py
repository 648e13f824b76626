"""Every setting in force and where it came from, for `config show`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from pydantic import BaseModel

from argo_harbor.settings.site import Site

DEFAULT = "default"


class Setting(NamedTuple):
    """One setting."""

    key: str
    """Dotted; those of the default profile begin with `profile.`."""
    value: str
    """As text; lists joined by commas, empty for what is unset."""
    source: str
    """`default`, or the flag, variable or file that set it."""


def settings_in_force(site: Site) -> list[Setting]:
    """Settings of the platform and of the profile of a run that names none.

    Raises:
        Refused: as reading the profile does.
    """
    platform, origin, name = site.platform, site.origin, site.default_profile
    profile = site.profile()
    source = next(listed.source for listed in site.profiles() if listed.default)
    named_by = origin if platform.default_sandbox_profile else DEFAULT
    return [
        Setting("platform", "" if platform.built_in else "configured", origin),
        *_flat(platform, "", origin),
        Setting("profile", name, named_by),
        *_flat(profile, "profile", source),
    ]


def _flat(model: BaseModel, table: str, source: str) -> Iterator[Setting]:
    for name, field in type(model).model_fields.items():
        if field.exclude:
            continue
        key = f"{table}.{field.alias or name}" if table else field.alias or name
        value = getattr(model, name)
        given = source if name in model.model_fields_set else DEFAULT
        if isinstance(value, BaseModel):
            yield from _flat(value, key, given)
        elif isinstance(value, dict) and value:
            for inner, entry in value.items():
                if isinstance(entry, BaseModel):
                    yield from _flat(entry, f"{key}.{inner}", given)
                else:
                    yield Setting(f"{key}.{inner}", _text(entry), given)
        else:
            yield Setting(key, _text(value), given)


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(_text(entry) for entry in value)
    if isinstance(value, dict):
        return ""
    if isinstance(value, BaseModel):
        return value.model_dump_json(exclude_defaults=True)
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
