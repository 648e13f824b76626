"""Reads and checks what `install` is given: platform file, profiles, the store's credentials."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from argo_harbor.errors import Finding, PlatformError, Refused, UsageError
from argo_harbor.install.manifests import Settings, StoreCredentials
from argo_harbor.model.platform import BUILT_IN, Platform
from argo_harbor.settings.platform import CODE, platform_file, read_platform
from argo_harbor.settings.profiles import check_profile
from argo_harbor.settings.shipped import shipped_folder
from argo_harbor.settings.strict import read_text

ACCESS_VARIABLE = "ARGO_HARBOR_STORE_ACCESS_KEY"
SECRET_VARIABLE = "ARGO_HARBOR_STORE_SECRET_KEY"
# What a Secret of Kubernetes holds in all.
_MAX_CREDENTIAL = 4096


class Given(NamedTuple):
    """Checked settings, and what is worth knowing about them."""

    settings: Settings
    warnings: tuple[Finding, ...]


class CredentialFiles(NamedTuple):
    """Files that hold the store's keys; each may be missing, then the environment is asked."""

    access_key: Path | None = None
    secret_key: Path | None = None


def read_settings(
    platform_path: Path | None,
    *,
    profiles: Path | None = None,
    credentials: StoreCredentials | None = None,
    env: Mapping[str, str] | None = None,
) -> Given:
    """The platform file in force, and the profiles: shipped, beside the file, in the folder `profiles`.

    Raises:
        PlatformError: `platform_not_configured` when no platform file is named.
        Refused: `invalid_platform`, `invalid_profile` or `group_undefined`, with every finding.
    """
    chosen = platform_file(platform_path, env)
    if chosen is None:
        raise PlatformError(
            "platform_not_configured",
            "no platform file is named",
            "`argo-harbor install --discover -o platform.toml` begins one; name it with --platform",
        )
    platform = read_platform(chosen.path)
    findings = list(_unfit(platform, str(chosen.path)))
    warnings: list[Finding] = []
    texts: dict[str, str] = {}
    for path, shipped in _profile_files(chosen.path, profiles):
        try:
            check_profile(path, platform)
        except Refused as refused:
            # Nobody asked for a shipped one: it is of use as soon as its groups are defined.
            (warnings if shipped else findings).extend(_named(refused.items, path.stem if shipped else ""))
        texts[path.stem] = read_text(path, "invalid_profile")
    if findings:
        raise Refused.of(findings, what="file")
    settings = Settings(platform, read_text(chosen.path, CODE), texts, credentials)
    return Given(settings, tuple(warnings))


def read_credentials(files: CredentialFiles, env: Mapping[str, str] | None = None) -> StoreCredentials | None:
    """The store's keys from files, else from the environment; None when there are none.

    Raises UsageError `unknown_flag_value` for one without the other, or a file that holds no key.
    """
    environ = os.environ if env is None else env
    found = [
        _credential(path) if path else environ.get(variable, "")
        for path, variable in ((files.access_key, ACCESS_VARIABLE), (files.secret_key, SECRET_VARIABLE))
    ]
    if not any(found):
        return None
    if not all(found):
        missing = "secret" if found[0] else "access"
        raise UsageError(
            "unknown_flag_value",
            f"the store's {missing} key is not given",
            f"set --store-{missing}-key-file or ARGO_HARBOR_STORE_{missing.upper()}_KEY as well",
        )
    return StoreCredentials(*found)


def _credential(path: Path) -> str:
    try:
        with path.open("rb") as file:
            text = file.read(_MAX_CREDENTIAL + 1).decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            "unknown_flag_value", f"{path} cannot be read: {error}", "name a file that holds one key"
        ) from error
    if not text or len(text) > _MAX_CREDENTIAL or not text.isprintable():
        raise UsageError("unknown_flag_value", f"{path} holds no key", "name a file that holds one key")
    return text


def _unfit(platform: Platform, file: str) -> Iterator[Finding]:
    """What a cluster cannot do without and the model cannot ask for: on one machine it is not needed."""
    if platform.store.kind != "s3":
        yield Finding(
            CODE, "a cluster needs an S3 store", 'set store.kind = "s3"', file=file, key="store.kind"
        )
    elif not platform.store.endpoint.startswith(("http://", "https://")):
        hint = 'set store.endpoint = "https://host:port"'
        yield Finding(CODE, "is missing or no http URL", hint, file=file, key="store.endpoint")
    if platform.registry == BUILT_IN.registry:
        hint = "set the registry that the cluster pulls from and builds push to"
        yield Finding(CODE, "is still the placeholder", hint, file=file, key="registry")


def _profile_files(platform_path: Path, given: Path | None) -> list[tuple[Path, bool]]:
    """Each profile's file, and whether it is a shipped one; later folders win.

    Raises UsageError `unknown_flag_value` when the given folder holds no profile.
    """
    shipped = shipped_folder("profiles")
    folders = [shipped, platform_path.parent / "profiles", *([given] if given else [])]
    if given and not list(given.glob("*.toml")):
        raise UsageError(
            "unknown_flag_value", f"{given} holds no *.toml", "name a folder of profiles with --profiles"
        )
    files = {path.stem: path for folder in folders for path in sorted(folder.glob("*.toml"))}
    return [(path, path.parent == shipped) for _, path in sorted(files.items())]


def _named(items: Iterable[Finding], name: str) -> Iterator[Finding]:
    for item in items:
        if not name:
            yield item
            continue
        message = f"profile {name} {item.message}, and cannot be used until it does"
        yield Finding(item.code, message, item.hint, key=item.key)
