"""Run a check as a user without privileges, also when the tests run as root."""

from __future__ import annotations

import os
import traceback
import warnings
from collections.abc import Callable

ORDINARY_ID = 54321
ORDINARY_GROUP = 54322
"""A supplementary group, which such a user cannot get rid of."""


def as_ordinary_user(check: Callable[[], None]) -> None:
    """Call `check` in a child process of that id; what it needs must be imported already."""
    if os.geteuid() != 0:
        check()
        return
    with warnings.catch_warnings():
        # Idle threads of earlier tests; the child needs none of them.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        status = 1
        try:
            os.setgroups([ORDINARY_GROUP])
            os.setresgid(ORDINARY_ID, ORDINARY_ID, ORDINARY_ID)
            os.setresuid(ORDINARY_ID, ORDINARY_ID, ORDINARY_ID)
            check()
            status = 0
        except BaseException:
            os.write(2, traceback.format_exc().encode())
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, "the check failed, see its output"
