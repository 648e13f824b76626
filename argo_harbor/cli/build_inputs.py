"""`--build-arg` and `--build-secret`: what image builds are given, from the command line."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from argo_harbor.cli.place import command
from argo_harbor.errors import UsageError

if TYPE_CHECKING:
    from argo_harbor.engines.place import Place
    from argo_harbor.model.build import BuildInputs


def build_inputs(
    arguments: Sequence[str], secrets: Sequence[str], environment: Mapping[str, str] | None = None
) -> BuildInputs:
    """`NAME=VALUE`, or `NAME` for a variable of this shell, and `ID=SECRET/KEY`.

    Raises: UsageError `unknown_flag_value`.
    """
    from pydantic import ValidationError

    from argo_harbor.model.build import BuildInputs

    env = os.environ if environment is None else environment
    args = dict(_argument(text, env) for text in arguments)
    grants = dict(_secret(text) for text in secrets)
    try:
        return BuildInputs(args=args, secrets=grants)
    except ValidationError as error:
        where, name = error.errors()[0]["loc"][:2]
        if where == "args":
            raise _wrong(f"--build-arg {name!r} is no name of a variable", "write NAME=VALUE") from error
        raise _wrong(
            f"--build-secret {name}={grants.get(str(name), '')} names no key of a Secret",
            "write ID=SECRET/KEY, the Secret's name in lower case",
        ) from error


def build_flags(inputs: BuildInputs) -> Iterator[tuple[str, str]]:
    """The flags that give builds the same again, without reading this shell."""
    yield from (("--build-arg", f"{name}={value}") for name, value in inputs.args.items())
    yield from (("--build-secret", f"{name}={value}") for name, value in inputs.secrets.items())


def build_line(
    place: Place,
    ref: str,
    *,
    tasks: str | None,
    inputs: BuildInputs,
    skip_refused: bool = False,
    base: str = "auto",
) -> str:
    """The command that builds the images of a published taskset with the same values, and waits."""
    words = ["tasksets", "build-images", *selected(ref, tasks, inputs, skip_refused)]
    words += ["--base", base] if base != "auto" else []
    return command(place, *words, "--wait")


def selected(ref: str, tasks: str | None, inputs: BuildInputs, skip_refused: bool = False) -> list[str]:
    """A published taskset on a command line, with what decides about its images."""
    words = [ref, *(["--tasks", tasks] if tasks else []), *(["--skip-refused"] if skip_refused else [])]
    return [*words, *(word for flag in build_flags(inputs) for word in flag)]


def _argument(text: str, env: Mapping[str, str]) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if equals:
        return name, value
    if name not in env:
        raise _wrong(f"--build-arg {name}: there is no such variable in this shell", "write NAME=VALUE")
    return name, env[name]


def _secret(text: str) -> tuple[str, str]:
    identity, equals, reference = text.partition("=")
    if not equals:
        raise _wrong(f"--build-secret {text!r} names no Secret", "write ID=SECRET/KEY")
    return identity, reference


def _wrong(message: str, hint: str) -> UsageError:
    return UsageError("unknown_flag_value", message, hint)
