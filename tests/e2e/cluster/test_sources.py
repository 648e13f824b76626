"""Tasks that others keep elsewhere, on the cluster: pinned, published to its store, and run by their ref."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.cluster.remote import Remote
from tests.e2e.cluster.suites import ready_task
from tests.support.fixtures_hub import NAME, HubSite
from tests.support.git_repos import Repository, git_over_http

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.filterwarnings("ignore:The '.*' parameter is deprecated:DeprecationWarning"),
]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """URL of a repository whose tag v1 has two tasks that need no build, and the commit of the tag."""
    repository = Repository.make(tmp_path / "served" / "team" / "suite")
    for name in ("one", "two"):
        ready_task(repository.path / "tasks", name)
    # The cluster's store may have seen these tests before.
    texts = {f"tasks/{name}/instruction.md": f"{name} {secrets.token_hex(8)}\n" for name in ("one", "two")}
    commit = repository.commit(texts)
    repository.git("tag", "v1")
    repository.commit({"tasks/one/instruction.md": "Later.\n"})
    with git_over_http(tmp_path / "served") as server:
        yield server.url("team/suite"), commit


def test_a_repository_is_published_once_and_run_by_ref(
    remote: Remote, served: tuple[str, str], tmp_path: Path
) -> None:
    url, commit = served
    created = remote("tasksets", "create", "--harbor-git", f"{url}@v1")
    assert created.status == 0, created.stderr
    *published, label, ref = created.stdout.splitlines()
    assert [line.split()[0] for line in published] == ["Published"] * 3
    assert label == f"Intake label: --intake-dataset team/suite@{commit}"
    assert "verifier code that will run" in created.stderr

    again = remote("tasksets", "create", "--harbor-git", f"{url}@{commit}", "--json")
    document = again.json("taskset-create-document-1")
    assert (document["taskset_ref"], document["published"], document["unchanged"]) == (ref, 0, 2)
    assert document["intake_dataset"] == f"team/suite@{commit}"
    shown = remote("tasksets", "show", ref, "--json").json("taskset-document-1")
    assert (shown["source"], shown["in_store"]) == (document["source"], 2)
    assert commit in shown["source"]

    ran = remote(
        "runs", "submit", "--taskset", ref, "--tasks", "one", "--agent", "oracle", "--wait", "--json"
    )
    assert ran.status == 0, ran.stderr
    run_id = ran.json("run-document-1")["run"]["id"]
    bundle = remote("runs", "download", run_id, "-o", tmp_path / "copy", "--json")
    [metadata] = Path(bundle.json("download-document-1")["path"]).rglob("metadata.json")
    labels = json.loads(metadata.read_bytes())["labels"]
    assert (labels["dataset"], labels["taskset"]) == (f"team/suite@{commit}", ref)


def test_a_dataset_of_a_hub_is_published_by_its_digest(remote: Remote, hub_site: HubSite) -> None:
    environment = {"HOME": str(hub_site.home), "HARBOR_SUPABASE_URL": hub_site.hub.url}
    listed = remote("tasksets", "create", "--harbor-hub", NAME, "--list-tasks", "--json", env=environment)
    pinned = f"{NAME}@sha256:{hub_site.version.digest}"
    assert listed.json("task-list-document-1")["source"] == pinned
    created = remote("tasksets", "create", "--harbor-hub", NAME, "--tasks", "0,2", env=environment)
    assert created.status == 0, created.stderr
    *_, label, ref = created.stdout.splitlines()
    assert label == f"Intake label: --intake-dataset {pinned}"
    assert ref == listed.json("task-list-document-1")["taskset_ref"]
    shown = remote("tasksets", "show", ref, "--json").json("taskset-document-1")
    assert (shown["total"], shown["in_store"], shown["source"]) == (3, 2, pinned)
