"""Which image a sandbox ran, by digest."""

from __future__ import annotations

from pathlib import Path

from argo_harbor.model.build import BuildRecord
from argo_harbor.model.plan import ImagePlan
from argo_harbor.runner.built import image_digest
from argo_harbor.store import layout
from argo_harbor.store.directory import DirectoryStore

KEY = "a" * 64
BUILT = ImagePlan(kind="build", reference="registry.invalid/env:x", key=KEY)


def test_a_digest_is_named_or_was_built_or_is_unknown(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    named = ImagePlan(kind="prebuilt", reference="debian@sha256:" + "0" * 64)
    assert image_digest(store, "run", named) == "sha256:" + "0" * 64
    assert image_digest(store, "run", ImagePlan(kind="prebuilt", reference="debian:12")) == ""
    assert image_digest(store, "run", BUILT) == ""
    for uid, ok, digest in (("1", True, "sha256:1"), ("2", False, "")):
        record = BuildRecord(image_key=KEY, ok=ok, reference=BUILT.reference, digest=digest)
        store.put(layout.build_record("run", KEY, uid), record.canonical())
    store.put(layout.build_record("run", KEY, "3"), b"{}")
    assert image_digest(store, "run", BUILT) == "sha256:1"
