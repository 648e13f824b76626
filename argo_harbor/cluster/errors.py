"""How the API server says no, in the few kinds that callers tell apart."""

from __future__ import annotations


class ClusterError(Exception):
    """An answer that is no success. `status` is the HTTP status, `reason` Kubernetes' own word for it."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message


class NotFound(ClusterError):
    """No such object, or no such kind."""


class AlreadyExists(ClusterError):
    """An object of that name is there."""


class Forbidden(ClusterError):
    """The caller's rights do not allow it (401 too: the credentials themselves were not taken)."""


class Rejected(ClusterError):
    """The object is not valid, or an admission check refused it."""


class Unreachable(ClusterError):
    """No answer, or none that a repeat could not better: connection faults, 429, 5xx."""


def of_status(status: int, reason: str, message: str) -> ClusterError:
    """The error of an HTTP status."""
    if status == 404:
        kind: type[ClusterError] = NotFound
    elif status == 409 and reason == "AlreadyExists":
        kind = AlreadyExists
    elif status in (401, 403):
        kind = Forbidden
    elif status in (400, 413, 415, 422):
        kind = Rejected
    elif status == 429 or status >= 500:
        kind = Unreachable
    else:
        kind = ClusterError
    return kind(status, reason, message)
