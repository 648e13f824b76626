"""References in request files: `${key}` to a value, `${oc.env:NAME}` to a variable, `???` still to fill.

Everything a request holds ends in the plan for all to read, so a variable whose name speaks of a credential
is refused before anything is resolved. OmegaConf is imported only for files that hold a reference, because
the import takes longer than everything else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from argo_harbor.errors import Finding, Refused
from argo_harbor.settings.strict import dotted

CODE = "invalid_spec"
MISSING = "???"

_ENV_MAPS = frozenset({"env", "env_secrets"})
_CREDENTIAL = re.compile(r"KEY|SECRET|TOKEN|PASSWORD|CREDENTIAL|AUTH", re.IGNORECASE)
_VARIABLE = re.compile(r"oc\s*\.\s*env\s*:\s*([^,}]*)")
_COMPUTED_NAME = re.compile(r"\$\{[^:}]*\$\{")
"""A reference inside the name of another, which could hide what is read."""


class Leaf(NamedTuple):
    """A text somewhere in the request."""

    path: tuple[int | str, ...]
    text: str

    @property
    def key(self) -> str:
        return dotted(self.path)

    @property
    def in_env_map(self) -> bool:
        return not _ENV_MAPS.isdisjoint(self.path[:-1])


def resolve(data: Mapping[str, Any], file: str) -> dict[str, Any]:
    """The request with every reference replaced by its value.

    Raises:
        Refused: `invalid_spec`: all values still to fill and all forbidden references, or the first reference
            that leads nowhere.
    """
    leaves = list(_leaves(data, ()))
    findings = [finding for leaf in leaves for finding in _refused(leaf, file)]
    if findings:
        raise Refused.of(findings, what="file")
    if not any("${" in leaf.text for leaf in leaves):
        return dict(data)
    return _resolved(data, file)


def _leaves(value: Any, path: tuple[int | str, ...]) -> Iterator[Leaf]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner, (*path, str(key)))
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            yield from _leaves(inner, (*path, number))
    elif isinstance(value, str):
        yield Leaf(path, value)


def _refused(leaf: Leaf, file: str) -> Iterator[Finding]:
    if leaf.text.strip() == MISSING:
        yield Finding(CODE, "is still to fill (???)", f"give {leaf.key} a value", file=file, key=leaf.key)
    if _COMPUTED_NAME.search(leaf.text):
        yield Finding(
            CODE,
            "holds a reference in the name of another",
            "write the name out",
            file=file,
            key=leaf.key,
        )
    for match in _VARIABLE.finditer(leaf.text):
        name = match[1].strip().strip("'\"")
        if leaf.in_env_map:
            yield Finding(
                CODE,
                f"${{oc.env:{name}}} would write the variable's value into the plan",
                f"write host:{name}, which is read at submit and kept in a Secret",
                file=file,
                key=leaf.key,
            )
        elif _CREDENTIAL.search(name) or "$" in name:
            yield Finding(
                CODE,
                f"${{oc.env:{name}}} would write a credential into the plan",
                f"grant it as a variable: spec.target.env with host:{name}, or spec.target.env_secrets",
                file=file,
                key=leaf.key,
            )


def _resolved(data: Mapping[str, Any], file: str) -> dict[str, Any]:
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        resolved: Any = OmegaConf.to_container(OmegaConf.create(dict(data)), resolve=True)
    except OmegaConfBaseException as error:
        key = str(error.full_key or "")
        message = str(error.msg or error).partition("\n")[0]
        raise Refused.of(
            [
                Finding(
                    CODE,
                    message,
                    "references are ${dotted.key} of this file, or ${oc.env:NAME}",
                    file=file,
                    key=key,
                )
            ]
        ) from error
    return {str(key): value for key, value in resolved.items()}
