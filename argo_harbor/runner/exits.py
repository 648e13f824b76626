"""How a pod command ends: the exit status is what Argo's retry strategy looks at."""

from __future__ import annotations

import sys
from collections.abc import Callable

from argo_harbor.errors import EXIT_FAILED, HarborError

EXIT_AGAIN = 75
"""Asks for another try in a fresh pod (EX_TEMPFAIL); see `workflow.pods.RETRY_EXPRESSION`."""

_FOR_GOOD = frozenset({"plan_unreadable", "run_id_reused", "platform_not_configured"})
"""Codes that the next try would meet as well."""


class Again(Exception):
    """What failed may succeed in another try: a network fault, a server that restarts, a stop."""


def run_command(command: Callable[[], int]) -> int:
    """Run a pod command and turn what it raises into an exit status and a line for its log."""
    try:
        return command()
    except Again as error:
        print(f"try again: {error}", file=sys.stderr, flush=True)
        return EXIT_AGAIN
    except HarborError as error:
        print(f"error[{error.code}]: {error.message}", file=sys.stderr)
        if error.hint:
            print(f"hint: {error.hint}", file=sys.stderr)
        sys.stderr.flush()
        return EXIT_AGAIN if error.retryable and error.code not in _FOR_GOOD else EXIT_FAILED
