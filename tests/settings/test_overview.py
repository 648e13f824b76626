from __future__ import annotations

from pathlib import Path

from argo_harbor.settings.overview import settings_in_force
from argo_harbor.settings.site import Site


def test_built_in_settings() -> None:
    found = {setting.key: setting for setting in settings_in_force(Site.of_files(env={}))}
    assert found["platform"].source == "built in"
    assert (found["namespace"].value, found["namespace"].source) == ("argo-harbor", "default")
    assert found["schema"].value == "platform-1"
    assert found["network.pod_cidrs"].value == "10.244.0.0/16"
    assert (found["profile"].value, found["profile"].source) == ("closed", "default")
    assert (found["profile.max_cpus"].value, found["profile.max_cpus"].source) == ("16.0", "shipped")
    assert found["groups"].value == ""
    assert "built_in" not in found


def test_every_setting_says_where_it_came_from(tmp_path: Path) -> None:
    (tmp_path / "profiles").mkdir()
    profile = tmp_path / "profiles" / "mine.toml"
    profile.write_text('node_selector = {disk = "ssd"}\ntolerations = [{key = "gpu"}]\n')
    platform = tmp_path / "platform.toml"
    platform.write_text(
        'default_sandbox_profile = "mine"\n[store]\nbucket = "b"\n[groups]\nx = ["a.example", "b.example"]\n'
        '[models.m]\nbase_url = "https://m.example"\nmodel = "m"\nclosed_book = true\n'
    )
    for given, env, origin in (
        (platform, {}, f"--platform {platform}"),
        (None, {"ARGO_HARBOR_PLATFORM": str(platform)}, f"ARGO_HARBOR_PLATFORM={platform}"),
    ):
        found = {setting.key: setting for setting in settings_in_force(Site.of_files(given, env))}
        assert (found["store.bucket"].value, found["store.bucket"].source) == ("b", origin)
        assert found["store.prefix"].source == "default"
        assert found["groups.x"].value == "a.example, b.example"
        assert (found["models.m.closed_book"].value, found["models.m.closed_book"].source) == ("true", origin)
        assert (found["profile"].value, found["profile"].source) == ("mine", origin)
        assert (found["profile.node_selector.disk"].value, found["profile.node_selector.disk"].source) == (
            "ssd",
            str(profile),
        )
        assert found["profile.tolerations"].value == '{"key":"gpu"}'
        assert found["profile.max_cpus"].source == "default"
