"""Which store is opened, with whose credentials, and what nobody may see of them."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

import pytest

from argo_harbor.errors import HarborError, PlatformError, UsageError
from argo_harbor.model.platform import Platform
from argo_harbor.store.credentials import Credentials, from_environment, from_folder
from argo_harbor.store.directory import DirectoryStore
from argo_harbor.store.opening import open_store
from argo_harbor.store.patience import FOR_PEOPLE, FOR_PODS
from argo_harbor.store.s3 import S3Store
from tests.support import s3server
from tests.support.s3server import S3Server
from tests.support.stores import QUICK, open_s3

GIVEN = Credentials("given-access", "given-secret")


def platform(**store: Any) -> Platform:
    return Platform.model_validate({"store": {"endpoint": "http://s3.example:9000", **store}})


def opened(
    environment: dict[str, str], credentials: Credentials | Path | None = GIVEN, **store: Any
) -> S3Store:
    found = open_store(platform(**store), credentials=credentials, namespace="evals", environment=environment)
    assert isinstance(found, S3Store)
    return found


def secret_folder(folder: Path, access: str = "mounted-access", secret: str = "mounted-secret") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "access_key").write_text(f"{access}\n")
    (folder / "secret_key").write_text(f"{secret}\n")
    return folder


@pytest.mark.parametrize(
    ("prefix", "name"),
    [
        ("", "http://s3.example:9000/argo-harbor/evals"),
        ("teams/a", "http://s3.example:9000/argo-harbor/teams/a/evals"),
        ("/teams//a/", "http://s3.example:9000/argo-harbor/teams/a/evals"),
    ],
)
def test_a_namespace_has_a_root_of_its_own(prefix: str, name: str) -> None:
    assert opened({}, prefix=prefix).name == name


def test_a_directory_is_a_store_too(tmp_path: Path) -> None:
    found = open_store(
        platform(kind="directory", endpoint=str(tmp_path), prefix="p"), credentials=None, namespace="evals"
    )
    assert isinstance(found, DirectoryStore)
    assert found.root == tmp_path / "p" / "evals"


def test_users_reach_the_store_under_an_address_of_their_own(tmp_path: Path) -> None:
    outside = {"ARGO_HARBOR_STORE_ENDPOINT": "https://s3.outside.example/"}
    assert opened(outside).name == "https://s3.outside.example/argo-harbor/evals"
    # A pod is inside, whatever its image sets.
    assert opened(outside, secret_folder(tmp_path)).name == "http://s3.example:9000/argo-harbor/evals"


@pytest.mark.parametrize(
    ("environment", "used"),
    [
        ({}, GIVEN),
        (
            {"ARGO_HARBOR_STORE_ACCESS_KEY": "a", "ARGO_HARBOR_STORE_SECRET_KEY": "b"},
            Credentials("a", "b"),
        ),
        (
            {"AWS_ACCESS_KEY_ID": "c", "AWS_SECRET_ACCESS_KEY": "d", "AWS_SESSION_TOKEN": "e"},
            Credentials("c", "d", "e"),
        ),
        (
            {
                "ARGO_HARBOR_STORE_ACCESS_KEY": "a",
                "ARGO_HARBOR_STORE_SECRET_KEY": "b",
                "AWS_ACCESS_KEY_ID": "c",
                "AWS_SECRET_ACCESS_KEY": "d",
                "AWS_SESSION_TOKEN": "e",
            },
            Credentials("a", "b"),
        ),
    ],
    ids=["given", "ours", "aws", "ours before aws"],
)
def test_what_the_user_set_comes_first(environment: dict[str, str], used: Credentials) -> None:
    assert (from_environment(environment) or GIVEN) == used
    assert opened(environment)._client._credentials == used


def test_a_pod_uses_what_is_mounted(tmp_path: Path) -> None:
    folder = secret_folder(tmp_path)
    environment = {"AWS_ACCESS_KEY_ID": "agent's", "AWS_SECRET_ACCESS_KEY": "agent's"}
    store = opened(environment, folder)
    assert store._client._credentials == folder
    assert (store._patience, opened(environment)._patience) == (FOR_PODS, FOR_PEOPLE)
    assert from_folder(folder) == Credentials("mounted-access", "mounted-secret")


@pytest.mark.parametrize(
    ("environment", "credentials", "store", "code", "message"),
    [
        ({}, None, {}, "platform_not_configured", "no credentials for the store at http://s3.example:9000"),
        ({"AWS_ACCESS_KEY_ID": "x"}, GIVEN, {}, "platform_not_configured", "AWS_SECRET_ACCESS_KEY is not"),
        (
            {"ARGO_HARBOR_STORE_SECRET_KEY": "x"},
            GIVEN,
            {},
            "platform_not_configured",
            "ARGO_HARBOR_STORE_ACCESS_KEY is not",
        ),
        ({}, GIVEN, {"endpoint": ""}, "platform_not_configured", "the store has no endpoint"),
        ({}, GIVEN, {"endpoint": "ftp://s3.example"}, "platform_not_configured", "store.endpoint is no"),
        (
            {},
            GIVEN,
            {"endpoint": "http://s3.example/path"},
            "platform_not_configured",
            "store.endpoint is no",
        ),
        ({}, GIVEN, {"bucket": "x"}, "platform_not_configured", "the store cannot be opened"),
        ({}, GIVEN, {"prefix": "a/../b"}, "platform_not_configured", "no key of a store"),
        ({}, None, {"kind": "directory", "endpoint": ""}, "platform_not_configured", "folder is not named"),
        ({"ARGO_HARBOR_STORE_ENDPOINT": "s3:9000"}, GIVEN, {}, "unknown_flag_value", "is no endpoint"),
        ({"ARGO_HARBOR_STORE_ENDPOINT": "http://["}, GIVEN, {}, "unknown_flag_value", "is no endpoint"),
        (
            {"ARGO_HARBOR_STORE_ENDPOINT": "http://u:hush@s3"},
            GIVEN,
            {},
            "unknown_flag_value",
            "is no endpoint",
        ),
    ],
)
def test_what_is_missing_or_wrong_is_said_at_once(
    environment: dict[str, str],
    credentials: Credentials | None,
    store: dict[str, Any],
    code: str,
    message: str,
) -> None:
    with pytest.raises((PlatformError, UsageError)) as caught:
        open_store(platform(**store), credentials=credentials, namespace="evals", environment=environment)
    assert caught.value.code == code
    assert message in caught.value.message
    assert caught.value.hint
    assert "hush" not in str(caught.value.as_json())


@pytest.mark.parametrize("wrong", ["absent", "empty", "binary"])
def test_a_broken_secret_is_named(tmp_path: Path, wrong: str) -> None:
    folder = secret_folder(tmp_path)
    if wrong == "absent":
        (folder / "secret_key").unlink()
    else:
        (folder / "secret_key").write_bytes(b" \n" if wrong == "empty" else b"\xff\xfe")
    with pytest.raises(PlatformError) as caught:
        opened({}, folder).get("k")
    assert caught.value.code == "platform_not_configured"
    assert str(folder / "secret_key") in caught.value.message


@pytest.mark.services
def test_an_exchanged_secret_is_taken_up(s3_server: S3Server, tmp_path: Path) -> None:
    folder = secret_folder(tmp_path, s3_server.access_key, "out of date")
    store = S3Store(s3_server.endpoint, s3_server.bucket, root="rotated", credentials=folder, patience=QUICK)
    with pytest.raises(PlatformError, match="the secret key does not fit"):
        store.put("k", b"1")
    secret_folder(tmp_path, s3_server.access_key, s3_server.secret_key)
    store.put("k", b"1")
    assert store.get("k") == b"1"


@pytest.mark.services
@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"bucket": "no-such-bucket"}, "there is no such bucket"),
        ({"credentials": Credentials("nobody", "hush-secret")}, "does not know the access key"),
        ({"credentials": Credentials("test-access", "hush-secret")}, "does not fit the access key"),
    ],
)
def test_a_refusal_says_why_and_shows_no_secret(
    s3_server: S3Server, tmp_path: Path, changes: dict[str, Any], cause: str
) -> None:
    settings = {
        "bucket": s3_server.bucket,
        "credentials": Credentials(s3_server.access_key, s3_server.secret_key),
    } | changes
    store = S3Store(s3_server.endpoint, root="x", patience=QUICK, **settings)
    (tmp_path / "file").write_bytes(b"1")
    for use, code in (
        (lambda: store.put("k", b"1"), "store_write_failed"),
        (lambda: store.put_file("k", tmp_path / "file"), "store_write_failed"),
        (lambda: store.copy("k", "l"), "store_write_failed"),
        (lambda: store.delete("k"), "store_write_failed"),
        (lambda: store.get("k"), "store_unreadable"),
        (lambda: store.get_file("k", tmp_path / "out"), "store_unreadable"),
        (lambda: store.open("k"), "store_unreadable"),
        (lambda: store.exists("k"), "store_unreadable"),
        (lambda: list(store.list("")), "store_unreadable"),
        (store.clock, "store_unreadable"),
    ):
        with pytest.raises(HarborError) as caught:
            use()
        assert caught.value.code == code
        assert cause in caught.value.message
        assert caught.value.hint
        shown = "".join(traceback.format_exception(caught.value)) + repr(store) + repr(store._client)
        assert "hush" not in shown
        assert s3_server.secret_key not in shown
    assert repr(Credentials("hush", "hush", "hush")) == "Credentials()"


@pytest.mark.parametrize(
    ("endpoint", "cause"),
    [
        ("http://127.0.0.1:1", "the server does not answer"),
        ("http://nobody.invalid:9000", "the server does not answer"),
    ],
)
def test_a_server_that_is_not_there_is_named(endpoint: str, cause: str) -> None:
    store = S3Store(endpoint, "bucket", credentials=GIVEN, patience=QUICK)
    with pytest.raises(PlatformError, match=cause) as caught:
        store.get("k")
    assert endpoint in caught.value.message
    assert "ARGO_HARBOR_STORE_ENDPOINT" in caught.value.hint


@pytest.mark.services
def test_a_server_in_another_region_is_asked_again(s3_server: S3Server, tmp_path: Path) -> None:
    with s3server.running(tmp_path, region="eu-south-7") as elsewhere:
        store = open_s3(elsewhere)
        store.put("k", b"1")
        assert store.get("k") == b"1"
        assert [entry.key for entry in open_s3(elsewhere, root="empty").list("")] == []
