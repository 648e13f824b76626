from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from argo_harbor.engines.where import local_store, store_root
from argo_harbor.errors import PlatformError, Refused
from argo_harbor.sources import load_taskset
from argo_harbor.store.folder import replacing


def test_the_flag_comes_before_the_variable_and_that_before_the_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    named = {"ARGO_HARBOR_STORE": "/named", "XDG_DATA_HOME": "/data"}
    assert store_root(Path("~/mine"), named) == (tmp_path / "mine", "--store")
    assert store_root(None, named) == (Path("/named"), "ARGO_HARBOR_STORE")
    assert store_root(None, {"XDG_DATA_HOME": "/data"}) == (Path("/data/argo-harbor"), "XDG_DATA_HOME")
    own = tmp_path / ".local/share/argo-harbor"
    assert store_root(None, {}) == (own, "default")
    assert local_store(None, {}).root == own / "local"


def test_a_relative_data_folder_counts_for_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert store_root(None, {"XDG_DATA_HOME": "data"}) == store_root(None, {})


def test_a_home_that_there_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "~nobody-at-all")
    for flag, environment in (
        (Path("~nobody-at-all/store"), {}),
        (None, {"ARGO_HARBOR_STORE": "~nobody-at-all/store"}),
        (None, {}),
    ):
        with pytest.raises(PlatformError, match="no place for the local store") as caught:
            store_root(flag, environment)
        assert "--store" in caught.value.hint


def test_a_current_folder_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    shutil.rmtree(tmp_path / "gone")
    with pytest.raises(PlatformError):
        store_root(Path("store"), {})
    with pytest.raises(PlatformError), replacing(Path("out")):
        pytest.fail("there is no folder to fill")
    with pytest.raises(Refused) as caught:
        load_taskset("suite")
    assert caught.value.code == "source_unreadable"
