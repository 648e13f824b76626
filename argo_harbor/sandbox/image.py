"""What a sandbox of the preview base starts from: the layer its build steps left, environment, folder.

Stands in for a container image. `build.py` makes one per image key; `Base.bare` is the one of prebuilt
images.
"""

from __future__ import annotations

from typing import Literal

from argo_harbor.model.base import Model
from argo_harbor.sandbox.preview import PREVIEW_ENV


class Base(Model):
    """An image on the preview base. Trials of one image share it; sandboxes never write to it."""

    base: Literal["preview"] = "preview"
    from_image: str = ""
    """The image that FROM or `docker_image` names; recorded, never used."""
    env: dict[str, str]
    workdir: str
    """Absolute."""
    layers: str = ""
    """Folder with one layer for each tree, as a sandbox's `upper`; empty when no step ran."""

    @classmethod
    def bare(cls, from_image: str = "") -> Base:
        """The preview itself, as a prebuilt image gets it."""
        return cls(from_image=from_image, env=dict(PREVIEW_ENV), workdir="/")
