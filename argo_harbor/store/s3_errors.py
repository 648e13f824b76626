"""What a failed request to an S3 server means to people: what, where, why, and what to do about it."""

from __future__ import annotations

from typing import Literal

from argo_harbor.errors import PlatformError
from argo_harbor.store.patience import Fault
from argo_harbor.store.s3_client import NO_S3, NO_TLS, UNREACHABLE, UNTRUSTED

_REACH = "check the store's endpoint, and from outside the cluster set ARGO_HARBOR_STORE_ENDPOINT"
_KEYS = (
    "check both keys: in the store's Secret, or ARGO_HARBOR_STORE_ACCESS_KEY and ARGO_HARBOR_STORE_SECRET_KEY"
)
_KNOWN: dict[str, tuple[str, str]] = {
    "NoSuchBucket": (
        "there is no such bucket",
        "create the bucket or correct store.bucket in the platform file",
    ),
    "AccessDenied": (
        "access denied",
        "let these credentials list the bucket and get, put and delete objects below the prefix",
    ),
    "InvalidAccessKeyId": ("the server does not know the access key", _KEYS),
    "XAdminUserNotFound": ("the server does not know the access key", _KEYS),
    "SignatureDoesNotMatch": ("the secret key does not fit the access key", _KEYS),
    "ExpiredToken": ("the session token has expired", "renew the credentials"),
    "RequestTimeTooSkewed": (
        "this machine's clock and the server's differ by more than 15 minutes",
        "set the clocks right, for example with NTP",
    ),
    "EntityTooLarge": ("the object is larger than the server takes", "raise the server's limit"),
    "KeyTooLongError": ("the name is longer than the server takes", "shorten the prefix or the file's name"),
    "QuotaExceeded": ("the bucket's quota is used up", "free some space or raise the quota"),
    "XMinioStorageFull": ("the server's disks are full", "free some space"),
    UNREACHABLE: ("the server does not answer", _REACH),
    UNTRUSTED: (
        "the server's certificate is not trusted",
        "let SSL_CERT_FILE name the file with the certificate of its authority",
    ),
    NO_TLS: (
        "no encrypted connection came about",
        "check whether the store's endpoint begins with http:// or https://",
    ),
    NO_S3: ("this is no answer of an S3 server", _REACH),
}
"""Cause and hint of S3's codes, and of our own."""


def explain(
    fault: Fault, what: str, *, place: str, code: Literal["store_write_failed", "store_unreadable"]
) -> PlatformError:
    """The error of an operation. `what` is "write KEY", "list PREFIX" …; `place` is endpoint and bucket."""
    cause, hint = _KNOWN.get(
        fault.code, (fault.code, "see the server's log; the same call may succeed later")
    )
    detail = f" ({fault.detail})" if fault.detail else ""
    return PlatformError(code, f"cannot {what} at {place}: {cause}{detail}", hint)
