"""Command lines: how bubblewrap starts a sandbox, how a command enters it, and what its first shell reads.

No variable that a task chose is ever in the environment of nsenter itself, which starts outside: LD_PRELOAD
would load a file of the task into a process of the host. Commands and variables travel as a script on
standard input, which also keeps secrets off the process list.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from argo_harbor.sandbox.base import Network, SandboxError
from argo_harbor.sandbox.ground import Ground
from argo_harbor.sandbox.host import as_sandbox_id
from argo_harbor.sandbox.image import Base
from argo_harbor.sandbox.preview import DEFAULT_PATH

_FIRST_PROCESS = "echo ready; exec >&- 2>&-; while read -r _; do :; done"
HOST_ENV = {"PATH": DEFAULT_PATH, "LC_ALL": "C"}
"""The environment of every program of ours that starts outside."""
_CAPABILITIES = (
    "-all,+chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,+net_bind_service,+sys_chroot"
)
"""What root inside keeps: what a container's root has, without NET_RAW, MKNOD, SETPCAP, SETFCAP and
AUDIT_WRITE."""


def bwrap_command(ground: Ground, base: Base, folder: Path, *, network: Network, info_fd: int) -> list[str]:
    """The command line that starts a sandbox whose changes go to `folder`/upper."""
    command = [*as_sandbox_id(ground.setpriv), ground.bwrap, "--unshare-user", "--uid", "0", "--gid", "0"]
    command += ["--unshare-pid", "--unshare-ipc"]
    command += ["--unshare-uts", "--hostname", "sandbox", "--unshare-cgroup-try"]
    command += ["--unshare-net"] if network == "none" else []
    command += ["--die-with-parent", "--as-pid-1", "--info-fd", str(info_fd)]
    for tree in ground.trees(base.layers):
        for layer in tree.lower:
            command += ["--overlay-src", layer]
        command += ["--overlay", str(folder / "upper" / tree.name), str(folder / "work" / tree.name)]
        command += [tree.target]
    command += ["--proc", "/proc", "--dev", "/dev"]
    for shown, target in ground.shown:
        command += ["--ro-bind", str(shown), target]
    command += ["--chdir", "/", "--clearenv", "--setenv", "PATH", DEFAULT_PATH]
    return [*command, "--", *ground.inside("sh"), "-c", _FIRST_PROCESS]


def entry_script(command: str, *, cwd: str, env: Mapping[str, str], shells: Sequence[str]) -> str:
    """What a command's first shell reads: its folder, variables, and the command in place of that shell.

    The command runs in the first of `shells` that is there.

    Raises: SandboxError for a name that no shell can export.
    """
    lines = []
    for name, value in env.items():
        if not (name.isascii() and name.isidentifier()) or "\0" in value:
            raise SandboxError(f"{name!r} is no variable that a shell can set")
        lines.append(f"export {name}={shlex.quote(value)}")
    lines.append(f"cd -- {shlex.quote(cwd)} || exit 126")
    lines.append(f"set -- {shlex.quote(command)}")
    lines += [f'[ -x {shell} ] && exec {shell} -c "$1" </dev/null' for shell in shells]
    lines.append(f"echo 'there is no {shells[-1]} in this image' >&2; exit 127")
    return "\n".join(lines) + "\n"


def enter_command(ground: Ground, pid: int, *, network: Network) -> list[str]:
    """The start of a command line that runs inside, in a session of its own, with what a container's root
    may do.

    `pid` is the first process of the sandbox as the host sees it.
    """
    command = [*as_sandbox_id(ground.setpriv), ground.nsenter, "--target", str(pid), "--user", "--mount"]
    command += ["--pid", "--ipc", "--uts", *(["--net"] if network == "none" else [])]
    command += [
        "--preserve-credentials",
        "--",
        *ground.inside("setpriv"),
        "--no-new-privs",
        "--inh-caps=-all",
    ]
    return [*command, f"--bounding-set={_CAPABILITIES}", "--", *ground.inside("setsid")]
