"""What a builder on this machine must not do for a Dockerfile, found before a run starts.

Builders know every instruction; they are kept from the network as a whole, but a Dockerfile can ask for it
by name, and a file that is fetched is fetched by the builder itself. Sandboxes here have no user but root.
"""

from __future__ import annotations

import re

from argo_harbor.errors import Finding
from argo_harbor.sandbox.dockerfile_syntax import DockerfileError, Instruction, read_instructions

_REMOTE = re.compile(r"(^|[\s\"'\[,=])(https?://|git@|git://|ssh://|ftp://)")
_ROOT_USERS = ("root", "0", "root:root", "0:0", "root:0", "0:root")
_OFFLINE = "bring the files along in the task, or use an image that has them"


def check_image_dockerfile(text: str, *, file: str) -> list[Finding]:
    """Everything in a Dockerfile that is not built here; `file` is only named in findings.

    Codes: `local_network_unenforceable`, `local_user_unsupported`; `invalid_task_config` for what is no
    Dockerfile at all.
    """
    try:
        instructions, _ = read_instructions(text)
    except DockerfileError as error:
        return [
            Finding("invalid_task_config", f"line {error.line}: {error}", "correct the Dockerfile", file=file)
        ]
    found = [finding for one in instructions if (finding := _network(one, file)) is not None]
    user = _last_user(instructions)
    if user is not None and "$" not in user.rest and user.rest not in _ROOT_USERS:
        found.append(
            Finding(
                "local_user_unsupported",
                f"line {user.line}: the image runs as {user.rest}, and sandboxes of the local engine as root",
                "leave the task out with --tasks, or compile it for a cluster",
                file=file,
            )
        )
    return found


def _network(instruction: Instruction, file: str) -> Finding | None:
    if instruction.name == "ADD" and _REMOTE.search(instruction.rest):
        asked = "ADD fetches from a network"
    elif instruction.name == "RUN" and (flag := _privileged(instruction)):
        asked = f"RUN asks for {flag}"
    else:
        return None
    return Finding(
        "local_network_unenforceable",
        f"line {instruction.line}: {asked}, and builds on this machine have none",
        _OFFLINE,
        file=file,
    )


def _privileged(instruction: Instruction) -> str:
    for name, value in instruction.flags:
        if (name == "network" and value not in ("none", "default")) or (name, value) == (
            "security",
            "insecure",
        ):
            return f"--{name}={value}"
    return ""


def _last_user(instructions: list[Instruction]) -> Instruction | None:
    """USER of the last stage."""
    last = None
    for one in instructions:
        if one.name == "FROM":
            last = None
        elif one.name == "USER":
            last = one
    return last
