"""A machine that cannot hold the cluster is told so, with every reason, before anything is changed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.cluster import cgroups, network, preflight
from tests.cluster.__main__ import EXIT_UNFIT, main
from tests.cluster.errors import MachineUnfit
from tests.cluster.state import FOLDER_VARIABLE
from tests.support import gotools


def test_not_root(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "cluster"))
    monkeypatch.setenv(gotools.CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert main(["up"]) == EXIT_UNFIT
    assert "as root" in capsys.readouterr().err
    assert not (tmp_path / "cluster").exists()


def test_every_reason_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv(gotools.CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(cgroups, "ROOT", tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda place: shutil._ntuple_diskusage(0, 0, 0))
    with pytest.raises(MachineUnfit) as raised:
        preflight.check(tmp_path / "cluster")
    text = str(raised.value)
    for part in ("no apt-get", "control groups for cpu", "no `go` on PATH", "0 MiB free"):
        assert part in text


def test_rules_of_others_are_not_ours() -> None:
    for line in (
        ":KUBE-SERVICES - [0:0]",
        "-A FORWARD -m comment --comment x -j KUBE-FORWARD",
        "-A POSTROUTING -s 10.244.0.0/24 -m comment --comment argo-harbor-test -j MASQUERADE",
        ":CNI-HOSTPORT-DNAT - [0:0]",
    ):
        assert network.is_our_rule(line), line
    for line in (":DOCKER - [0:0]", "-A FORWARD -o docker0 -j DOCKER", "*nat", "COMMIT", "# a comment"):
        assert not network.is_our_rule(line), line


def test_cluster_that_is_not_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "cluster"))
    monkeypatch.setenv(gotools.CACHE_VARIABLE, str(tmp_path / "cache"))
    assert main(["status"]) == 1
    assert "make cluster-up" in capsys.readouterr().out
    assert main(["down"]) == 0
    assert "there is no cluster" in capsys.readouterr().err
