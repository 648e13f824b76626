"""What an image build leaves in the store: `builds/<image key>/<pod uid>.json`.

Written by the build step, read by the merge to say why trials of a task never started.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from argo_harbor.model.base import Model

BUILD_ERRORS: dict[str, str] = {
    "image_build_failed": "an instruction of the Dockerfile failed, or the build as a whole",
    "base_image_not_found": "a base image that the Dockerfile names is not in its registry",
    "registry_unauthorized": "a registry did not take the credentials for a pull or a push",
    "registry_unreachable": "a registry did not answer in any try",
}
"""Codes of `code` in a build record, and what they mean."""


class BuildRecord(Model):
    """One try to build one image."""

    schema_version: Literal["build-1"] = "build-1"
    image_key: str
    """64 hex."""
    ok: bool
    reference: str
    """The tag that was looked for and, unless it was there, built."""
    found: bool = False
    """True when the tag was there, so that nothing was built."""
    digest: str = ""
    """`sha256:…` of the pushed or found image; empty after a failure."""
    step: str = ""
    """The failing instruction; empty after a success."""
    message: str = Field(default="", max_length=8192)
    """Its last lines of output."""
    code: str = ""
    """One of `BUILD_ERRORS` after a failure; empty means `image_build_failed`."""
    registry: str = ""
    """Host of the registry that said no."""
    image: str = ""
    """What that registry was asked for, by its full name."""
    secret: str = ""
    """Name of the Secret whose login was used for it; empty when there was none."""
    bases: dict[str, str] = Field(default_factory=dict)
    """Digests of the base images by their full names, as far as they were resolved."""
    seconds: float = 0.0
    """From the first question to the registry to the end."""
    finished_at: str = ""
