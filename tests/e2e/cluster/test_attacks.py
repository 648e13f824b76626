"""From inside a sandbox, as root: nothing of the cluster, of other trials or of the machinery is in reach."""

from __future__ import annotations

from typing import Any

import pytest

from argo_harbor.workflow.confinement import DROPPED_CAPABILITIES
from tests.e2e.cluster.assault import ATTACKING, Assault, serving
from tests.e2e.cluster.outside import SERVERS, name_of

pytestmark = pytest.mark.cluster

REFUSED = ("operation not permitted", "permission denied", "read-only file system")
CAPABILITIES = {
    "CHOWN": 0,
    "DAC_OVERRIDE": 1,
    "FOWNER": 3,
    "FSETID": 4,
    "KILL": 5,
    "SETGID": 6,
    "SETUID": 7,
    "SETPCAP": 8,
    "NET_BIND_SERVICE": 10,
    "NET_RAW": 13,
    "SYS_CHROOT": 18,
    "MKNOD": 27,
    "AUDIT_WRITE": 29,
    "SETFCAP": 31,
}
"""What a container of root has by default, by the number of its bit."""
OWN_VARIABLES = ("EXECD_API_GRACE_SHUTDOWN=", "EXECD_ACCESS_TOKEN=")
"""Of execd: its token stands in the pod for the kubelet's probe, and nothing rests on it."""

everywhere = pytest.mark.parametrize("task", ATTACKING)


def findings(attacks: Assault, task: str, part: str) -> dict[str, Any]:
    found: dict[str, Any] = attacks.findings[task][part]
    return found


@everywhere
def test_the_program_that_attacks_ran_to_its_end(attacks: Assault, task: str) -> None:
    record = attacks.record(task)
    assert (record["outcome"], record["rewards"]) == ("scored", {"reward": 1.0})
    assert findings(attacks, task, "holds")["capabilities"]["Uid"].split() == ["0"] * 4


@everywhere
def test_no_port_of_another_pod_or_of_the_node_answers(attacks: Assault, task: str) -> None:
    places = serving({name: ip for name, ip in attacks.addresses.items() if name != task})
    assert attacks.silent == [], "the node reaches all of them, so a refusal is one"
    tried = findings(attacks, task, "dials")
    assert [name for name in places if tried[name] == "open"] == []


@everywhere
def test_what_a_node_may_know_is_no_business_of_a_sandbox(attacks: Assault, task: str) -> None:
    tried = findings(attacks, task, "dials")
    asked = [name for name in tried if name.startswith("metadata")]
    assert len(asked) == 3
    assert [name for name in asked if tried[name] == "open"] == []


@everywhere
def test_a_name_opens_no_address_that_is_denied(attacks: Assault, task: str) -> None:
    tried = findings(attacks, task, "dials")
    asked = [name for name in tried if name.endswith("execd by name")]
    assert len(asked) == len(attacks.addresses) - 1
    assert [name for name in asked if tried[name] == "open"] == []


def test_a_public_task_reaches_public_hosts_by_name_and_by_address(attacks: Assault) -> None:
    tried, found = (findings(attacks, "in-the-open", part) for part in ("dials", "lookups"))
    for server in ("agent", "closed"):
        assert tried[f"{server} by name"] == tried[f"{server} by address"] == "open"
        assert found[server] == SERVERS[server]


def test_a_task_without_a_network_reaches_and_learns_nothing(attacks: Assault) -> None:
    assert "open" not in findings(attacks, "shut-in", "dials").values()
    assert not set(findings(attacks, "shut-in", "lookups").values()) & set(SERVERS.values())


def test_what_was_refused_stands_in_the_record_with_counts(attacks: Assault) -> None:
    refused = {each["host"]: each["count"] for each in attacks.record("shut-in")["refused"]["agent"]}
    for server, address in SERVERS.items():
        assert refused[name_of(server)] >= 1
        assert refused[address] >= 1


