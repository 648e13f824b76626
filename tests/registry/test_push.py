"""A tiny image goes to a registry and comes back."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

import pytest

from argo_harbor.registry.client import Registries
from argo_harbor.registry.credentials import Login
from argo_harbor.registry.errors import RegistryError, Unauthorized
from argo_harbor.registry.push import push_and_pull
from tests.support.registry_double import Answer, serving


@dataclass
class Shelf:
    """A registry that keeps blobs and manifests; the cluster's tests ask a real one."""

    uploads: str = "/v2/{repository}/blobs/uploads/1?state=x"
    login: str = ""
    deletes: int = 202
    alters: bool = False
    closed: bool = False
    held: dict[str, bytes] = field(default_factory=dict)
    address: str = ""

    def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
        if (
            self.login
            and headers.get("Authorization") != "Basic " + base64.b64encode(self.login.encode()).decode()
        ):
            return 401, {"WWW-Authenticate": 'Basic realm="test"'}, b""
        split = urlsplit(target)
        parts = split.path.removeprefix("/v2/").split("/")
        if self.closed:
            return 404, {}, b"{}"
        match method:
            case "POST":
                place = self.uploads.format(repository="/".join(parts[:-3]), address=self.address)
                return 202, {"Location": place} if place else {}, b""
            case "PUT" if "digest" in parse_qs(split.query):
                (digest,) = parse_qs(split.query)["digest"]
                assert digest == f"sha256:{hashlib.sha256(body).hexdigest()}"
                self.held[digest] = body
                return 201, {}, b""
            case "PUT":
                self.held[parts[-1]] = body
                return 201, {}, b""
            case "DELETE":
                return self.deletes, {}, b""
        return 200, {}, b"other" if self.alters else self.held[parts[-1]]

    @contextmanager
    def running(self) -> Iterator[str]:
        with serving(self.answer) as address:
            self.address = address
            yield address


def push(address: str, **options: object) -> None:
    push_and_pull(Registries(insecure=[address], **options), f"{address}/team/env:doctor")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "uploads",
    ["/v2/{repository}/blobs/uploads/1?state=x", "http://{address}/v2/{repository}/blobs/uploads/1"],
)
@pytest.mark.parametrize("deletes", [202, 405])
def test_there_and_back(uploads: str, deletes: int) -> None:
    shelf = Shelf(uploads=uploads, deletes=deletes)
    with shelf.running() as address:
        push(address)
    assert "doctor" in shelf.held
    assert len(shelf.held) == 2


def test_with_a_login() -> None:
    with Shelf(login="robot:pw").running() as address:
        push(address, logins={address: Login("robot", "pw")})
        with pytest.raises(Unauthorized, match="wants a login"):
            push(address)
        with pytest.raises(Unauthorized, match="does not let robot write"):
            push(address, logins={address: Login("robot", "wrong")})


def test_a_registry_without_a_place_for_it() -> None:
    with Shelf(closed=True).running() as address, pytest.raises(RegistryError, match="no place for team/env"):
        push(address)


def test_a_registry_that_does_not_say_where_to_upload() -> None:
    with Shelf(uploads="").running() as address, pytest.raises(RegistryError, match="no place"):
        push(address)


def test_a_registry_that_gives_back_something_else() -> None:
    with Shelf(alters=True).running() as address, pytest.raises(RegistryError, match="give back"):
        push(address)


def test_a_login_stays_with_its_registry() -> None:
    seen: list[dict[str, str]] = []

    def elsewhere(method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
        seen.append(headers)
        return 201, {}, b""

    with (
        serving(elsewhere) as other,
        Shelf(uploads=f"http://{other}/blob", login="robot:pw").running() as address,
    ):
        push(address, logins={address: Login("robot", "pw")})
    assert seen
    assert all("Authorization" not in headers for headers in seen)
