from __future__ import annotations

from pathlib import Path

import tomli

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


def test_version_and_help(argo_harbor: Command) -> None:
    from argo_harbor import __version__

    assert argo_harbor("--version").stdout.strip() == __version__
    for command in ([], ["--help"], ["runs"], ["runs", "submit", "--help"], ["compile", "-h"]):
        done = argo_harbor(*command)
        assert done.status == 0
        assert "Usage: argo-harbor" in done.stdout
