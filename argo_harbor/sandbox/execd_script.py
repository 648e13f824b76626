"""Shell scripts of our own that run as root in a sandbox, each of which first says where it ran.

Its first line tells the first process of the container and how many processes the kernel ended for lack of
memory. A container that was killed comes back empty, so a script that ran under another first process must
not count. The scripts ask for a POSIX shell only; the image may bring nothing else.
"""

from __future__ import annotations

import re
import shlex
from typing import NamedTuple

NO_FOLDER = 44
"""Status of `pack` when there is nothing to pack."""

_WHERE = """\
read -r s </proc/1/stat
o=
[ -r /sys/fs/cgroup/memory.events ] && while read -r k v; do
[ "$k" = oom_kill ] && o=$v
done </sys/fs/cgroup/memory.events
echo "$s|$o"
"""
_STAT = re.compile(r"^1 \((?P<name>.*)\)(?P<fields>(?: -?\w+){20,})\|(?P<oom>\d{0,18})$", re.DOTALL)
_STARTED = 19
"""Position of the start time among the fields after the name, as proc(5) counts them."""
_GNU = "--format=gnu --numeric-owner --hard-dereference --ignore-failed-read"


class Where(NamedTuple):
    """Which container a script ran in."""

    first: str
    """Start time of its first process in clock ticks: another one is another container."""
    name: str
    """Name of that process."""
    oom_kills: int


def script(text: str) -> str:
    """The whole text of a script: what it says of its place, then `text`."""
    return _WHERE + text


def read_where(line: str) -> Where | None:
    """What the first line of a script's output says, None when it is none."""
    found = _STAT.match(line)
    if found is None:
        return None
    return Where(found["fields"].split()[_STARTED], found["name"], int(found["oom"] or 0))


WELCOME = """\
t=none
if command -v tar >/dev/null 2>&1; then
t=tar
case $(tar --version 2>/dev/null) in *GNU*) t=gnu ;; esac
fi
echo "$t"
"""
"""Prints which tar there is: `none`, `tar` or `gnu`."""


def unpack(archive: str, folder: str) -> str:
    """Unpack a tar archive into a folder and remove the archive."""
    a, f = shlex.quote(archive), shlex.quote(folder)
    return f"mkdir -p -- {f} && tar -x -p -o -C {f} -f {a}\ns=$?\nrm -f -- {a}\nexit $s\n"


def pack(folder: str, member: str, archive: str, *, gnu: bool) -> str:
    """Pack a folder (`.`) or what is in it (`./name`) into a new archive."""
    a, f, m = shlex.quote(archive), shlex.quote(folder), shlex.quote(member)
    there = f"[ -e {f}/{m} ] || [ -L {f}/{m} ]"
    recursion = " --no-recursion" if gnu and member != "." else ""
    flags = f" {_GNU}{recursion}" if gnu else ""
    return f"{{ {there}; }} || exit {NO_FOLDER}\ntar -c{flags} -C {f} -f {a} -- {m}\n"


def link(target: str, name: str) -> str:
    """Make a symbolic link, over what is there."""
    return f"ln -sfn -- {shlex.quote(target)} {shlex.quote(name)}\n"


KILL_ALL = "kill -9 -1\nexit 0\n"
"""Ends every process but the first one and this shell."""
