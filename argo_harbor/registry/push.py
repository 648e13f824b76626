"""Pushes a tiny image and pulls it back: what `doctor` asks of a registry before builds rely on it."""

from __future__ import annotations

import hashlib
import json
from urllib.parse import urlencode

from argo_harbor.registry.client import Registries
from argo_harbor.registry.errors import RegistryError
from argo_harbor.registry.reference import ImageName, parse_image

_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIG = json.dumps(
    {"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": []}, "config": {}}
).encode()


def push_and_pull(registries: Registries, reference: str) -> None:
    """Push an image of no layers under a reference, and read it back.

    The same bytes each time, and removed again where the registry can: nothing piles up in it.
    Raises: RegistryError, ValueError for what is no reference.
    """
    image = parse_image(reference)
    _upload(registries, image, _CONFIG)
    manifest = json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": {
                "mediaType": "application/vnd.oci.image.config.v1+json",
                "digest": _digest(_CONFIG),
                "size": len(_CONFIG),
            },
            "layers": [],
        }
    ).encode()
    path = f"manifests/{image.version}"
    _written(
        registries.request("PUT", image, path, headers={"Content-Type": _MANIFEST}, body=manifest).status,
        image,
    )
    if registries.request("GET", image, path, headers={"Accept": _MANIFEST}).data != manifest:
        raise RegistryError(f"{image.registry} does not give back {image} as it was pushed")
    try:
        registries.request("DELETE", image, f"manifests/{_digest(manifest)}")
    except RegistryError:
        # Many registries take no deletions; the next visit overwrites the image.
        return


def _upload(registries: Registries, image: ImageName, blob: bytes) -> None:
    began = registries.request("POST", image, "blobs/uploads/")
    location = began.headers.get("Location", "")
    _written(began.status if location else 404, image)
    joint = "&" if "?" in location else "?"
    done = registries.request(
        "PUT",
        image,
        f"{location}{joint}{urlencode({'digest': _digest(blob)})}",
        headers={"Content-Type": "application/octet-stream"},
        body=blob,
    )
    _written(done.status, image)


def _written(status: int, image: ImageName) -> None:
    if status == 404:
        raise RegistryError(f"{image.registry} has no place for {image.repository}")


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"
