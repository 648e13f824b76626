"""Logins out of the `config.json` of Secrets."""

from __future__ import annotations

import base64
import json

import pytest

from argo_harbor.registry.credentials import BrokenConfig, Login, logins, merge_configs


def config(**auths: object) -> bytes:
    return json.dumps({"auths": auths, "credsStore": "desktop"}).encode()


def auth(user: str, password: str) -> dict[str, str]:
    return {"auth": base64.b64encode(f"{user}:{password}".encode()).decode()}


def test_logins_by_host() -> None:
    text = config(
        **{
            "https://index.docker.io/v1/": auth("hub", "a:b"),
            "ghcr.io": {"username": "robot", "password": "pw"},
            "registry.example:5000/team": {"identitytoken": "refreshing"},
            "empty.example": {},
        }
    )
    assert logins("pull", text) == {
        "docker.io": Login("hub", "a:b"),
        "ghcr.io": Login("robot", "pw"),
        "registry.example:5000": Login("", "", "refreshing"),
    }


def test_the_first_of_two_files_wins_a_host_and_helpers_are_left_out() -> None:
    merged = json.loads(
        merge_configs(
            [("push", config(a=auth("x", "1"))), ("pull", config(a=auth("y", "2"), b=auth("z", "3")))]
        )
    )
    assert merged == {"auths": {"a": auth("x", "1"), "b": auth("z", "3")}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"no json", "holds no JSON"),
        (b"[]", 'has no "auths"'),
        (b'{"auths": []}', 'has no "auths"'),
        (b'{"auths": {"a": "b"}}', "the entry of a is no object"),
        (b'{"auths": {"a": {"auth": "s3cret-not-base64!"}}}', "the auth of a is no base64"),
    ],
)
def test_broken_files_are_named_and_not_shown(text: bytes, message: str) -> None:
    with pytest.raises(BrokenConfig, match=message) as error:
        logins("Secret pull", text)
    assert "Secret pull" in str(error.value)
    assert "s3cret" not in str(error.value)
