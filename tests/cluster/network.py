"""The node's network: bridges, kernel settings, the pods' addresses, services, NetworkPolicies.

kube-proxy and kube-router write iptables rules all of whose chains begin with ``KUBE-``; that is how
:func:`remove` finds them again.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path

from tests.cluster import addresses, certificates, processes
from tests.cluster.errors import ClusterError
from tests.cluster.shell import run, succeeds
from tests.cluster.state import State

PROGRAMS = ("kube-router", "kube-proxy")
MARK = "argo-harbor-test"
"""Comment of the rule that is our own."""
FAMILIES = ("iptables", "ip6tables")
_OURS = re.compile(rf"(?:-A |:).*?(?:\b(?:KUBE|CNI)-|{MARK})")
_IPSET = re.compile(r"^(?:inet6:)?KUBE-|^kube-router-")

_SYSCTLS = {
    "net.ipv4.ip_forward": "1",
    "net.bridge.bridge-nf-call-iptables": "1",
}
_TOUCHED_BY_PROGRAMS = (
    "kernel.panic",
    "kernel.panic_on_oops",
    "kernel.keys.root_maxkeys",
    "kernel.keys.root_maxbytes",
    "net.bridge.bridge-nf-call-ip6tables",
    "net.ipv4.conf.all.route_localnet",
    "net.netfilter.nf_conntrack_max",
    "vm.overcommit_memory",
    "vm.panic_on_oom",
)


def cni_folder(state: State) -> Path:
    return state.config / "cni"


def prepare(state: State) -> None:
    """Make the bridges and set the kernel, after writing down what there was before."""
    _remember(state)
    for key, value in _SYSCTLS.items():
        _sysctl(key).write_text(value)
    _bridge(addresses.BRIDGE, f"{addresses.GATEWAY}/24")
    _bridge(addresses.NODE_INTERFACE, f"{addresses.NODE_ADDRESS}/32")
    masquerade = _masquerade()
    if not succeeds(["iptables", "-t", "nat", "-C", *masquerade]):
        run(["iptables", "-t", "nat", "-A", *masquerade])
    state.configure(f"{cni_folder(state).name}/10-argo-harbor.conflist", json.dumps(_cni(state), indent=2))


def start_services(state: State) -> None:
    """Start what makes services reachable under their addresses."""
    config = state.configure("kube-proxy.json", json.dumps(_proxy(state), indent=2))
    processes.start(state, "kube-proxy", [state.programs / "kube-proxy", f"--config={config}"])


def start_policies(state: State) -> None:
    """Start what enforces NetworkPolicies; the node must be known to the API server."""
    processes.start(
        state,
        "kube-router",
        [
            state.programs / "kube-router",
            # It reads pods, namespaces and policies of everybody, like the administrator.
            f"--kubeconfig={certificates.client_kubeconfig(state, 'admin')}",
            "--run-router=false",
            "--run-firewall=true",
            "--run-service-proxy=false",
            "--run-loadbalancer=false",
            f"--service-cluster-ip-range={addresses.SERVICES}",
            "--health-port=0",
            "--metrics-port=0",
        ],
        environment={"NODE_NAME": addresses.NODE},
    )


def remove(state: State) -> None:
    """Remove interfaces, rules and sets, and put the kernel's settings back."""
    for name in ports(addresses.BRIDGE):
        with suppress(ClusterError):
            run(["ip", "link", "delete", name])
    for name in (addresses.BRIDGE, addresses.NODE_INTERFACE):
        if Path("/sys/class/net", name).exists():
            run(["ip", "link", "delete", name])
    for family in FAMILIES:
        _remove_rules(family)
    for name in ipsets():
        run(["ipset", "destroy", name])
    record = state.load()
    for table in tables():
        if table not in record.tables and not rules_of(table):
            run(["nft", "delete", "table", *table.split()])
    if succeeds(["conntrack", "--version"]):
        for side in ("--orig-src", "--orig-dst"):
            # It fails when there is nothing to delete.
            succeeds(["conntrack", "-D", side, addresses.PODS])
    for key, value in record.sysctls.items():
        if _sysctl(key).exists():
            _sysctl(key).write_text(value)


def our_rules(family: str) -> list[str]:
    """Lines of iptables-save that belong to the cluster."""
    return [line for line in run([f"{family}-save"]).splitlines() if is_our_rule(line)]


def is_our_rule(line: str) -> bool:
    """Whether a line of iptables-save is a chain or rule of the cluster."""
    return bool(_OURS.match(line))


