"""The egress container's policy: a full replacement, read back and compared.

egress filters what the whole pod may reach, by names and addresses. Only the runner has the token of its API.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_network
from pathlib import Path
from typing import Any, Literal, NamedTuple

from argo_harbor.model.base import canonical_json, sha256_hex
from argo_harbor.sandbox.http import HttpClient, NoAnswer

TOKEN_HEADER = "OPENSANDBOX-EGRESS-AUTH"
ENFORCEMENT = "dns+nft"
"""With names alone, a sandbox reaches any address that it knows."""
MAX_TOKEN = 1024

Action = Literal["allow", "deny"]


class EgressError(Exception):
    """egress does not answer, refuses, or enforces something else than it was told."""


class Rule(NamedTuple):
    action: Action
    target: str
    """A host name, `*.` wildcard, address or range."""


class Policy(NamedTuple):
    """Names: the first rule that matches counts. Addresses: what is denied stays denied."""

    default: Action
    rules: tuple[Rule, ...]

    def as_data(self) -> dict[str, object]:
        """As the API takes it."""
        rules = [{"action": rule.action, "target": rule.target} for rule in self.rules]
        return {"defaultAction": self.default, "egress": rules}

    def digest(self) -> str:
        """SHA-256 of the canonical JSON, 64 hex."""
        return sha256_hex(canonical_json(self.as_data()))

    def means(self) -> tuple[object, ...]:
        """What two policies must have in common to be the same; the order of addresses means nothing."""
        named = [rule for rule in self.rules if not is_address(rule.target)]
        addresses = {
            (rule.action, str(ip_network(rule.target, strict=False)))
            for rule in self.rules
            if is_address(rule.target)
        }
        return (
            self.default,
            tuple((rule.action, rule.target.lower()) for rule in named),
            frozenset(addresses),
        )


class EgressClient:
    """Calls one egress API. Every method raises EgressError."""

    def __init__(self, host: str, port: int, token: str) -> None:
        self._http = HttpClient(host, port, {TOKEN_HEADER: token})
        self._stranger = HttpClient(host, port, {})

    async def replace(self, policy: Policy) -> None:
        """Bring exactly this policy into force; it is when this returns."""
        await self._call(self._http, "PUT", policy.as_data())

    async def must_be(self, policy: Policy) -> None:
        """Raises EgressError when another policy is in force, or names only are filtered."""
        found = await self._call(self._http, "GET", None)
        enforcement = found.get("enforcementMode") if isinstance(found, dict) else None
        if enforcement != ENFORCEMENT:
            raise EgressError(f"egress enforces {enforcement!r}, not {ENFORCEMENT!r}")
        in_force = _policy(found.get("policy"))
        if in_force is None or in_force.means() != policy.means():
            raise EgressError("the rules in force are not those that were set")

    async def must_refuse_strangers(self) -> None:
        """Raises EgressError when the API answers without the token: the sandbox could open its own rules."""
        try:
            async with self._stranger.call("GET", "/policy") as reply:
                await reply.read()
        except NoAnswer as error:
            raise EgressError(f"egress does not answer: {error}") from error
        if reply.status not in (401, 403):
            raise EgressError(f"the egress API answers without its token ({reply.status})")

    @staticmethod
    async def _call(http: HttpClient, method: str, document: object) -> Any:
        try:
            async with http.call(method, "/policy", document=document) as reply:
                if reply.status != 200:
                    said = (await reply.read()).decode(errors="replace").strip()[:200]
                    raise EgressError(f"egress refuses {method} /policy: {said} ({reply.status})")
                return await reply.json()
        except NoAnswer as error:
            raise EgressError(f"egress does not answer: {error}") from error


def read_token(file: Path) -> str:
    """The API's token. Raises EgressError when the file is not there or holds none."""
    try:
        with file.open("rb") as source:
            token = source.read(MAX_TOKEN).decode("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise EgressError(f"the token of egress cannot be read: {error}") from error
    if not token or not token.isprintable():
        raise EgressError("the token of egress is empty or broken")
    return token


def is_address(target: str) -> bool:
    """Whether a rule's target is an address or a range."""
    try:
        ip_network(target, strict=False)
    except ValueError:
        return False
    return True


def _policy(data: object) -> Policy | None:
    if not isinstance(data, dict) or data.get("defaultAction") not in ("allow", "deny"):
        return None
    entries: Sequence[object] = data.get("egress") or ()
    if not isinstance(entries, list | tuple):
        return None
    rules = []
    for entry in entries:
        if not isinstance(entry, dict) or entry.get("action") not in ("allow", "deny"):
            return None
        rules.append(Rule(entry["action"], str(entry.get("target"))))
    return Policy(data["defaultAction"], tuple(rules))
