"""What an image build leaves in the store: `builds/<image key>/<pod uid>.json`.

Written by the build step, read by the merge to say why trials of a task never started.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from argo_harbor.model.base import Model


class BuildRecord(Model):
    """One try to build one image."""

    schema_version: Literal["build-1"] = "build-1"
    image_key: str
    """64 hex."""
    ok: bool
    reference: str
    """The tag that was looked for and, unless it was there, built."""
    digest: str = ""
    """`sha256:…` of the pushed or found image; empty after a failure."""
    step: str = ""
    """The failing instruction; empty after a success."""
    message: str = Field(default="", max_length=8192)
    """Its last lines of output."""
    finished_at: str = ""