@everywhere
def test_the_network_rules_cannot_be_read_or_changed_without_their_token(attacks: Assault, task: str) -> None:
    answers = findings(attacks, task, "calls")
    tried = {name: each for name, each in answers.items() if name.startswith("egress ")}
    assert len(tried) == 10
    assert {name: each["status"] for name, each in tried.items() if each["status"] != 401} == {}
    assert not any("egress" in each["body"] for each in tried.values())


@everywhere
def test_the_token_of_the_rules_is_nowhere_in_the_sandbox(attacks: Assault, task: str) -> None:
    assert attacks.leaks[task] == []


@everywhere
def test_refused_hosts_cannot_be_made_up(attacks: Assault, task: str) -> None:
    assert findings(attacks, task, "calls")["refusals"]["status"] == 404
    named = [each["host"] for hosts in attacks.record(task)["refused"].values() for each in hosts]
    assert "forged.test" not in named


@everywhere
def test_the_api_server_gives_nothing_to_a_sandbox(attacks: Assault, task: str) -> None:
    tried = {name: each for name, each in findings(attacks, task, "calls").items() if " by " in name}
    assert len(tried) == 8
    assert {name: each for name, each in tried.items() if each["status"] not in (401, 403)} == {}
    assert not any('"items"' in each["body"] for each in tried.values())


@everywhere
def test_the_store_gives_and_takes_nothing_without_credentials(attacks: Assault, task: str) -> None:
    tried = {name: each for name, each in findings(attacks, task, "calls").items() if "store" in name}
    assert len(tried) == 4
    assert {name: each for name, each in tried.items() if each["status"] != 403} == {}


@everywhere
def test_the_kernel_refuses_what_would_pass_the_rules_by(attacks: Assault, task: str) -> None:
    tried = findings(attacks, task, "kernel")
    assert len(tried) >= 20
    assert {name: said for name, said in tried.items() if not said.endswith(REFUSED)} == {}


@everywhere
def test_a_sandbox_has_the_documented_capabilities_and_no_more(attacks: Assault, task: str) -> None:
    status = findings(attacks, task, "holds")["capabilities"]
    kept = [number for name, number in CAPABILITIES.items() if name not in DROPPED_CAPABILITIES]
    for line in ("CapEff", "CapPrm", "CapBnd"):
        assert [bit for bit in range(64) if int(status[line], 16) >> bit & 1] == kept
    assert int(status["CapAmb"], 16) == 0
    assert status["Seccomp"] == "2", "calls are filtered"


@everywhere
def test_nothing_of_argo_or_of_kubernetes_lies_in_a_sandbox(attacks: Assault, task: str) -> None:
    holds = findings(attacks, task, "holds")
    assert holds["present"] == []
    mounted = [line.split()[4] for line in holds["mounts"].splitlines()]
    assert [path for path in mounted if "argo" in path or "secrets" in path or "egress" in path] == []
    words = ("ARGO", "AWS_", "OPENSANDBOX", "TOKEN", "SECRET", "PASSWORD", "ACCESS_KEY")
    telling = {text for text in holds["variables"] if any(word in text.partition("=")[0] for word in words)}
    assert [text for text in telling if not text.startswith(OWN_VARIABLES)] == []


@everywhere
def test_a_sandbox_sees_its_own_processes_only(attacks: Assault, task: str) -> None:
    seen = set(findings(attacks, task, "holds")["processes"])
    ours = {"execd", "bash", "sh", "solve.sh", "attacker", "tee", "sleep", "timeout", "cat"}
    # The last is the runtime, when it starts a command of the test inside.
    assert seen <= ours | {"runc:[2:INIT]"}


def test_a_reward_that_is_written_after_it_was_read_scores_nothing(attacks: Assault) -> None:
    record = attacks.record("forged-late")
    assert (record["outcome"], record["error"]["code"]) == ("unscored", "reward_tampered")


def test_a_sandbox_that_ran_out_of_memory_is_a_fault_by_name_and_no_score(attacks: Assault) -> None:
    record = attacks.record("out-of-memory")
    assert record["outcome"] == "infrastructure"
    # Whether it is back already when it is asked next is a matter of luck.
    assert record["error"]["code"] in ("sandbox_restarted", "sandbox_failed")
    assert "memory" in record["error"]["message"]
    assert record["rewards"] is None
