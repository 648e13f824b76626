"""Credentials of registries, from the `config.json` that a Secret of type `dockerconfigjson` holds."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from argo_harbor.registry.reference import DOCKER_HUB

_HUB_NAMES = frozenset({"index.docker.io", "registry-1.docker.io"})


class Login(NamedTuple):
    """What one registry is asked with. Either a name and a password, or a token to be exchanged."""

    user: str
    password: str
    identity_token: str = ""


class BrokenConfig(Exception):
    """A file that is no `config.json`; says which and how, never what is in it."""


def merge_configs(configs: Iterable[tuple[str, bytes]]) -> bytes:
    """One `config.json` out of several, each with the name of its Secret; of one host the first entry wins.

    Only `auths` is kept: helper programs that the others name are not where the file is used.
    Raises BrokenConfig.
    """
    auths: dict[str, object] = {}
    for name, text in configs:
        for host, entry in _auths(name, text).items():
            auths.setdefault(host, entry)
    return json.dumps({"auths": auths}).encode()


def logins(name: str, config: bytes) -> Mapping[str, Login]:
    """Logins by registry host; entries without any are left out. Raises BrokenConfig."""
    found: dict[str, Login] = {}
    for host, entry in _auths(name, config).items():
        if login := _login(name, host, entry):
            found.setdefault(_host(host), login)
    return found


def _auths(name: str, text: bytes) -> Mapping[str, object]:
    try:
        config = json.loads(text)
    except ValueError as error:
        raise BrokenConfig(f"{name} holds no JSON") from error
    auths = config.get("auths") if isinstance(config, dict) else None
    if not isinstance(auths, dict):
        raise BrokenConfig(f'{name} has no "auths"')
    return auths


def _login(name: str, host: str, entry: object) -> Login | None:
    if not isinstance(entry, dict):
        raise BrokenConfig(f"{name}: the entry of {host} is no object")
    user, password = str(entry.get("username") or ""), str(entry.get("password") or "")
    if auth := entry.get("auth"):
        try:
            user, _, password = base64.b64decode(str(auth), validate=True).decode().partition(":")
        except (binascii.Error, ValueError) as error:
            raise BrokenConfig(f"{name}: the auth of {host} is no base64") from error
    token = str(entry.get("identitytoken") or "")
    return Login(user, password, token) if user or token else None


def _host(key: str) -> str:
    """The registry that a key of `auths` means: Docker writes URLs there, others hosts."""
    host = key.removeprefix("https://").removeprefix("http://").partition("/")[0]
    return DOCKER_HUB if host in _HUB_NAMES else host
