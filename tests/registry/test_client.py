"""Asking a registry whether an image is there: answers, logins, refusals."""

from __future__ import annotations

import hashlib
import socket

import pytest

from argo_harbor.registry.client import Registries
from argo_harbor.registry.credentials import Login
from argo_harbor.registry.errors import RegistryError, Unauthorized, Unreachable
from argo_harbor.registry.reference import ImageName, parse_image
from tests.support.registry_double import Registry

DIGEST = f"sha256:{'ab' * 32}"


def image(address: str, tag: str = "1") -> ImageName:
    return parse_image(f"{address}/team/env:{tag}")


def test_an_image_that_is_there_and_one_that_is_not() -> None:
    with Registry({"team/env:1": DIGEST}).running() as address:
        registries = Registries(insecure=[address])
        assert registries.digest(image(address)) == DIGEST
        assert registries.digest(image(address, "2")) is None


def test_a_registry_that_names_no_digest_is_asked_for_the_manifest() -> None:
    with Registry({"team/env:1": DIGEST}, names_digest=False).running() as address:
        found = Registries(insecure=[address]).digest(image(address))
    assert found == f"sha256:{hashlib.sha256(b'the manifest').hexdigest()}"


@pytest.mark.parametrize(
    ("scheme", "login"),
    [
        ("bearer", Login("robot", "pw")),
        ("Basic", Login("robot", "pw")),
        ("bearer", Login("", "", "refreshing")),
    ],
)
def test_logins(scheme: str, login: Login) -> None:
    registry = Registry({"team/env:1": DIGEST}, login=("robot", "pw"), scheme=scheme)
    with registry.running() as address:
        registries = Registries(logins={address: login}, insecure=[address])
        assert registries.digest(image(address)) == DIGEST
        asked = len(registry.asked)
        assert registries.digest(image(address)) == DIGEST
        assert len(registry.asked) == asked + 1, "the token is kept"


@pytest.mark.parametrize("scheme", ["bearer", "Basic"])
@pytest.mark.parametrize("logged_in", [False, True])
def test_refusals_name_registry_image_and_user(scheme: str, logged_in: bool) -> None:
    with Registry({"team/env:1": DIGEST}, login=("robot", "pw"), scheme=scheme).running() as address:
        known = {address: Login("robot", "wr0ng")} if logged_in else {}
        with pytest.raises(Unauthorized, match=f"{address}.*team/env:1") as error:
            Registries(logins=known, insecure=[address]).digest(image(address))
    assert "wr0ng" not in str(error.value)


@pytest.mark.parametrize(("status", "kind"), [(503, Unreachable), (429, Unreachable), (418, RegistryError)])
def test_answers_that_are_neither(status: int, kind: type[RegistryError]) -> None:
    with Registry(status=status).running() as address:
        with pytest.raises(kind, match=f"answers with status {status}") as error:
            Registries(insecure=[address]).digest(image(address))
        assert type(error.value) is kind


def test_nobody_there() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(Unreachable, match="does not answer"):
            Registries(insecure=[address]).digest(image(address))


def test_plain_http_is_only_spoken_where_the_platform_says_so() -> None:
    with Registry({"team/env:1": DIGEST}).running() as address:
        with pytest.raises(RegistryError, match="insecure_registries") as error:
            Registries().digest(image(address))
        assert not isinstance(error.value, Unreachable)


def test_a_login_is_not_sent_where_the_registry_points_without_tls() -> None:
    registry = Registry(login=("robot", "pw"))
    with registry.running() as address:
        registries = Registries(logins={address: Login("robot", "pw")}, insecure=[address])
        registries._insecure = frozenset()
        with pytest.raises(RegistryError, match="wants its login sent to"):
            registries._answer(f'Bearer realm="http://{address}/token"', image(address))
    assert registry.asked == []


def test_an_unknown_scheme() -> None:
    strange = Registry(login=("robot", "pw"), scheme="Negotiate")
    with strange.running() as address, pytest.raises(RegistryError, match="'Negotiate'"):
        Registries(insecure=[address]).digest(image(address))
