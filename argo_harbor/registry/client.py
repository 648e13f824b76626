"""Asks a registry whether an image is there, by the OCI distribution protocol."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlencode, urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

from argo_harbor.registry.credentials import Login
from argo_harbor.registry.errors import RegistryError, Unauthorized, Unreachable
from argo_harbor.registry.reference import DOCKER_HUB, ImageName

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse, PoolManager

CONNECT_SECONDS = 5.0
READ_SECONDS = 20.0
_MANIFESTS = ", ".join(
    (
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    )
)
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_CHALLENGE = re.compile(r'(\w+)="([^"]*)"')
_MAX_TOKEN_BYTES = 1 << 20


class Registries:
    """All registries that one process asks."""

    def __init__(self, *, logins: Mapping[str, Login] | None = None, insecure: Collection[str] = ()) -> None:
        """`logins` by registry host; `insecure` are hosts that speak plain HTTP."""
        self._logins = logins or {}
        self._insecure = frozenset(insecure)
        self._tokens: dict[tuple[str, str], str] = {}

    def digest(self, image: ImageName) -> str | None:
        """Digest of the manifest, `sha256:…`; None where there is no such image.

        Raises: Unauthorized, Unreachable, RegistryError.
        """
        accept = {"Accept": _MANIFESTS}
        response = self.request("HEAD", image, f"manifests/{image.version}", headers=accept)
        if response.status == 404:
            return None
        found = response.headers.get("Docker-Content-Digest", "")
        if _DIGEST.fullmatch(found):
            return str(found)
        # Not every registry names it without being asked for the whole manifest.
        manifest = self.request("GET", image, f"manifests/{image.version}", headers=accept)
        return None if manifest.status == 404 else f"sha256:{hashlib.sha256(manifest.data).hexdigest()}"

    def request(
        self,
        method: str,
        image: ImageName,
        what: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> BaseHTTPResponse:
        """Ask about one repository; `what` is a path in it, or a URL that the registry gave for it.

        A 404 is an answer. Raises: Unauthorized, Unreachable, RegistryError.
        """
        base = self._base(image.registry)
        url = urljoin(f"{base}/v2/{image.repository}/", what)
        # A registry may send uploads elsewhere, with all they need in the URL: its login stays with it.
        known = urlsplit(url).netloc == urlsplit(base).netloc
        sent = {**(headers or {}), **(self._authorization(image) if known else {})}
        response = self._send(method, url, sent, image.registry, body=body)
        challenge = response.headers.get("WWW-Authenticate", "")
        if response.status == 401 and challenge and known:
            sent |= self._answer(challenge, image)
            response = self._send(method, url, sent, image.registry, body=body)
        if response.status in (401, 403):
            wish = "see" if method in ("GET", "HEAD") else "write"
            raise Unauthorized(f"{image.registry} does not let {self._who(image.registry)} {wish} {image}")
        if response.status == 404 or response.status < 300:
            return response
        raise RegistryError(f"{image.registry} answers with status {response.status} for {image}")

    def _authorization(self, image: ImageName) -> dict[str, str]:
        token = self._tokens.get((image.registry, image.repository))
        return {"Authorization": token} if token else {}

    def _answer(self, challenge: str, image: ImageName) -> dict[str, str]:
        scheme, _, rest = challenge.partition(" ")
        login = self._logins.get(image.registry)
        if scheme.lower() == "basic":
            if login is None:
                raise Unauthorized(f"{image.registry} wants a login for {image}, and there is none")
            authorization = _basic(login)
        elif scheme.lower() == "bearer":
            authorization = f"Bearer {self._token(dict(_CHALLENGE.findall(rest)), image, login)}"
        else:
            raise RegistryError(f"{image.registry} asks for {scheme!r}, which nobody here knows")
        self._tokens[image.registry, image.repository] = authorization
        return {"Authorization": authorization}

    def _token(self, challenge: Mapping[str, str], image: ImageName, login: Login | None) -> str:
        realm = challenge.get("realm", "")
        # The registry decides where the login goes: never over plain HTTP unless it is plain itself.
        if urlsplit(realm).scheme != "https" and image.registry not in self._insecure:
            raise RegistryError(f"{image.registry} wants its login sent to {realm!r}")
        scope = challenge.get("scope") or f"repository:{image.repository}:pull"
        query = {"service": challenge.get("service", ""), "scope": scope}
        if login is not None and login.identity_token:
            form = query | {
                "grant_type": "refresh_token",
                "client_id": "argo-harbor",
                "refresh_token": login.identity_token,
            }
            headers = {"Content-Type": "application/x-www-form-urlencoded"}
            response = self._send("POST", realm, headers, image.registry, body=urlencode(form).encode())
        else:
            headers = {"Authorization": _basic(login)} if login is not None else {}
            response = self._send("GET", f"{realm}?{urlencode(query)}", headers, image.registry)
        if response.status in (400, 401, 403):
            raise Unauthorized(
                f"{image.registry} does not take the login of {self._who(image.registry)} for {image}"
            )
        try:
            answer = json.loads(response.data[:_MAX_TOKEN_BYTES])
            token = answer.get("token") or answer.get("access_token")
        except (ValueError, AttributeError) as error:
            raise RegistryError(f"{realm} answers with no token") from error
        if not isinstance(token, str) or not token.isprintable():
            raise RegistryError(f"{realm} answers with no token")
        return token

    def _send(
        self, method: str, url: str, headers: Mapping[str, str], registry: str, *, body: bytes | None = None
    ) -> BaseHTTPResponse:
        import urllib3

        try:
            response = _pool(url).request(method, url, headers=dict(headers), body=body, retries=False)
        except urllib3.exceptions.SSLError as error:
            raise RegistryError(
                f"{registry} has no TLS that is trusted here; insecure_registries is for plain HTTP: {error}"
            ) from error
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise Unreachable(f"{registry} does not answer: {error}") from error
        if response.status == 429 or response.status >= 500:
            raise Unreachable(f"{registry} answers with status {response.status}")
        return response

    def _who(self, registry: str) -> str:
        login = self._logins.get(registry)
        return "callers without a login" if login is None else login.user or "the identity token"

    def _base(self, registry: str) -> str:
        scheme = "http" if registry in self._insecure else "https"
        return f"{scheme}://{'registry-1.docker.io' if registry == DOCKER_HUB else registry}"


def _basic(login: Login) -> str:
    return "Basic " + base64.b64encode(f"{login.user}:{login.password}".encode()).decode()


def _pool(url: str) -> PoolManager:
    import urllib3

    parts = urlsplit(url)
    timeout = urllib3.Timeout(connect=CONNECT_SECONDS, read=READ_SECONDS)
    proxy = getproxies().get(parts.scheme)
    if proxy and not proxy_bypass(parts.hostname or ""):
        return urllib3.ProxyManager(proxy, timeout=timeout)
    return urllib3.PoolManager(timeout=timeout)
