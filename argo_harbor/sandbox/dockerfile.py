"""What the preview base makes of a Dockerfile: steps to carry out, or findings that name the line.

Pure. Submitting calls `check_dockerfile` for all tasks at once; `build.py` carries out what `plan_build`
gives. FROM is recorded and not used, CMD, ENTRYPOINT and LABEL change nothing in a sandbox.
"""

from __future__ import annotations

import json
import posixpath
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from argo_harbor.errors import Finding, Refused
from argo_harbor.sandbox.dockerfile_syntax import (
    DockerfileError,
    Instruction,
    read_instructions,
    without_heredocs,
)
from argo_harbor.sandbox.dockerfile_words import WordError, expand, split_words
from argo_harbor.sandbox.preview import PREVIEW_ENV

_HINT = "use a machine with podman, buildah or docker (--base image), a cluster, or change the Dockerfile"
_REMOTE = re.compile(r"^(https?|git|ssh|ftp)://|^git@|\.git(#.*)?$")
_ROOT_USERS = ("root", "0", "root:root", "0:0", "root:0", "0:root")
_IGNORED = ("CMD", "ENTRYPOINT", "LABEL")


@dataclass(frozen=True, slots=True)
class Run:
    text: str
    """The instruction for messages, with its line."""
    command: str
    """For `bash -c`."""
    env: Mapping[str, str]
    """The image's variables at this point and build arguments."""
    cwd: str


@dataclass(frozen=True, slots=True)
class Copy:
    text: str
    sources: tuple[str, ...]
    """Patterns relative to the build context."""
    inline: tuple[tuple[str, str], ...]
    """Name and content of here-documents."""
    target: str
    """Absolute; ends with `/` when it must be a folder."""
    mode: int = -1
    """Of everything copied; -1 keeps the modes."""
    unpacks: bool = False
    """ADD: local tar archives are unpacked."""


@dataclass(frozen=True, slots=True)
class MakeFolder:
    text: str
    path: str
    """Absolute."""


type Step = Run | Copy | MakeFolder


@dataclass(frozen=True, slots=True)
class BuildPlan:
    from_image: str
    steps: tuple[Step, ...]
    env: Mapping[str, str]
    workdir: str


class _Unsupported(Exception):
    """The preview cannot carry this out."""


@dataclass(slots=True)
class _State:
    escape: str
    build_args: Mapping[str, str]
    from_image: str | None = None
    global_args: dict[str, str] = field(default_factory=dict)
    args: dict[str, str] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=lambda: dict(PREVIEW_ENV))
    workdir: str = "/"
    steps: list[Step] = field(default_factory=list)

    @property
    def variables(self) -> dict[str, str]:
        return self.args | self.env

    def expand(self, word: str) -> str:
        return expand(word, self.variables, self.escape)


def check_dockerfile(text: str, *, file: str, build_args: Mapping[str, str] | None = None) -> list[Finding]:
    """Everything in a Dockerfile that the preview base cannot carry out; `file` is only named in findings.

    Codes: `preview_unsupported`; `invalid_task_config` for what is no Dockerfile at all.
    """
    return _read(text, file, build_args or {})[1]


def plan_build(text: str, *, file: str, build_args: Mapping[str, str] | None = None) -> BuildPlan:
    """Raises: Refused with what `check_dockerfile` finds."""
    state, findings = _read(text, file, build_args or {})
    if findings:
        raise Refused.of(findings)
    return BuildPlan(state.from_image or "", tuple(state.steps), dict(state.env), state.workdir)


def _read(text: str, file: str, build_args: Mapping[str, str]) -> tuple[_State, list[Finding]]:
    try:
        instructions, escape = read_instructions(text)
    except DockerfileError as error:
        return _State("\\", build_args), [_broken(file, error.line, str(error))]
    state = _State(escape, build_args)
    findings = []
    for instruction in instructions:
        try:
            if state.from_image is None and instruction.name not in ("FROM", "ARG"):
                findings.append(_broken(file, instruction.line, f"{instruction.name} stands before FROM"))
                return state, findings
            _INSTRUCTIONS.get(instruction.name, _unknown)(state, instruction)
        except _Unsupported as error:
            findings.append(
                Finding(
                    code="preview_unsupported",
                    message=f"line {instruction.line}: {error}",
                    hint=_HINT,
                    file=file,
                )
            )
        except WordError as error:
            findings.append(_broken(file, instruction.line, str(error)))
    if state.from_image is None and not findings:
        findings.append(_broken(file, len(text.splitlines()), "there is no FROM"))
    return state, findings


def _broken(file: str, line: int, message: str) -> Finding:
    return Finding(
        code="invalid_task_config",
        message=f"line {line}: {message}",
        hint="correct the Dockerfile",
        file=file,
    )


def _unknown(state: _State, instruction: Instruction) -> None:
    raise _Unsupported(f"the preview base does not carry out {instruction.name}")


def _nothing(state: _State, instruction: Instruction) -> None:
    """Instructions that change nothing in a sandbox."""


def _from(state: _State, instruction: Instruction) -> None:
    if state.from_image is not None:
        raise _Unsupported("the preview base has no second build stage")
    words = split_words(instruction.rest, state.escape)
    if len(words) not in (1, 3) or (len(words) == 3 and words[1].upper() != "AS"):
        raise WordError("FROM takes an image, and a name after AS")
    state.from_image = expand(words[0], state.global_args, state.escape)
    state.args.clear()


