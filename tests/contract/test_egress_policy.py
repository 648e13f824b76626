"""The interface that changes the policy, by OpenSandbox's client and by plain HTTP."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from opensandbox.models.sandboxes import NetworkRule

from tests.contract import sdk
from tests.contract.daemons import EGRESS_TOKEN, Egress, Program, call
from tests.contract.sdk import EGRESS_PORT

pytestmark = pytest.mark.contract

Start = Callable[..., Egress]


def rules(egress: Egress) -> list[tuple[str, str]]:
    reply = egress.ask("GET").json()
    assert isinstance(reply, dict)
    return [(rule["action"], rule["target"]) for rule in reply["policy"]["egress"] or []]


def mode(egress: Egress) -> object:
    reply = egress.ask("GET").json()
    assert isinstance(reply, dict)
    assert reply["status"] == "ok"
    assert reply["enforcementMode"] == "dns+nft"
    return reply["mode"]


def test_health_needs_no_token(egress: Egress) -> None:
    assert call(EGRESS_PORT, "GET", "/healthz") == (200, "ok")


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("token", [None, "", "another"])
def test_nothing_without_the_token(egress: Egress, method: str, token: str | None) -> None:
    reply = egress.ask(method, '{"defaultAction": "allow"}', token=token)
    assert (reply.status, reply.body.strip()) == (401, "unauthorized")
    assert mode(egress) == "deny_all"


def test_published_client_reads_and_changes(egress: Egress) -> None:
    client = sdk.egress(EGRESS_TOKEN)
    egress.set("first.example")
    egress.ask("DELETE", ["first.example"])
    assert client.get_policy().default_action == "deny"
    client.patch_rules(
        [
            NetworkRule(action="allow", target="ok.example"),
            NetworkRule(action="deny", target="10.0.0.0/8"),
        ]
    )
    client.patch_rules([NetworkRule(action="allow", target="other.example")])
    policy = client.get_policy()
    assert policy.egress is not None
    assert [(rule.action, rule.target) for rule in policy.egress] == [
        ("allow", "other.example"),
        ("allow", "ok.example"),
        ("deny", "10.0.0.0/8"),
    ]
    client.delete_rules(["OK.example", "not.there"])
    policy = client.get_policy()
    assert policy.egress is not None
    assert [rule.target for rule in policy.egress] == ["other.example", "10.0.0.0/8"]


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_replacing(egress: Egress, method: str) -> None:
    egress.set("first.example")
    reply = egress.ask(method, {"egress": [{"action": "allow", "target": "ok.example"}]})
    assert reply.status == 200
    assert reply.json() == {"status": "ok", "mode": "enforcing", "enforcementMode": "dns+nft"}
    assert rules(egress) == [("allow", "ok.example")]
    assert egress.ask(method, {"defaultAction": "allow", "egress": []}).status == 200
    assert mode(egress) == "allow_all"


@pytest.mark.parametrize("body", ["", "null", "{}", ' {"defaultAction": "deny", "egress": []} '])
def test_nothing_is_denying_all(egress: Egress, body: str) -> None:
    egress.set("ok.example", default="allow")
    assert egress.ask("POST", body).status == 200
    assert mode(egress) == "deny_all"
    assert rules(egress) == []


def test_patching_replaces_the_same_target(egress: Egress) -> None:
    egress.set("ok.example", "other.example")
    patch = [{"action": "deny", "target": "OK.example"}, {"action": "allow", "target": "third.example"}]
    assert egress.ask("PATCH", patch).status == 200
    assert rules(egress) == [
        ("deny", "OK.example"),
        ("allow", "third.example"),
        ("allow", "other.example"),
    ]


@pytest.mark.parametrize(
    ("method", "body"),
    [
        ("PUT", "no json"),
        ("PUT", '{"egress": [{"action": "maybe", "target": "ok.example"}]}'),
        ("PUT", '{"egress": [{"action": "allow", "target": " "}]}'),
        ("PATCH", "[]"),
        ("PATCH", ""),
        ("PATCH", "{}"),
        ("DELETE", "[]"),
        ("DELETE", "{}"),
    ],
)
def test_broken_requests_change_nothing(egress: Egress, method: str, body: str) -> None:
    egress.set("ok.example")
    assert egress.ask(method, body).status == 400
    assert rules(egress) == [("allow", "ok.example")]


def test_other_methods(egress: Egress) -> None:
    assert egress.ask("OPTIONS").status == 405


def test_too_many_rules(start_egress: Start, egress_program: Program) -> None:
    egress = start_egress(egress_program, MAX_RULES="2")
    egress.set("1.example", "2.example")
    body = {"egress": [{"action": "allow", "target": f"{number}.example"} for number in range(3)]}
    assert egress.ask("PUT", body).status == 413
    assert egress.ask("PATCH", [{"action": "allow", "target": "3.example"}]).status == 413
    assert len(rules(egress)) == 2


def test_first_policy_from_the_environment(start_egress: Start, egress_program: Program) -> None:
    egress = start_egress(egress_program, RULES='{"egress": [{"action": "allow", "target": "ok.example"}]}')
    assert rules(egress) == [("allow", "ok.example")]


def test_file_keeps_the_policy_of_the_phase(
    start_egress: Start, egress_program: Program, tmp_path: Path
) -> None:
    settings = {"RULES": '{"defaultAction": "allow"}', "POLICY_FILE": str(tmp_path / "policy.json")}
    first = start_egress(egress_program, **settings)
    assert mode(first) == "allow_all"
    first.set("ok.example")
    first.process.kill()
    first.process.wait()
    assert rules(start_egress(egress_program, **settings)) == [("allow", "ok.example")]


def test_broken_file_is_passed_over(start_egress: Start, egress_program: Program, tmp_path: Path) -> None:
    (tmp_path / "policy.json").write_text("half a poli")
    rule = '{"egress": [{"action": "allow", "target": "ok.example"}]}'
    egress = start_egress(egress_program, RULES=rule, POLICY_FILE=str(tmp_path / "policy.json"))
    assert rules(egress) == [("allow", "ok.example")]


def test_policy_that_cannot_be_kept_is_not_in_force(
    start_egress: Start, own_egress: Program, tmp_path: Path
) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    egress = start_egress(own_egress, POLICY_FILE=str(folder / "policy.json"))
    egress.set("ok.example")
    (folder / "policy.json").unlink()
    folder.rmdir()
    reply = egress.ask("PUT", {"defaultAction": "allow"})
    assert reply.status == 500
    assert rules(egress) == [("allow", "ok.example")]


@pytest.mark.parametrize(
    "settings",
    [{"MODE": "dns+magic"}, {"MAX_RULES": "many"}, {"DNS_UPSTREAM": "resolver.example"}, {"RULES": "{"}],
)
def test_broken_settings_end_it(start_egress: Start, own_egress: Program, settings: dict[str, str]) -> None:
    egress = start_egress(own_egress, wait=False, **settings)
    assert egress.process.wait(timeout=10) == 1
