"""Which numbers a user of the sandbox has: execd takes numbers, tasks name users.

The file comes from the sandbox, whose root may have written anything there; it only decides as whom commands
run inside.
"""

from __future__ import annotations

from typing import NamedTuple

MAX_PASSWD = 1 << 20
MAX_ID = (1 << 32) - 2


class User(NamedTuple):
    uid: int
    gid: int
    name: str
    """Empty for a number that has no name."""
    home: str


def find_user(wanted: str | int, passwd: bytes) -> User | None:
    """The user of that name or number; a number without an entry is a user without a home.

    None for a name that is not there.
    """
    number = (
        wanted if isinstance(wanted, int) else int(wanted) if wanted.isascii() and wanted.isdigit() else None
    )
    for line in passwd.decode(errors="replace").splitlines():
        user = _entry(line)
        if user is not None and (user.uid == number if number is not None else user.name == wanted):
            return user
    if number is None or number > MAX_ID:
        return None
    # The group that container runtimes give a number without an entry.
    return User(number, 0, "", "/")


def _entry(line: str) -> User | None:
    fields = line.split(":")
    if len(fields) < 6 or not all(field.isascii() and field.isdigit() for field in fields[2:4]):
        return None
    uid, gid = int(fields[2]), int(fields[3])
    if uid > MAX_ID or gid > MAX_ID:
        return None
    return User(uid, gid, fields[0], fields[5] or "/")
