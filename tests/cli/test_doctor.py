"""`argo-harbor doctor` as people call it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.doctor.conftest import NAMESPACE, PLATFORM_TEXT, Bench, bench

__all__ = ["bench"]
DOCUMENT = "doctor-document-1"


def test_the_table_and_its_cures(argo_harbor: Command, bench: Bench) -> None:
    done = argo_harbor("doctor", "--namespace", "evals")
    assert done.status == 1
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["kubernetes", "ok", "v1.34.4"]
    (store,) = [line for line in lines if line.startswith("store from here")]
    assert store.split()[3] == "FAILED"
    assert "cure: " in lines[lines.index(store) + 1]
    assert lines[-1].endswith("1 failed")
    assert "network policy: ok" in done.stderr
    assert "namespace evals" in done.stderr


def test_the_document(argo_harbor: Command, bench: Bench) -> None:
    done = argo_harbor("doctor", "--namespace", "evals", "--json")
    document = done.json(DOCUMENT)
    assert (done.status, document["ok"], document["namespace"]) == (1, False, "evals")
    names = [each["name"] for each in document["checks"]]
    assert names[0] == "kubernetes"
    assert names[-1] == "argo network step"
    assert len(names) == len(set(names))


def test_a_file_names_the_namespace_and_stands_for_the_installed_one(
    argo_harbor: Command, bench: Bench, tmp_path: Path
) -> None:
    file = tmp_path / "platform.toml"
    file.write_text(PLATFORM_TEXT.replace("runner:1", "runner:2"))
    document = argo_harbor("doctor", "--platform", file, "--json").json(DOCUMENT)
    assert document["namespace"] == "evals"
    (runner,) = [each for each in document["checks"] if each["name"] == "image runner"]
    assert runner["message"] == "r.example/runner:2"


def test_quick_without_an_installation(argo_harbor: Command, bench: Bench) -> None:
    document = argo_harbor("doctor", "--quick", "--namespace", "empty", "--json").json(DOCUMENT)
    (installation,) = [each for each in document["checks"] if each["name"] == "installation"]
    assert installation["status"] == "failed"
    assert "--discover" in installation["hint"]


def test_no_cluster(argo_harbor: Command) -> None:
    assert argo_harbor("doctor").status == 5


def test_an_end_by_signal_leaves_nothing(
    argo_harbor: Command, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.answers["supplies"] = None
    before = signal.getsignal(signal.SIGTERM)

    def end(created: dict[str, object]) -> None:
        bench.admit(created)
        if created["kind"] == "Workflow":
            os.kill(os.getpid(), signal.SIGTERM)

    bench.api.admit = end
    done = argo_harbor("doctor", "--namespace", "evals")
    assert done.status == 130
    left = [name for name in bench.api.names(f"{NAMESPACE}/pods") if "-argo-" not in name]
    assert left == []
    assert signal.getsignal(signal.SIGTERM) is before


def test_what_cannot_be_removed_is_said(argo_harbor: Command, bench: Bench) -> None:
    bench.api.refusals["DELETE /apis/networking.k8s.io"] = (403, "forbidden")
    assert "could not be removed: /apis/networking" in argo_harbor("doctor", "--namespace", "evals").stderr
