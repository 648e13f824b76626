"""Finds and reads sandbox profiles: the shipped ones, and those in `profiles` beside the platform file.

A profile of the site replaces a shipped one of the same name.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from argo_harbor.errors import Finding, Refused
from argo_harbor.model.platform import Platform
from argo_harbor.model.profile import Profile
from argo_harbor.planning.profiles import default_profile_name
from argo_harbor.settings.addresses import wrong_hosts, wrong_ranges
from argo_harbor.settings.platform import platform_file as file_in_force
from argo_harbor.settings.shipped import shipped_folder
from argo_harbor.settings.strict import parse_model, read_toml

__all__ = ["ListedProfile", "check_profile", "default_profile_name", "list_profiles", "load_profile"]

CODE = "invalid_profile"
SHIPPED = "shipped"
_HOSTS = ("hosts", "agent_setup_egress", "verifier_egress")


class ListedProfile(NamedTuple):
    """A profile that can be named."""

    name: str
    default: bool
    """True for the profile of a run that names none."""
    source: str
    """`shipped`, or its file."""


def list_profiles(
    platform: Platform, *, platform_file: Path | None = None, env: Mapping[str, str] | None = None
) -> list[ListedProfile]:
    """All profiles by name, unread. `platform_file` and `env` as in `find_platform`."""
    default = default_profile_name(platform)
    shipped = shipped_folder("profiles")
    return [
        ListedProfile(name, name == default, SHIPPED if path.parent == shipped else str(path))
        for name, path in sorted(_files(platform_file, env).items())
    ]


def load_profile(
    name: str, *, platform_file: Path | None = None, env: Mapping[str, str] | None = None
) -> Profile:
    """Read a profile by name.

    Raises:
        Refused: `unknown_profile` with the names that there are, `invalid_profile` with every mistake.
    """
    files = _files(platform_file, env)
    path = files.get(name)
    if path is None:
        near = difflib.get_close_matches(name, files, n=1)
        meant = f"did you mean {near[0]}? " if near else ""
        raise Refused(
            "unknown_profile", f"there is no profile {name!r}", f"{meant}profiles: {', '.join(sorted(files))}"
        )
    return _read(path)


def check_profile(path: Path, platform: Platform) -> Profile:
    """Read one profile file as it would be used on the platform.

    Raises:
        Refused: `invalid_profile`, or `group_undefined` for groups that the platform lacks.
    """
    profile = _read(path)
    findings = []
    for field in _HOSTS:
        for entry in getattr(profile, field):
            group = entry[1:] if entry.startswith("@") and entry != "@public" else ""
            if group and group not in platform.groups:
                findings.append(
                    Finding(
                        "group_undefined",
                        f"uses {entry}, which the platform does not define",
                        f'set groups.{group} = ["host", …] in the platform file',
                        file=str(path),
                        key=field,
                    )
                )
    if findings:
        raise Refused.of(findings, what="file")
    return profile


def _files(platform_file: Path | None, env: Mapping[str, str] | None) -> dict[str, Path]:
    folders = [shipped_folder("profiles")]
    site = file_in_force(platform_file, env)
    if site is not None:
        folders.append(site.path.parent / "profiles")
    return {path.stem: path for folder in folders for path in sorted(folder.glob("*.toml"))}


def _read(path: Path) -> Profile:
    data = read_toml(path, CODE)
    data.setdefault("name", path.stem)
    profile = parse_model(Profile, data, code=CODE, file=str(path))
    findings = [
        Finding(CODE, message, f"correct {key}", file=str(path), key=key)
        for key, message in _wrong(profile, path.stem)
    ]
    if findings:
        raise Refused.of(findings, what="file")
    return profile


def _wrong(profile: Profile, stem: str) -> Iterator[tuple[str, str]]:
    if profile.name != stem:
        yield "name", f"{profile.name!r} differs from the file's name, by which profiles are found"
    for field in _HOSTS:
        yield from wrong_hosts(field, getattr(profile, field), groups=True)
    yield from wrong_ranges("deny", profile.deny)
    if profile.default_timeout_seconds > profile.max_timeout_seconds:
        yield "default_timeout_seconds", f"is above max_timeout_seconds, {profile.max_timeout_seconds}"
