"""What runs in probe pods, run here."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from argo_harbor.doctor import probe, services
from argo_harbor.model.platform import Platform, SecretNames, StoreSettings
from argo_harbor.store.directory import DirectoryStore


@pytest.fixture
def answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "answer"
    monkeypatch.setenv("ARGO_HARBOR_ANSWER", str(file))
    monkeypatch.setattr(probe, "SETTLE_SECONDS", 0.2)
    monkeypatch.setattr(probe, "CONNECT_SECONDS", 0.5)
    return file


@pytest.fixture
def listening(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        monkeypatch.setattr(probe, "PORT", port)
        yield port


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def test_it_serves_until_it_is_ended() -> None:
    port = closed_port()
    command = [sys.executable, "-m", "argo_harbor.doctor.probe", "serve", json.dumps({"port": port})]
    with subprocess.Popen(command) as serving:
        try:
            assert probe._until_fine(lambda: probe._reach("127.0.0.1", port)) == ""
            assert probe.sidecar({"port": port}) == {"error": ""}
        finally:
            serving.kill()
    assert "127.0.0.1" in probe.sidecar({"port": port})["error"]


def test_a_connection(answer: Path, listening: int) -> None:
    assert probe.main(["connect", json.dumps({"target": "127.0.0.1"})]) == 0
    assert json.loads(answer.read_text()) == {"error": ""}


def test_a_connection_that_fails(answer: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "PORT", closed_port())
    assert probe.main(["connect", json.dumps({"target": "127.0.0.1"})]) == 0
    assert "refused" in json.loads(answer.read_text())["error"]


def question(port: int) -> str:
    places = {"store": ["127.0.0.1", port], "API server": ["127.0.0.1", closed_port()]}
    return json.dumps({"target": "127.0.0.1", "places": places, "name": "localhost"})


def test_a_fence_that_does_not_close(answer: Path, listening: int) -> None:
    probe.main(["fenced", question(listening)])
    said = json.loads(answer.read_text())
    assert said["closed_after"] is None
    assert said["passed"] >= 1
    assert said["dns"] == ""
    assert said["places"]["store"] == ""
    assert "refused" in said["places"]["API server"]


def test_a_fence_that_is_closed(answer: Path, monkeypatch: pytest.MonkeyPatch, listening: int) -> None:
    monkeypatch.setattr(probe, "PORT", closed_port())
    probe.main(["fenced", question(listening)])
    said = json.loads(answer.read_text())
    assert said["passed"] == 0
    assert said["closed_after"] < 1


def test_a_name_that_does_not_resolve() -> None:
    assert "nowhere.invalid" in probe._resolve("nowhere.invalid")


def test_what_goes_wrong_is_an_answer(answer: Path) -> None:
    assert probe.main(["connect", "{}"]) == 1
    assert json.loads(answer.read_text()) == {"crash": "KeyError: 'target'"}


def test_services_in_a_pod_without_secrets(answer: Path) -> None:
    platform = Platform(
        registry="127.0.0.1:9/suites",
        store=StoreSettings(endpoint="http://127.0.0.1:9"),
        secrets=SecretNames(registry="push"),
    )
    asked = {**services.question_of(platform, "visit"), "name": "localhost"}
    assert probe.main(["services", json.dumps(asked)]) == 0
    said = json.loads(answer.read_text())
    assert "no credentials" in said["store"]["error"]
    assert "push is missing" in said["registry"]["error"]
    assert said["dns"] == ""


def test_services_over_a_folder_and_a_closed_registry(tmp_path: Path) -> None:
    platform = Platform(
        registry="127.0.0.1:9/suites", store=StoreSettings(kind="directory", endpoint=str(tmp_path))
    )
    asked = services.question_of(platform, "visit")
    said = services.try_store(asked)
    assert said["error"] == ""
    assert abs(said["skew"]) < 5
    assert "127.0.0.1:9" in services.try_registry(asked)["error"]


def test_a_login_that_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services.names, "REGISTRY_PATH", str(tmp_path))
    (tmp_path / "push").mkdir()
    (tmp_path / "push" / "config.json").write_text("[]")
    platform = Platform(registry="127.0.0.1:9/suites", secrets=SecretNames(registry="push"))
    assert "push" in services.try_registry(services.question_of(platform, "visit"))["error"]


class Forgetful(DirectoryStore):
    """A store that takes everything and keeps nothing: no real one can be made to."""

    gives = b""

    def get(self, key: str) -> bytes:
        return self.gives or super().get(key)

    def put(self, key: str, data: bytes) -> None:
        if self.gives:
            super().put(key, data)


def test_a_store_that_loses_or_changes_what_it_takes(tmp_path: Path) -> None:
    store = Forgetful(tmp_path)
    assert "does not have" in services.round_trip(store, "visit")["error"]
    store.gives = b"other"
    assert "other bytes" in services.round_trip(store, "visit")["error"]
    assert list(store.list("doctor/")) == []


def test_a_store_that_does_not_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = DirectoryStore(tmp_path)
    monkeypatch.setattr(DirectoryStore, "list", lambda self, prefix: iter(()))
    assert "does not list" in services.round_trip(store, "visit")["error"]
