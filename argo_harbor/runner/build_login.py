"""The registry logins of a build: the Secrets that the platform names, put together for BuildKit's client.

Only the runner mounts them. BuildKit's daemon, in whose container Dockerfile commands run, asks its client
for a token each time it pulls or pushes, and sees no file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from argo_harbor.model.platform import SecretNames
from argo_harbor.registry.credentials import BrokenConfig, Login, logins, merge_configs


@dataclass(frozen=True, slots=True)
class BuildLogins:
    """Every login that a build may use."""

    by_host: Mapping[str, Login]
    secrets: Mapping[str, str]
    """Which Secret the login of a registry is from."""
    config: bytes
    """All of them as one `config.json`."""
    missing: tuple[str, ...]
    """Secrets that the platform names and the namespace does not have, or not as registry logins."""
    broken: tuple[str, ...]
    """What is wrong with the others that cannot be used, a sentence each."""


def read_logins(secrets: SecretNames, folder: Path) -> BuildLogins:
    """Reads `<folder>/<Secret>/config.json` of each. Of one host the Secret for pushing comes first."""
    named = dict.fromkeys(name for name in (secrets.registry, *secrets.image_pull) if name)
    configs: list[tuple[str, bytes]] = []
    by_host: dict[str, Login] = {}
    origin: dict[str, str] = {}
    missing: list[str] = []
    broken: list[str] = []
    for name in named:
        try:
            text = (folder / name / "config.json").read_bytes()
            found = logins(f"Secret {name}", text)
        except FileNotFoundError:
            missing.append(name)
        except BrokenConfig as error:
            broken.append(str(error))
        else:
            configs.append((name, text))
            for host, login in found.items():
                by_host.setdefault(host, login)
                origin.setdefault(host, name)
    return BuildLogins(by_host, origin, merge_configs(configs), tuple(missing), tuple(broken))
