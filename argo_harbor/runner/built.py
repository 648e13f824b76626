"""Which image a sandbox ran, by digest: a tag alone may be moved, and what is measured must be named."""

from __future__ import annotations

from pydantic import ValidationError

from argo_harbor.model.build import BuildRecord
from argo_harbor.model.plan import ImagePlan
from argo_harbor.store import layout
from argo_harbor.store.base import KeyNotFound, Store


def image_digest(store: Store, run: str, image: ImagePlan) -> str:
    """`sha256:…`: what the reference itself says, else what the run's own build pushed or found.

    Empty where neither does: a tag of somebody else's, or an image that needed no build step.
    """
    _, _, named = image.reference.partition("@")
    if named or not image.key:
        return named
    found = ""
    for entry in store.list(f"{layout.builds(run)}{image.key}/"):
        try:
            record = BuildRecord.from_json(store.get(entry.key))
        except (KeyNotFound, ValidationError):
            continue
        found = record.digest or found
    return found
