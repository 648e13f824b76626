"""Finds and reads sandbox profiles: the shipped ones, and those in `profiles` beside the platform file.

A profile of the site replaces a shipped one of the same name.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from argo_harbor.errors import Finding, HarborError, Refused
from argo_harbor.model.platform import Platform
from argo_harbor.model.profile import Profile
from argo_harbor.planning.profiles import default_profile_name
from argo_harbor.settings.addresses import wrong_hosts, wrong_ranges
from argo_harbor.settings.platform import platform_file as file_in_force
from argo_harbor.settings.shipped import shipped_folder
from argo_harbor.settings.strict import parse_model, parse_toml, read_text

__all__ = [
    "ListedProfile",
    "check_profile",
    "default_profile_name",
    "list_profiles",
    "load_profile",
    "parse_profile",
    "unknown_profile",
]

CODE = "invalid_profile"
SHIPPED = "shipped"
_HOSTS = ("hosts", "agent_setup_egress", "verifier_egress")


class ListedProfile(NamedTuple):
    """A profile that can be named."""

    name: str
    default: bool
    """True for the profile of a run that names none."""
    source: str
    """`shipped`, its file, or the ConfigMap that holds it."""


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
        raise unknown_profile(name, files)
    return _read(path)


def unknown_profile(name: str, known: Iterable[str]) -> HarborError:
    """The error for a name that is none of the known ones."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1)
    meant = f"did you mean {near[0]}? " if near else ""
    return Refused("unknown_profile", f"there is no profile {name!r}", f"{meant}profiles: {', '.join(names)}")


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
    return parse_profile(read_text(path, CODE), path.stem, str(path))


def parse_profile(text: str, name: str, file: str) -> Profile:
    """Check the text of a profile; `name` is what it is found by, `file` says where it stands.

    Raises:
        Refused: `invalid_profile` with every mistake.
    """
    data = parse_toml(text, CODE, file)
    data.setdefault("name", name)
    profile = parse_model(Profile, data, code=CODE, file=file)
    findings = [
        Finding(CODE, message, f"correct {key}", file=file, key=key) for key, message in _wrong(profile, name)
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
