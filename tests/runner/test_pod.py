"""A pod reads its surroundings, and claims its run for its workflow."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from argo_harbor.errors import PlatformError, Refused
from argo_harbor.runner.pod import claim_run, read_pod
from argo_harbor.store import layout
from argo_harbor.store.directory import DirectoryStore
from argo_harbor.workflow import names

ENVIRON = {
    names.POD_UID_ENV: "1f0c1b8e-0000-4000-8000-000000000001",
    names.NODE_ENV: "node-1",
    names.NAMESPACE_ENV: "evals",
    names.WORKFLOW_UID_ENV: "77777777-0000-4000-8000-000000000001",
}


@pytest.fixture
def platform(tmp_path: Path) -> Path:
    folder = tmp_path / "platform"
    folder.mkdir()
    (folder / "platform.toml").write_text(
        'schema = "platform-1"\nnamespace = "evals"\n[store]\nkind = "directory"\nendpoint = "/data"\n'
    )
    return folder


def test_a_pod_knows_itself_and_its_platform(platform: Path, tmp_path: Path) -> None:
    pod = read_pod(ENVIRON, platform=platform, credentials=tmp_path)
    assert (pod.uid, pod.node, pod.namespace) == (ENVIRON[names.POD_UID_ENV], "node-1", "evals")
    assert pod.workflow_uid == ENVIRON[names.WORKFLOW_UID_ENV]
    assert pod.platform.store.kind == "directory"
    assert pod.credentials == tmp_path


def test_outside_of_a_pod_every_missing_variable_is_named(platform: Path) -> None:
    with pytest.raises(
        PlatformError, match=f"{names.POD_UID_ENV}, {names.WORKFLOW_UID_ENV} not set"
    ) as error:
        read_pod({names.NAMESPACE_ENV: "evals", names.POD_UID_ENV: ""}, platform=platform)
    assert error.value.code == "platform_not_configured"


def test_a_broken_platform_file_is_refused(platform: Path) -> None:
    (platform / "platform.toml").write_text("registry = 1")
    with pytest.raises(Refused) as error:
        read_pod(ENVIRON, platform=platform)
    assert error.value.code == "invalid_platform"


def test_all_pods_of_a_workflow_claim_its_run(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    for _ in range(2):
        claim_run(store, "run-1", "workflow-a")
    assert [entry.key for entry in store.list("runs/run-1/workflows/")] == ["runs/run-1/workflows/workflow-a"]


def test_a_workflow_of_the_same_name_is_stopped(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    claim_run(store, "run-1", "workflow-b")
    mark = store.path(layout.workflow_mark("run-1", "workflow-b"))
    os.utime(mark, (1_000, 1_000))
    with pytest.raises(PlatformError, match="belongs to the workflow workflow-b") as error:
        claim_run(store, "run-1", "workflow-a")
    assert error.value.code == "run_id_reused"
    claim_run(store, "run-1", "workflow-b")
