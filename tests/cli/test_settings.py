from __future__ import annotations

import io
import json
import shutil
import sys
from pathlib import Path

import pytest
import tomli
import yaml

from tests.cli.conftest import Command
from tests.support.program import EXAMPLES, ROOT


def test_profiles_list(argo_harbor: Command) -> None:
    found = argo_harbor("profiles", "list", "--json").json("profiles-document-1")["profiles"]
    assert [(item["name"], item["default"]) for item in found] == [
        ("closed", True),
        ("harbor-standard", False),
        ("open-internet", False),
    ]
    assert "harbor-standard" in argo_harbor("profiles", "list").stdout
    listed = argo_harbor("profiles", "list", "--platform", EXAMPLES / "platform.toml", "--json")
    assert [item["name"] for item in listed.json("profiles-document-1")["profiles"] if item["default"]] == [
        "harbor-standard"
    ]


def test_profiles_show(argo_harbor: Command) -> None:
    shown = argo_harbor("profiles", "show", "open-internet", "--json").json("profile-document-1")
    assert shown["profile"]["hosts"] == ["@public"]
    assert tomli.loads(argo_harbor("profiles", "show", "closed").stdout)["max_cpus"] == 16
    assert argo_harbor("profiles", "show", "none", "--json").error["code"] == "unknown_profile"


def test_profiles_check(argo_harbor: Command, tmp_path: Path) -> None:
    assert argo_harbor("profiles", "check", ROOT / "profiles/closed.toml").status == 0
    groups = argo_harbor("profiles", "check", ROOT / "profiles/harbor-standard.toml", "--json")
    assert groups.status == 1
    assert {item["code"] for item in groups.json("check-document-1")["items"]} == {"group_undefined"}
    (tmp_path / "mine.toml").write_text('name = "mine"\nhost = ["x.example.com"]\n')
    broken = argo_harbor("profiles", "check", "mine.toml", "--json")
    assert broken.status == 1
    (item,) = broken.json("check-document-1")["items"]
    assert (item["key"], item["code"]) == ("host", "invalid_profile")
    assert "hosts" in item["hint"]


def test_config_show_says_where_each_setting_is_from(argo_harbor: Command, tmp_path: Path) -> None:
    rows = argo_harbor("config", "show", "--json").json("config-document-1")["settings"]
    found = {row["key"]: (row["value"], row["source"]) for row in rows}
    assert found["store"] == (str(tmp_path / "store"), "ARGO_HARBOR_STORE")
    assert found["registry"][0] == "registry.invalid/argo-harbor"
    platform = EXAMPLES / "platform.toml"
    rows = argo_harbor("config", "show", "--platform", platform, "--json").json("config-document-1")[
        "settings"
    ]
    assert f"--platform {platform}" in {row["source"] for row in rows}


@pytest.mark.parametrize("encoding", ["ascii", "iso-8859-1", "utf-8"])
def test_no_output_is_lost_where_it_is_not_utf_8(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    from argo_harbor.cli.main import run

    task = shutil.copytree(EXAMPLES / "mixed" / "silent-config", tmp_path / "suite" / "größe-中")
    (task / "task.toml").write_text("")

    def printed(*more: str) -> str:
        written = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding=encoding))
        suite = str(tmp_path / "suite")
        assert run(["compile", "--harbor-dir", suite, "--agent", "nop", "-o", *more]) == 0
        return written.getvalue().decode(encoding)

    assert "Plan " in printed(str(tmp_path / "out"))
    tasks = json.loads(printed(str(tmp_path / "out"), "--json"))["tasks"]
    assert [task["name"] for task in tasks] == ["größe-中"]
    title = yaml.safe_load(printed("-"))["metadata"]["annotations"]["workflows.argoproj.io/title"]
    assert title == "suite · nop · 1 task"


def test_a_full_disk_behind_the_output(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from argo_harbor.cli.main import run

    for command in (
        ["profiles", "list"],
        ["profiles", "list", "--json"],
        ["profiles", "show", "x", "--json"],
    ):
        with open("/dev/full", "w") as full:
            monkeypatch.setattr(sys, "stdout", full)
            assert run(command) == 5
            assert "error[store_write_failed]: cannot write the output" in capsys.readouterr().err


def test_a_closed_output(monkeypatch: pytest.MonkeyPatch) -> None:
    from argo_harbor.cli.main import run

    monkeypatch.setattr(sys, "stdout", None)
    assert run(["profiles", "list"]) == 0


def test_version_and_help(argo_harbor: Command) -> None:
    from argo_harbor import __version__

    assert argo_harbor("--version").stdout.strip() == __version__
    for command in ([], ["--help"], ["runs"], ["runs", "submit", "--help"], ["compile", "-h"]):
        done = argo_harbor(*command)
        assert done.status == 0
        assert "Usage: argo-harbor" in done.stdout