def ipsets() -> list[str]:
    """Names of the address sets that the cluster's programs made."""
    return [name for name in run(["ipset", "list", "-name"]).split() if _IPSET.search(name)]


def ports(bridge: str) -> list[str]:
    """Interfaces attached to a bridge."""
    folder = Path("/sys/class/net", bridge, "brif")
    return sorted(port.name for port in folder.iterdir()) if folder.exists() else []


def tables() -> list[str]:
    """The kernel's packet filter tables, such as `ip nat`."""
    return [line.removeprefix("table ") for line in run(["nft", "list", "tables"]).splitlines()]


def rules_of(table: str) -> list[str]:
    """What a table holds besides empty chains."""
    listed = json.loads(run(["nft", "--json", "list", "table", *table.split()]))["nftables"]
    return [str(entry) for entry in listed if "rule" in entry or "set" in entry]


def changed_sysctls(state: State) -> list[str]:
    """Kernel settings that differ from what they were before the cluster came."""
    return [
        key
        for key, value in state.load().sysctls.items()
        if _sysctl(key).exists() and _sysctl(key).read_text().strip() != value
    ]


def _remember(state: State) -> None:
    record = state.load()
    if record.sysctls:
        return
    keys = [*_SYSCTLS, *_TOUCHED_BY_PROGRAMS]
    record.sysctls = {key: _sysctl(key).read_text().strip() for key in keys if _sysctl(key).exists()}
    record.tables = tables()
    state.save(record)


def _sysctl(key: str) -> Path:
    return Path("/proc/sys", *key.split("."))


def _bridge(name: str, address: str) -> None:
    if not Path("/sys/class/net", name).exists():
        run(["ip", "link", "add", name, "type", "bridge"])
        run(["ip", "address", "add", address, "dev", name])
    run(["ip", "link", "set", name, "up"])


def _masquerade() -> list[str]:
    """The rule that lets pods reach addresses outside under the machine's own."""
    outside = ["!", "-d", addresses.PODS, "-j", "MASQUERADE"]
    return ["POSTROUTING", "-s", addresses.NODE_PODS, "-m", "comment", "--comment", MARK, *outside]


def _cni(state: State) -> dict[str, object]:
    bridge = {
        "type": "bridge",
        "bridge": addresses.BRIDGE,
        "isGateway": True,
        "hairpinMode": True,
        "ipam": {
            "type": "host-local",
            "dataDir": str(state.data / "addresses"),
            "ranges": [[{"subnet": addresses.NODE_PODS, "gateway": addresses.GATEWAY}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    return {
        "cniVersion": "0.4.0",
        "name": "argo-harbor",
        "plugins": [bridge, {"type": "portmap", "capabilities": {"portMappings": True}}],
    }


def _proxy(state: State) -> dict[str, object]:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "iptables",
        "hostnameOverride": addresses.NODE,
        "clusterCIDR": addresses.PODS,
        "clientConnection": {"kubeconfig": str(certificates.client_kubeconfig(state, "kube-proxy"))},
        "healthzBindAddress": "127.0.0.1:10256",
        "metricsBindAddress": "127.0.0.1:10249",
        # Zeros leave the machine's own limits alone.
        "conntrack": {
            "maxPerCore": 0,
            "min": 0,
            "tcpEstablishedTimeout": "0s",
            "tcpCloseWaitTimeout": "0s",
        },
        "iptables": {"localhostNodePorts": False, "minSyncPeriod": "200ms"},
        "oomScoreAdj": 0,
    }


def _remove_rules(family: str) -> None:
    """Delete our rules and chains and leave all others as they are."""
    table = ""
    rules: dict[str, list[str]] = {}
    chains: dict[str, list[str]] = {}
    for line in run([f"{family}-save"]).splitlines():
        if line.startswith("*"):
            table = line[1:]
        elif line.startswith((":KUBE-", ":CNI-")):
            chains.setdefault(table, []).append(line[1:].split()[0])
        elif line.startswith("-A ") and not line.startswith(("-A KUBE-", "-A CNI-")) and is_our_rule(line):
            rules.setdefault(table, []).append(f"-D {line[3:]}")
    script: list[str] = []
    for name in sorted({*rules, *chains}):
        of_table = chains.get(name, [])
        flushed = [f":{chain} - [0:0]" for chain in of_table]
        deleted = [f"-X {chain}" for chain in of_table]
        script += [f"*{name}", *flushed, *rules.get(name, []), *deleted, "COMMIT"]
    if script:
        run([f"{family}-restore", "--noflush"], text="\n".join(script) + "\n")
