"""The settings in force as one thing: a platform and the profiles that its runs can name.

They come from files, or from the ConfigMaps of a cluster. Commands and engines plan with a Site and need not
know which it was.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from argo_harbor.model.platform import Platform
from argo_harbor.model.profile import Profile
from argo_harbor.settings.platform import find_platform, parse_platform
from argo_harbor.settings.profiles import (
    ListedProfile,
    default_profile_name,
    list_profiles,
    load_profile,
    parse_profile,
    unknown_profile,
)


class Installed(NamedTuple):
    """Profiles that a cluster holds."""

    texts: Mapping[str, str]
    """TOML by profile name."""
    source: str
    """The ConfigMap, in words."""


@dataclass(frozen=True)
class Site:
    """A platform, where it was found, and its profiles."""

    platform: Platform
    origin: str
    """`--platform FILE`, `ARGO_HARBOR_PLATFORM=FILE`, the ConfigMap in words, or `built in`."""
    file: Path | None = None
    """The platform file of a flag; profiles lie beside it."""
    env: Mapping[str, str] = field(default_factory=lambda: dict(os.environ), repr=False)
    installed: Installed | None = None
    """None where profiles come from files."""

    @classmethod
    def of_files(cls, file: Path | None = None, env: Mapping[str, str] | None = None) -> Site:
        """The site that a flag or a variable names, else the built-in one.

        Raises:
            Refused: `invalid_platform`.
        """
        platform, origin = find_platform(file, env)
        return cls(platform, origin, file, dict(os.environ if env is None else env))

    @classmethod
    def installed_in(cls, text: str, source: str, profiles: Installed) -> Site:
        """The site that a cluster's ConfigMaps describe; `text` is its platform file.

        Raises:
            Refused: `invalid_platform`.
        """
        return cls(parse_platform(text, source), source, installed=profiles)

    @property
    def default_profile(self) -> str:
        """Name of the profile of a run that names none."""
        return default_profile_name(self.platform)

    def profile(self, name: str = "") -> Profile:
        """A profile by name, the default one without.

        Raises:
            Refused: `unknown_profile` with the names that there are, `invalid_profile` with every mistake.
        """
        wanted = name or self.default_profile
        if self.installed is None:
            return load_profile(wanted, platform_file=self.file, env=self.env)
        if wanted not in self.installed.texts:
            raise unknown_profile(wanted, self.installed.texts)
        return parse_profile(self.installed.texts[wanted], wanted, f"{self.installed.source}, {wanted}.toml")

    def profiles(self) -> list[ListedProfile]:
        """All profiles by name, unread."""
        if self.installed is None:
            return list_profiles(self.platform, platform_file=self.file, env=self.env)
        return [
            ListedProfile(name, name == self.default_profile, self.installed.source)
            for name in sorted(self.installed.texts)
        ]
