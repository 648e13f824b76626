"""Image builds: what they are given by name, and what they leave in the store.

A record is written by the build step, in a run at `builds/<image key>/<pod uid>.json`, and always at
`images/<image key>/`, where whoever asks for the state of an image looks.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from argo_harbor.model.base import Model

ArgumentName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
SecretId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")]
"""Id of `RUN --mount=type=secret`; it names a folder."""
SecretKey = Annotated[
    str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/[A-Za-z0-9._-]{1,253}$")
]
"""`NAME/KEY` of a Kubernetes Secret."""

BUILD_ERRORS: dict[str, str] = {
    "image_build_failed": "an instruction of the Dockerfile failed, or the build as a whole",
    "base_image_not_found": "a base image that the Dockerfile names is not in its registry",
    "registry_unauthorized": "a registry did not take the credentials for a pull or a push",
    "registry_unreachable": "a registry did not answer in any try",
    "build_secret_missing": "a Secret that the build was granted is not in the namespace, or lacks the key",
}
"""Codes of `code` in a build record, and what they mean."""


class BuildInputs(Model):
    """Values for builds, by the names that Dockerfiles give them; names that none declares change nothing."""

    args: dict[ArgumentName, str] = Field(default_factory=dict)
    """For ARG. They end up in the image's history: nothing secret."""
    secrets: dict[SecretId, SecretKey] = Field(default_factory=dict)
    """For `RUN --mount=type=secret`: which key of which Secret holds the value."""


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
    """Digests of the base images by their full names, as far as they were resolved. Of an image that was
    found, those of the build that made it."""
    base: Literal["", "image", "preview"] = ""
    """What a build on one machine started from; empty for one that pushed to a registry."""
    seconds: float = 0.0
    """From the first question to the registry to the end."""
    finished_at: str = ""
