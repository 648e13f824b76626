"""What a sandbox starts from: the layers of an image, its environment and folder.

On the preview base it stands in for a container image: `build.py` makes one per image key, `Base.bare` is the
one of prebuilt images. On the image base it is one, fetched or built by `images.py`.
"""

from __future__ import annotations

from typing import Literal

from argo_harbor.model.base import Model
from argo_harbor.sandbox.preview import PREVIEW_ENV


class Base(Model):
    """An image. Trials of one image share it; sandboxes never write to it."""

    base: Literal["preview", "image"] = "preview"
    from_image: str = ""
    """Of the preview: the image that FROM or `docker_image` names; recorded, never used."""
    digest: str = ""
    """Of the image base: `sha256:…`, empty when the builder names none."""
    env: dict[str, str]
    workdir: str
    """Absolute."""
    layers: str = ""
    """Folder with one layer for each tree: a sandbox's `upper` after a build on the preview, empty when no
    step ran; the files of an image as `root`."""

    @classmethod
    def bare(cls, from_image: str = "") -> Base:
        """The preview itself, as a prebuilt image gets it."""
        return cls(from_image=from_image, env=dict(PREVIEW_ENV), workdir="/")