def _arg(state: _State, instruction: Instruction) -> None:
    is_global = state.from_image is None
    names = state.global_args if is_global else state.args
    for word in _some(split_words(instruction.rest, state.escape), "ARG"):
        name, equals, default = word.partition("=")
        if name in state.build_args:
            names[name] = state.build_args[name]
        elif equals:
            known = state.global_args if is_global else state.variables
            names[name] = expand(default, known, state.escape)
        elif not is_global and name in state.global_args:
            names[name] = state.global_args[name]


def _env(state: _State, instruction: Instruction) -> None:
    words = _some(split_words(instruction.rest, state.escape), "ENV")
    if "=" not in words[0]:
        name, _, value = instruction.rest.partition(" ")
        if not value.strip():
            raise WordError(f"ENV {name} has no value")
        state.env |= {name: state.expand(value.strip())}
        return
    if not all("=" in word for word in words):
        raise WordError("ENV takes NAME=VALUE; a value with blanks needs quotes")
    pairs = [word.partition("=")[::2] for word in words]
    # All values see the variables from before this instruction.
    state.env |= {state.expand(name): state.expand(value) for name, value in pairs}


def _workdir(state: _State, instruction: Instruction) -> None:
    path = state.expand(instruction.rest)
    if not path:
        raise WordError("WORKDIR takes a folder")
    state.workdir = posixpath.normpath(posixpath.join(state.workdir, path))
    state.steps.append(MakeFolder(instruction.text, state.workdir))


def _user(state: _State, instruction: Instruction) -> None:
    user = state.expand(instruction.rest)
    if user not in _ROOT_USERS:
        raise _Unsupported(f"the preview base has no user but root, and USER names {user}")


def _run(state: _State, instruction: Instruction) -> None:
    for name, value in instruction.flags:
        if (name, value) not in (("network", "none"), ("network", "default")):
            raise _Unsupported(f"the preview base does not know RUN --{name}")
    argv = _exec_form(instruction.rest)
    if argv is not None:
        command = f"exec {shlex.join(argv)}"
    else:
        command = f"exec /bin/sh -c {shlex.quote(_script(instruction))}"
    state.steps.append(Run(instruction.text, command, state.variables, state.workdir))


def _script(instruction: Instruction) -> str:
    """The shell form, here-documents included: a lone one is the script itself."""
    rest = _some([instruction.rest] if instruction.rest else [], "RUN")[0]
    if not instruction.heredocs:
        return rest
    if not without_heredocs(rest):
        script = "".join(heredoc.body for heredoc in instruction.heredocs)
        if script.startswith("#!"):
            raise _Unsupported("the preview base runs here-documents with sh alone")
        return script
    return rest + "\n" + "".join(f"{doc.body}{doc.name}\n" for doc in instruction.heredocs)


def _copy(state: _State, instruction: Instruction) -> None:
    mode = -1
    escape = state.escape
    for name, value in instruction.flags:
        if name == "chmod" and re.fullmatch(r"[0-7]{3,4}", state.expand(value)):
            mode = int(state.expand(value), 8)
        elif (name == "chown" and state.expand(value) in _ROOT_USERS) or name == "link":
            continue
        else:
            shown = f"--{name}={value}" if value else f"--{name}"
            raise _Unsupported(f"the preview base does not know {instruction.name} {shown}")
    bare = without_heredocs(instruction.rest)
    listed = _exec_form(bare)
    words = [state.expand(word) for word in (split_words(bare, escape) if listed is None else listed)]
    if len(words) + len(instruction.heredocs) < 2 or not words:
        raise WordError(f"{instruction.name} takes sources and a target")
    *sources, target = words
    if remote := [source for source in sources if _REMOTE.search(source)]:
        raise _Unsupported(f"the preview base has no network, and {instruction.name} asks for {remote[0]}")
    inline = [
        (doc.name, expand(doc.body, state.variables, escape, quotes=False) if doc.expands else doc.body)
        for doc in instruction.heredocs
    ]
    absolute = posixpath.normpath(posixpath.join(state.workdir, target))
    is_folder = target.endswith(("/", "/.")) or target == "." or len(sources) + len(inline) > 1
    state.steps.append(
        Copy(
            text=instruction.text,
            sources=tuple(sources),
            inline=tuple(inline),
            target=absolute.rstrip("/") + "/" if is_folder else absolute,
            mode=mode,
            unpacks=instruction.name == "ADD",
        )
    )


def _exec_form(rest: str) -> list[str] | None:
    """The arguments of a JSON list of strings, or None for every other form, as Docker decides it."""
    if not rest.startswith("["):
        return None
    try:
        words = json.loads(rest)
    except ValueError:
        return None
    return words if isinstance(words, list) and words and all(isinstance(w, str) for w in words) else None


def _some(words: list[str], name: str) -> list[str]:
    if not words:
        raise WordError(f"{name} takes an argument")
    return words


_INSTRUCTIONS: Mapping[str, Callable[[_State, Instruction], None]] = {
    "FROM": _from,
    "ARG": _arg,
    "ENV": _env,
    "WORKDIR": _workdir,
    "USER": _user,
    "RUN": _run,
    "COPY": _copy,
    "ADD": _copy,
    **dict.fromkeys(_IGNORED, _nothing),
}
