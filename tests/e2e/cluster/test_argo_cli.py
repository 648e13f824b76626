"""A compiled and published workflow needs Argo and nothing of ours: every way to start it makes a run of its
own. And what a key makes of the same request sent twice."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.e2e.cluster.argo import argo, created
from tests.e2e.cluster.remote import Remote
from tests.e2e.cluster.suites import ready_task

pytestmark = pytest.mark.cluster


@dataclass(frozen=True)
class Started:
    """Run ids by how they were started."""

    first: str
    second: str
    resubmitted: str
    templated: str
    templated_again: str
    first_manifest: bytes
    """Every file of the first run's bundle with its digest, as soon as that run was over."""

    @property
    def all(self) -> tuple[str, ...]:
        return (self.first, self.second, self.resubmitted, self.templated, self.templated_again)


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # A WorkflowTemplate has the name of its taskset, and one of a run that was broken off may still be there.
    folder = tmp_path_factory.mktemp("cli") / f"plain-{secrets.token_hex(4)}"
    ready_task(folder, "only")
    return folder


def compiled(remote: Remote, suite: Path, folder: Path, kind: str) -> Path:
    done = remote(
        *("compile", "--harbor-dir", suite, "--agent", "oracle", "--publish", "--as", kind, "-o", folder),
        *("--platform", remote.cluster.platform),
        env=store_access(remote),
    )
    assert done.status == 0, done.stderr
    return folder / "workflow.yaml"


def download(remote: Remote, run_id: str, folder: Path) -> Path:
    """The bundle."""
    done = remote("runs", "download", run_id, "-o", folder, "--json")
    assert done.status == 0, done.stderr
    return Path(done.json("download-document-1")["path"])


def store_access(remote: Remote) -> dict[str, str]:
    return {
        "ARGO_HARBOR_STORE_ACCESS_KEY": remote.cluster.store_access_key,
        "ARGO_HARBOR_STORE_SECRET_KEY": remote.cluster.store_secret_key,
    }


@pytest.fixture(scope="module")
def started(remote: Remote, suite: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    cluster = remote.cluster
    folder = tmp_path_factory.mktemp("compiled")
    file = compiled(remote, suite, folder / "workflow", "workflow")
    template = compiled(remote, suite, folder / "template", "workflowtemplate")
    name = yaml.safe_load(template.read_text())["metadata"]["name"]
    argo(cluster, "template", "create", template)
    first = created(cluster, "submit", file)
    second = created(cluster, "submit", file)
    templated = created(cluster, "submit", "--from", f"workflowtemplate/{name}")
    templated_again = created(cluster, "submit", "--from", f"workflowtemplate/{name}")
    remote.ended(first, timeout=300)
    manifest = download(remote, first, folder / "first") / "manifest.json"
    resubmitted = created(cluster, "resubmit", first)
    runs = Started(first, second, resubmitted, templated, templated_again, manifest.read_bytes())
    for run_id in runs.all:
        remote.ended(run_id, timeout=300)
    yield runs
    for run_id in runs.all:
        remote.delete(run_id)
    argo(cluster, "template", "delete", name)


def test_each_start_is_a_whole_run_of_its_own(started: Started, remote: Remote, tmp_path: Path) -> None:
    assert len(set(started.all)) == 5
    uids = set()
    for run_id in started.all:
        status = remote("runs", "status", run_id, "--json").json("run-document-1")["run"]
        assert (status["phase"], status["result_state"]) == ("completed", "ready")
        assert remote.trial(run_id, "only")["rewards"] == {"reward": 1.0}
        results = remote("runs", "results", run_id)
        assert results.status == 0, results.stderr
        (record,) = remote.records(run_id, tmp_path, "only")
        assert record["ref"]["run"] == run_id
        uids.add(record["ref"]["uid"])
        path = download(remote, run_id, tmp_path / f"{run_id}-bundle")
        assert json.loads((path / "run.json").read_text())["run_id"] == run_id
    assert len(uids) == 5


def test_later_runs_leave_the_first_as_it_was(started: Started, remote: Remote, tmp_path: Path) -> None:
    manifest = download(remote, started.first, tmp_path / "again") / "manifest.json"
    assert manifest.read_bytes() == started.first_manifest


def test_a_suspended_cronworkflow_is_accepted(remote: Remote, suite: Path, tmp_path: Path) -> None:
    cluster = remote.cluster
    file = compiled(remote, suite, tmp_path, "cronworkflow")
    name = yaml.safe_load(file.read_text())["metadata"]["name"]
    try:
        argo(cluster, "cron", "create", file)
        found = cluster.get("cronworkflow", name, "--namespace", cluster.namespace)
        assert found["spec"]["suspend"] is True
        assert not found.get("status", {}).get("conditions")
    finally:
        cluster.kubectl(
            "delete", "cronworkflow", name, "--namespace", cluster.namespace, "--ignore-not-found"
        )


def test_a_key_is_one_run_and_another_request_under_it_a_conflict(
    remote: Remote, suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PASSED_ON", "a secret of the shell")
    granted = ("-O", "spec.target.env.PASSED_ON=host:PASSED_ON")
    key = f"key-{secrets.token_hex(8)}"
    first = remote.submit(suite, "--idempotency-key", key, *granted)
    assert remote.submit(suite, "--idempotency-key", key, *granted) == first
    assert f"Secret/{first}-host" in remote.left_of(first)
    flags = ("--harbor-dir", suite, "--agent", "nop", "--idempotency-key", key, *granted)
    other = remote("runs", "submit", *flags, "--json")
    assert other.status == 4
    assert other.error["code"] == "idempotency_conflict"
    assert "agent" in json.dumps(other.error)
    remote("runs", "cancel", first)
    remote.ended(first, timeout=300)
    remote.delete(first)
