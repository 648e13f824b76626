from __future__ import annotations

from pathlib import Path

import pytest

from argo_harbor.errors import Refused
from argo_harbor.model.platform import BUILT_IN, Platform
from argo_harbor.model.profile import Profile
from argo_harbor.planning.profiles import CLOSED
from argo_harbor.settings.profiles import check_profile, list_profiles, load_profile
from argo_harbor.settings.shipped import shipped_folder

EXAMPLE = Path(__file__).parents[2] / "examples" / "platform.toml"
SHIPPED = ("closed", "harbor-standard", "open-internet")
NO_ENV: dict[str, str] = {}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A platform file with a `profiles` folder beside it."""
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles" / "wide.toml").write_text('hosts = ["@public"]\nmax_cpus = 32\n')
    platform = tmp_path / "platform.toml"
    platform.write_text('default_sandbox_profile = "wide"\n')
    return platform


def test_the_shipped_profiles() -> None:
    closed, standard, wide = (load_profile(name, env=NO_ENV) for name in SHIPPED)
    assert closed == CLOSED
    assert (closed.hosts, closed.verifier_egress, closed.shared_verifier) == ((), (), "same")
    assert standard.hosts == ()
    assert standard.agent_setup_egress == standard.verifier_egress
    assert {"@python", "@debian", "@node"} <= set(standard.verifier_egress)
    assert standard.shared_verifier == "open"
    assert (wide.hosts, wide.shared_verifier) == (("@public",), "open")


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_profiles_share_their_limits_and_name_every_key(name: str) -> None:
    profile = load_profile(name, env=NO_ENV)
    assert profile.model_fields_set == set(Profile.model_fields)
    limits = profile.model_dump(
        exclude={"name", "description", "hosts", "agent_setup_egress", "verifier_egress", "shared_verifier"}
    )
    assert limits == CLOSED.model_dump(include=set(limits))
    assert (profile.max_cpus, profile.max_memory_mb, profile.max_storage_mb) == (16, 65536, 131072)
    assert (profile.limit_factor, profile.agent_timeout_seconds, profile.per_run_cap) == (3, 3600, 20)


def test_listing(site: Path) -> None:
    assert [(item.name, item.default, item.source) for item in list_profiles(BUILT_IN, env=NO_ENV)] == [
        ("closed", True, "shipped"),
        ("harbor-standard", False, "shipped"),
        ("open-internet", False, "shipped"),
    ]
    assert [item.name for item in list_profiles(Platform(), env=NO_ENV) if item.default] == [
        "harbor-standard"
    ]
    listed = list_profiles(Platform(default_sandbox_profile="wide"), platform_file=site)
    assert [(item.name, item.source) for item in listed if item.default] == [
        ("wide", str(site.parent / "profiles" / "wide.toml"))
    ]
    by_variable = list_profiles(Platform(), env={"ARGO_HARBOR_PLATFORM": str(site)})
    assert "wide" in [item.name for item in by_variable]


def test_profiles_of_the_site(site: Path) -> None:
    assert load_profile("wide", platform_file=site).max_cpus == 32
    replaced = site.parent / "profiles" / "closed.toml"
    replaced.write_text('name = "closed"\nmax_cpus = 1\n')
    assert load_profile("closed", platform_file=site).max_cpus == 1


@pytest.mark.parametrize("name", ["opne-internet", "../closed", "", "zzz"])
def test_an_unknown_profile_lists_the_valid_ones(name: str) -> None:
    with pytest.raises(Refused) as caught:
        load_profile(name, env=NO_ENV)
    assert caught.value.code == "unknown_profile"
    assert caught.value.hint.endswith("profiles: closed, harbor-standard, open-internet")
    assert caught.value.hint.startswith("did you mean open-internet?") == (name == "opne-internet")


def test_every_mistake_of_a_profile_at_once(tmp_path: Path) -> None:
    path = tmp_path / "odd.toml"
    path.write_text('name = "odd"\nhost = []\nmax_cpus = "many"\nshared_verifier = "maybe"\n')
    with pytest.raises(Refused) as caught:
        check_profile(path, Platform())
    assert caught.value.code == "invalid_profile"
    found = {item.key: item for item in caught.value.items}
    assert set(found) == {"host", "max_cpus", "shared_verifier"}
    assert found["host"].hint.startswith("did you mean hosts?")

    path.write_text(
        'name = "other"\nhosts = ["https://x", "@Group", "*.ok.example"]\ndeny = ["8.8.8.8"]\n'
        "max_timeout_seconds = 10\n"
    )
    with pytest.raises(Refused) as caught:
        check_profile(path, Platform())
    assert [item.key for item in caught.value.items] == [
        "name",
        "hosts[0]",
        "hosts[1]",
        "deny[0]",
        "default_timeout_seconds",
    ]


def test_checking_against_the_platform() -> None:
    standard = shipped_folder("profiles") / "harbor-standard.toml"
    with pytest.raises(Refused) as caught:
        check_profile(standard, Platform(groups={"python": ("packages.example",)}))
    assert {(item.code, item.key) for item in caught.value.items} == {
        ("group_undefined", "agent_setup_egress"),
        ("group_undefined", "verifier_egress"),
    }
    assert "set groups.debian" in caught.value.hint
    from argo_harbor.settings.platform import read_platform

    assert check_profile(standard, read_platform(EXAMPLE)).name == "harbor-standard"


def test_shipped_folders_in_a_checkout_and_in_a_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (shipped_folder("profiles") / "closed.toml").is_file()
    package = tmp_path / "argo_harbor"
    (package / "_data" / "templates").mkdir(parents=True)
    monkeypatch.setattr("argo_harbor.settings.shipped._PACKAGE", package)
    assert shipped_folder("templates") == package / "_data" / "templates"
    assert shipped_folder("profiles") == tmp_path / "profiles"
