"""From the plan's rules of a phase to the whole policy of a pod."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from argo_harbor.model.plan import PhaseRules
from argo_harbor.model.platform import NetworkSettings, Platform, StoreSettings
from argo_harbor.model.profile import DENIED_RANGES
from argo_harbor.runner import probes
from argo_harbor.runner.infrastructure import covers, phase_policy, pod_denied, pod_hosts, resolve, without
from argo_harbor.sandbox.egress import Policy, Rule
from tests.support.records import make_run

NONE = PhaseRules(mode="none")
PUBLIC = PhaseRules(mode="public")
HOSTS = PhaseRules(mode="hosts", hosts=("198.18.0.7", "pypi.example"))
STORE = "10.96.4.2"


def policy(rules: PhaseRules) -> Policy:
    return phase_policy(rules, denied=DENIED_RANGES, hosts=("store.example",), addresses=(STORE,))


def test_no_network_leaves_the_pods_own_needs() -> None:
    assert policy(NONE) == Policy("deny", (Rule("allow", "store.example"), Rule("allow", STORE)))


def test_hosts_stand_behind_the_denied_ranges() -> None:
    made = policy(HOSTS)
    assert made.default == "deny"
    actions = [rule.action for rule in made.rules]
    assert actions == sorted(actions, reverse=True)
    assert made.rules[-2:] == (Rule("allow", "198.18.0.7"), Rule("allow", "pypi.example"))


def test_public_is_everything_but_the_denied_ranges() -> None:
    made = policy(PUBLIC)
    denied = [rule.target for rule in made.rules if rule.action == "deny"]
    assert made.default == "allow"
    assert covers(denied, "169.254.169.254")
    assert covers(denied, "10.96.4.3")
    assert not covers(denied, STORE)
    assert not covers(denied, "1.1.1.1")


def test_exactly_the_named_addresses_are_taken_out() -> None:
    left = without(["10.0.0.0/30", "fc00::/126", "::ffff:0:0/96"], ["10.0.0.1", "fc00::2", "8.8.8.8"])
    assert left == ("10.0.0.0/32", "10.0.0.2/31", "fc00::/127", "fc00::3/128")


def test_the_pods_needs_come_from_plan_and_pod() -> None:
    planned = Platform(
        store=StoreSettings(endpoint="http://old-store:9000"),
        network=NetworkSettings(api_server=("192.168.1.4:6443",), resolvers=("192.168.1.5",)),
    )
    present = Platform(store=StoreSettings(endpoint="https://store.example"))
    found = pod_hosts(planned, present, {"KUBERNETES_SERVICE_HOST": "10.96.0.1"})
    assert found == ("10.96.0.1", "192.168.1.4", "old-store", "192.168.1.5", "store.example")
    assert "" not in pod_hosts(planned, present, {})
    with pytest.raises(ValueError, match="names no host"):
        pod_hosts(Platform(store=StoreSettings(endpoint="http://")), present, {})


def test_names_without_an_address_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    def look_up(host: str, *_: object, **__: object) -> list[tuple[int, int, int, str, tuple[str, int]]]:
        if host == "gone.example":
            raise socket.gaierror
        return [(2, 1, 6, "", ("10.1.1.1", 0)), (10, 1, 6, "", ("fe80::1%eth0", 0))]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    assert resolve(["gone.example", "store.example", "10.96.0.1"]) == ("10.1.1.1", "10.96.0.1", "fe80::1")


def test_the_clusters_own_ranges_are_denied_unless_opened(tmp_path: Path) -> None:
    network = NetworkSettings(
        pod_cidrs=("10.244.0.0/16",), service_cidrs=("172.20.0.0/16",), node_cidrs=("20.0.0.0/24",)
    )
    platform = Platform(network=network, undeny=("10.0.0.0/8",))
    head = make_run(tmp_path, platform=platform, denied=("172.16.0.0/12",)).head
    assert pod_denied(head) == ("172.16.0.0/12", "172.20.0.0/16", "20.0.0.0/24")


def test_probes_look_where_nobody_is() -> None:
    assert probes.must_fail(policy(NONE)) == ("192.0.2.1", "192.88.99.1")
    assert probes.must_fail(policy(PUBLIC)) == ("192.0.2.1", "198.51.100.1")
    assert probes.must_fail(Policy("allow", ())) == ()
    assert probes.must_pass(HOSTS, (STORE, "10.0.0.1")) == (STORE, "198.18.0.7")
    assert probes.must_pass(NONE, ()) == ()


def test_a_packet_to_loopback_leaves_and_one_to_nowhere_does_not() -> None:
    assert probes.leaves("127.0.0.1")
    assert not probes.leaves("ff02::1")
    assert "probe 192.0.2.1" in probes.probing(("192.0.2.1",))
