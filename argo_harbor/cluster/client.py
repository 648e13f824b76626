"""One connection to an API server: plain requests that take and give JSON objects.

Authentication, TLS and proxies are the `kubernetes` client's; its generated classes for every kind are not
used, since half of what we touch (Workflows) has none.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from argo_harbor.cluster.errors import NotFound, Unreachable, of_status

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

type Json = dict[str, Any]

FIELD_MANAGER = "argo-harbor"
CONNECT_SECONDS = 3.0
READ_SECONDS = 60.0
_TRIES = 4
_PAGE = 500


class Cluster:
    """What an API server is asked through. Paths are those of the Kubernetes API, from `/api` or `/apis`.

    Reading and applying repeat themselves on connection faults, 429 and 5xx; creating does not, since a lost
    answer may have been a yes.
    """

    def __init__(self, api: ApiClient, *, context: str, namespace: str) -> None:
        self._api = api
        self.context = context
        """Name of the kube context; empty inside a pod."""
        self.namespace = namespace
        self.server = str(api.configuration.host)

    def get(
        self,
        path: str,
        query: Mapping[str, str] | None = None,
        *,
        tries: int = _TRIES,
        seconds: float = READ_SECONDS,
    ) -> Json:
        """One object; each try may wait that many seconds. Raises: ClusterError, most often NotFound."""
        return self._json("GET", path, query, tries=tries, seconds=seconds)

    def find(self, path: str) -> Json | None:
        """One object, None where there is none. Raises: ClusterError."""
        try:
            return self.get(path)
        except NotFound:
            return None

    def list(self, path: str, *, labels: str = "", fields: str = "") -> Iterator[Json]:
        """All objects of a kind, page by page. Raises: ClusterError."""
        query = {"limit": str(_PAGE)}
        query |= {"labelSelector": labels} if labels else {}
        query |= {"fieldSelector": fields} if fields else {}
        while True:
            page = self.get(path, query)
            yield from page.get("items") or ()
            following = (page.get("metadata") or {}).get("continue")
            if not following:
                return
            query["continue"] = following

    def create(self, path: str, body: Json, *, dry_run: bool = False) -> Json:
        """Raises: AlreadyExists, Rejected, Forbidden, Unreachable (then it may exist all the same)."""
        return self._json("POST", path, _dry(dry_run), body=body, content="application/json", tries=1)

    def apply(self, path: str, body: Json, *, dry_run: bool = False) -> Json:
        """Bring one object into the wanted state by server-side apply. Raises: ClusterError."""
        query = {"fieldManager": FIELD_MANAGER, "force": "true", **_dry(dry_run)}
        return self._json("PATCH", path, query, body=body, content="application/apply-patch+yaml")

    def merge_patch(self, path: str, body: Json) -> Json:
        """Raises: ClusterError."""
        return self._json("PATCH", path, None, body=body, content="application/merge-patch+json")

    def delete(self, path: str, *, dry_run: bool = False) -> bool:
        """Delete an object and what it owns. False where there was none. Raises: ClusterError."""
        body: Json = {"propagationPolicy": "Background"}
        try:
            self._json("DELETE", path, _dry(dry_run), body=body, content="application/json")
        except NotFound:
            return False
        return True

    def text(self, path: str, query: Mapping[str, str] | None = None) -> str:
        """An answer that is no JSON, such as a container's log. Raises: ClusterError."""
        response = self._send("GET", path, query, None, "", stream=False, read_seconds=READ_SECONDS)
        return bytes(response.data).decode(errors="replace")

    def clock(self) -> float:
        """The API server's clock: whole seconds since the epoch. Raises: ClusterError."""
        response = self._send("GET", "/version", None, None, "", stream=False, read_seconds=READ_SECONDS)
        try:
            return parsedate_to_datetime(response.headers.get("Date", "")).timestamp()
        except ValueError as error:
            raise Unreachable(0, "NoDate", f"{self.server} answers without a date") from error

    def lines(self, path: str, query: Mapping[str, str] | None = None) -> Iterator[bytes]:
        """The lines of an answer while they come (a log followed, a watch), without their ends.

        Ends when the server ends it. Raises: ClusterError.
        """
        import urllib3

        response = self._send("GET", path, query, None, "", stream=True, read_seconds=None)
        rest = b""
        try:
            for piece in response.stream(4096, decode_content=False):
                *whole, rest = (rest + piece).split(b"\n")
                yield from whole
            if rest:
                yield rest
        except urllib3.exceptions.HTTPError as error:
            raise Unreachable(0, "StreamBroken", f"{self.server} broke off: {error}") from error
        finally:
            response.close()

    def _json(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        *,
        body: Json | None = None,
        content: str = "",
        tries: int = _TRIES,
        seconds: float = READ_SECONDS,
    ) -> Json:
        for left in reversed(range(tries)):
            try:
                response = self._send(method, path, query, body, content, stream=False, read_seconds=seconds)
                answer = json.loads(response.data)
            except Unreachable:
                if not left:
                    raise
                time.sleep(random.uniform(0.5, 1.0) * 2 ** (tries - left - 1))
            except ValueError as error:
                raise Unreachable(0, "NoJson", f"{self.server} answers with no JSON: {error}") from error
            else:
                return answer if isinstance(answer, dict) else {}
        raise AssertionError("a request is tried at least once")

    def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: Json | None,
        content: str,
        *,
        stream: bool,
        read_seconds: float | None,
    ) -> Any:
        import urllib3

        headers = {"Accept": "application/json, */*", "User-Agent": FIELD_MANAGER}
        headers |= {"Content-Type": content} if content else {}
        # Asked for anew each time: the client renews short-lived tokens when it is.
        for each in self._api.configuration.auth_settings().values():
            if each.get("in") == "header" and each.get("value"):
                headers[each["key"]] = each["value"]
        url = f"{self.server}{path}" + (f"?{urlencode(query)}" if query else "")
        try:
            response = self._api.rest_client.pool_manager.request(
                method,
                url,
                body=None if body is None else json.dumps(body).encode(),
                headers=headers,
                timeout=urllib3.Timeout(connect=CONNECT_SECONDS, read=read_seconds),
                preload_content=not stream,
                retries=False,
            )
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise Unreachable(0, "Unreachable", f"{self.server} does not answer: {error}") from error
        if response.status >= 300:
            raise _refusal(response.status, bytes(response.data), self.server)
        return response


def _dry(dry_run: bool) -> dict[str, str]:
    return {"dryRun": "All"} if dry_run else {}


def _refusal(status: int, body: bytes, server: str) -> Exception:
    try:
        said = json.loads(body)
    except ValueError:
        said = None
    if not isinstance(said, dict):
        return of_status(status, "", f"{server} answers with status {status}")
    return of_status(status, str(said.get("reason", "")), str(said.get("message") or f"status {status}"))
