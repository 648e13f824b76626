"""The user's kubeconfig gets one context, and back what it had before."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.cluster import addresses, certificates, kubeconfig
from tests.cluster.state import State

OTHER = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "other", "cluster": {"server": "https://other.test"}}],
    "users": [{"name": "other", "user": {"token": "t"}}],
    "contexts": [{"name": "other", "context": {"cluster": "other", "user": "other"}}],
    "current-context": "other",
    "preferences": {"colors": True},
}


@pytest.fixture
def state(tmp_path: Path) -> State:
    state = State(tmp_path / "cluster")
    state.make()
    for name in ("ca", "admin"):
        certificates.certificate(state, name).write_text(f"certificate of {name}")
        certificates.key(state, name).write_text(f"key of {name}")
    return state


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "user" / "config"
    monkeypatch.setenv("KUBECONFIG", f"{file}:{tmp_path / 'second'}")
    return file


def test_context_comes_and_goes(state: State, file: Path) -> None:
    file.parent.mkdir()
    file.write_text(yaml.safe_dump(OTHER))

    assert kubeconfig.merge(state) == file
    kubeconfig.merge(state)

    merged = yaml.safe_load(file.read_text())
    assert merged["current-context"] == addresses.CONTEXT
    assert [each["name"] for each in merged["contexts"]] == ["other", addresses.CONTEXT]
    assert kubeconfig.holds_us(file)
    assert file.stat().st_mode & 0o077 == 0

    kubeconfig.remove(state)
    assert yaml.safe_load(file.read_text()) == OTHER
    assert not kubeconfig.holds_us(file)


def test_another_choice_of_context_is_kept(state: State, file: Path) -> None:
    file.parent.mkdir()
    file.write_text(yaml.safe_dump(OTHER))
    kubeconfig.merge(state)
    chosen = yaml.safe_load(file.read_text()) | {"current-context": "mine"}
    file.write_text(yaml.safe_dump(chosen))

    kubeconfig.remove(state)
    assert yaml.safe_load(file.read_text())["current-context"] == "mine"


def test_file_of_ours_alone_goes(state: State, file: Path) -> None:
    kubeconfig.merge(state)
    assert file.exists()
    kubeconfig.remove(state)
    assert not file.exists()


def test_nothing_to_remove(state: State, file: Path) -> None:
    kubeconfig.remove(state)
    assert not file.exists()
