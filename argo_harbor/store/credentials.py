"""Who the store's server is told we are: two strings, or a folder whose files may change while we run.

Used by the S3 store; users' come from their environment, pods mount a Secret as a folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from argo_harbor.errors import PlatformError

ACCESS_KEY = "access_key"
SECRET_KEY = "secret_key"
"""Keys of the Secret, and so names of the files."""
ACCESS_KEY_ENV = "ARGO_HARBOR_STORE_ACCESS_KEY"
SECRET_KEY_ENV = "ARGO_HARBOR_STORE_SECRET_KEY"


@dataclass(frozen=True, slots=True)
class Credentials:
    """Never shown: neither key is part of the representation."""

    access_key: str = field(repr=False)
    secret_key: str = field(repr=False)
    session_token: str = field(default="", repr=False)
    """Only of short-lived AWS credentials."""


def from_environment(environment: Mapping[str, str]) -> Credentials | None:
    """The user's own: our variables, else those that AWS tools read; None when neither pair is set.

    Raises PlatformError `platform_not_configured` when only one of a pair is set.
    """
    for access, secret, token in (
        (ACCESS_KEY_ENV, SECRET_KEY_ENV, ""),
        ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"),
    ):
        found = [name for name in (access, secret) if environment.get(name)]
        if len(found) == 1:
            (other,) = {access, secret} - set(found)
            raise PlatformError(
                "platform_not_configured", f"{found[0]} is set and {other} is not", f"set {other} too"
            )
        if found:
            return Credentials(environment[access], environment[secret], environment.get(token, ""))
    return None


def from_folder(folder: Path) -> Credentials:
    """The files `access_key` and `secret_key` as they are now.

    Raises PlatformError `platform_not_configured` when one is absent, empty or not readable.
    """
    values = []
    for name in (ACCESS_KEY, SECRET_KEY):
        try:
            value = (folder / name).read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise _unusable(folder / name, getattr(error, "strerror", None) or "is no text") from error
        if not value:
            raise _unusable(folder / name, "is empty")
        values.append(value)
    return Credentials(*values)


def _unusable(path: Path, why: str) -> PlatformError:
    return PlatformError(
        "platform_not_configured",
        f"no credentials for the store: {path}: {why}",
        f"give the store's Secret the keys {ACCESS_KEY} and {SECRET_KEY}",
    )
