"""The one profile that is known without reading a file, and which profile a run has when none is named."""

from __future__ import annotations

from argo_harbor.model.platform import Platform
from argo_harbor.model.profile import Profile

CLOSED = Profile(name="closed", description="No network at all: a sandbox reaches nothing but itself.")
"""The same as the shipped `profiles/closed.toml`."""


def default_profile_name(platform: Platform) -> str:
    """The platform's choice, else `harbor-standard`, or `closed` where no platform is configured."""
    return platform.default_sandbox_profile or (CLOSED.name if platform.built_in else "harbor-standard")
