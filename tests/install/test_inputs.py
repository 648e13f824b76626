"""What install is given is checked before any cluster is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from argo_harbor.errors import PlatformError, Refused, UsageError
from argo_harbor.install.inputs import CredentialFiles, read_credentials, read_settings
from tests.install.conftest import PLATFORM


def test_shipped_profiles_and_those_beside_the_file_and_in_the_folder(
    platform_file: Path, tmp_path: Path
) -> None:
    beside = platform_file.parent / "profiles"
    beside.mkdir()
    (beside / "site.toml").write_text('name = "site"\n')
    (beside / "closed.toml").write_text('name = "closed"\ndescription = "ours"\n')
    more = tmp_path / "more"
    more.mkdir()
    (more / "site.toml").write_text('name = "site"\ndescription = "of the folder"\n')
    given = read_settings(platform_file, profiles=more, env={})
    assert sorted(given.settings.profiles) == ["closed", "harbor-standard", "open-internet", "site"]
    assert "ours" in given.settings.profiles["closed"]
    assert "of the folder" in given.settings.profiles["site"]
    assert given.settings.platform_text == PLATFORM
    assert given.settings.platform.namespace == "evals"
    assert given.warnings == ()


def test_the_variable_names_the_file_too(platform_file: Path) -> None:
    given = read_settings(None, env={"ARGO_HARBOR_PLATFORM": str(platform_file)})
    assert given.settings.platform.namespace == "evals"


def test_without_a_file_it_says_how_to_begin_one() -> None:
    with pytest.raises(PlatformError) as caught:
        read_settings(None, env={})
    assert caught.value.code == "platform_not_configured"
    assert "--discover" in caught.value.hint


def test_what_a_cluster_cannot_do_without_is_asked_for_at_once(tmp_path: Path) -> None:
    file = tmp_path / "platform.toml"
    file.write_text('schema = "platform-1"\n')
    with pytest.raises(Refused) as caught:
        read_settings(file, env={})
    assert {item.key for item in caught.value.items} == {"store.endpoint", "registry"}
    file.write_text('registry = "r.example/x"\n[store]\nkind = "directory"\nendpoint = "/data"\n')
    with pytest.raises(Refused) as caught:
        read_settings(file, env={})
    assert [item.key for item in caught.value.items] == ["store.kind"]


def test_a_shipped_profile_whose_groups_are_missing_is_a_warning(platform_file: Path) -> None:
    platform_file.write_text(PLATFORM.partition("[groups]")[0])
    warnings = read_settings(platform_file, env={}).warnings
    assert {warned.code for warned in warnings} == {"group_undefined"}
    assert "harbor-standard" in warnings[0].message


def test_a_profile_of_the_site_whose_groups_are_missing_is_refused(platform_file: Path) -> None:
    beside = platform_file.parent / "profiles"
    beside.mkdir()
    (beside / "site.toml").write_text('name = "site"\nhosts = ["@models"]\n')
    with pytest.raises(Refused) as caught:
        read_settings(platform_file, env={})
    assert caught.value.code == "group_undefined"
    assert "groups.models" in caught.value.hint


def test_a_folder_without_profiles(platform_file: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no"):
        read_settings(platform_file, profiles=tmp_path, env={})


def test_credentials_from_files_or_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "access"
    file.write_text("from-file\n")
    env = {"ARGO_HARBOR_STORE_ACCESS_KEY": "from-env", "ARGO_HARBOR_STORE_SECRET_KEY": "hidden"}
    assert read_credentials(CredentialFiles(), {}) is None
    found = read_credentials(CredentialFiles(file), env)
    assert found is not None
    assert tuple(found) == ("from-file", "hidden")


def test_the_keys_of_somebodys_cloud_account_are_not_taken() -> None:
    env = {"AWS_ACCESS_KEY_ID": "mine", "AWS_SECRET_ACCESS_KEY": "mine"}
    assert read_credentials(CredentialFiles(), env) is None


@pytest.mark.parametrize(
    ("env", "missing"),
    [
        ({"ARGO_HARBOR_STORE_ACCESS_KEY": "a"}, "--store-secret-key-file"),
        ({"ARGO_HARBOR_STORE_SECRET_KEY": "s"}, "--store-access-key-file"),
    ],
)
def test_one_key_without_the_other(env: dict[str, str], missing: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_credentials(CredentialFiles(), env)
    assert missing in caught.value.hint


@pytest.mark.parametrize("content", [b"", b"\n", b"two\nlines", b"\xff\xfe", b"x" * 5000])
def test_a_file_that_holds_no_key(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "key"
    file.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        read_credentials(CredentialFiles(file, file), {})
    assert caught.value.code == "unknown_flag_value"


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        read_credentials(CredentialFiles(tmp_path / "none", tmp_path / "none"), {})
