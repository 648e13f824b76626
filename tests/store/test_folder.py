from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from argo_harbor.errors import PlatformError
from argo_harbor.store import folder
from argo_harbor.store.folder import replacing


def names(path: Path) -> list[str]:
    return sorted(entry.name for entry in path.iterdir())


def test_a_folder_appears_whole(tmp_path: Path) -> None:
    target = tmp_path / "deep/out"
    with replacing(target) as fresh:
        (fresh / "a").write_text("1")
        assert not target.exists()
    assert (target / "a").read_text() == "1"
    assert names(target.parent) == ["out"]
    assert target.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("can_exchange", [True, False])
def test_an_old_one_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, can_exchange: bool) -> None:
    if not can_exchange:

        def refuse(first: Path, second: Path) -> None:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

        monkeypatch.setattr(folder, "_exchange", refuse)
    target = tmp_path / "out"
    target.mkdir()
    (target / "old").write_text("")
    with replacing(target) as fresh:
        (fresh / "new").write_text("")
    assert names(target) == ["new"]
    assert names(tmp_path) == ["out"]


def test_a_failure_leaves_the_old_one(tmp_path: Path) -> None:
    target = tmp_path / "out"
    target.mkdir()
    (target / "old").write_text("")

    def fill() -> None:
        with replacing(target) as fresh:
            (fresh / "new").write_text("")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(PlatformError) as caught:
        fill()
    assert caught.value.code == "store_write_failed"
    assert "No space left" in caught.value.message
    assert names(target) == ["old"]
    assert names(tmp_path) == ["out"]


def test_a_place_that_cannot_be_is_an_error_with_a_code(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PlatformError) as caught, replacing(tmp_path / "file/out"):
        pytest.fail("there is no folder to fill")
    assert caught.value.code == "store_write_failed"


def test_another_error_of_the_block_is_its_own(tmp_path: Path) -> None:
    with pytest.raises(KeyError), replacing(tmp_path / "out"):
        raise KeyError("x")
    assert names(tmp_path) == []


def test_a_name_may_be_as_long_as_names_can_be(tmp_path: Path) -> None:
    target = tmp_path / ("ü" * 127)
    with replacing(target) as fresh:
        (fresh / "a").write_text("")
    assert names(target) == ["a"]


def test_the_root_of_a_mount_is_told_from_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(first: Path, second: Path) -> None:
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))

    # Mounting needs root; this is what the kernel answers.
    monkeypatch.setattr(folder, "_exchange", busy)
    (tmp_path / "out").mkdir()
    with pytest.raises(PlatformError) as caught, replacing(tmp_path / "out"):
        pass
    assert "below it" in caught.value.hint
