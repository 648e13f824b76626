"""The node: containerd with its own root, and the kubelet."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cluster import addresses, certificates, cgroups, network, processes
from tests.cluster.shell import succeeds
from tests.cluster.state import State

PROGRAMS = ("kubelet", "containerd")
START_SECONDS = 60.0
CNI_PLUGINS = Path("/usr/lib/cni")
PAUSE = f"{addresses.REGISTRY}/argo-harbor/pause:1"

FIXED_FOLDERS = (
    "/run/containerd",
    "/var/lib/cni",
    "/var/lib/kubelet",
    "/var/log/containers",
    "/var/log/pods",
)
"""Folders that programs of the node make whatever they are told."""


def start_containerd(state: State, *, pause: str) -> None:
    """Start containerd and wait until it answers; ``pause`` is the image that holds a pod's namespaces.

    Raises:
        ClusterError: it ended, or took too long.
    """
    _remember_folders(state)
    config = state.configure("containerd.toml", _containerd(state, pause))
    _registries(state)
    processes.start(state, "containerd", ["containerd", "--config", config])
    processes.wait_until(
        state,
        lambda: state.containerd_socket.exists() and succeeds([*ctr(state), "version"], seconds=5),
        what="containerd",
        seconds=START_SECONDS,
        needs=("containerd",),
    )


def start_kubelet(state: State) -> None:
    """Start the kubelet, which registers the node."""
    cgroups.make()
    resolv = state.configure("resolv.conf", _machine_resolv_conf().read_text())
    config = state.configure("kubelet.json", json.dumps(_kubelet(state, resolv), indent=2))
    processes.start(
        state,
        "kubelet",
        [
            state.programs / "kubelet",
            f"--config={config}",
            f"--kubeconfig={certificates.client_kubeconfig(state, 'kubelet')}",
            f"--hostname-override={addresses.NODE}",
            f"--node-ip={addresses.NODE_ADDRESS}",
            f"--root-dir={state.data / 'kubelet'}",
            f"--cert-dir={state.data / 'kubelet-certificates'}",
        ],
    )


def ctr(state: State) -> list[str]:
    """The command that talks to the node's containerd about the containers of pods."""
    return ["ctr", "--address", str(state.containerd_socket), "--namespace", "k8s.io"]


def _remember_folders(state: State) -> None:
    record = state.load()
    if not record.created:
        record.created = [folder for folder in FIXED_FOLDERS if not Path(folder).exists()]
        state.save(record)


def _machine_resolv_conf() -> Path:
    """The resolvers that pods can use: the stub of systemd listens on a loopback address."""
    real = Path("/run/systemd/resolve/resolv.conf")
    return real if real.exists() else Path("/etc/resolv.conf")


def _containerd(state: State, pause: str) -> str:
    data = state.data
    return f"""version = 2
root = "{data / "containerd"}"
state = "{data / "containerd-state"}"
disabled_plugins = [
  "io.containerd.internal.v1.opt",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs",
]
[grpc]
  address = "{state.containerd_socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  # Lowering the score is refused on some machines, and every pod would fail then.
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  max_concurrent_downloads = 4
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{CNI_PLUGINS}"
    conf_dir = "{network.cni_folder(state)}"
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "{_registry_folder(state)}"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      Root = "{data / "runc"}"
      SystemdCgroup = false
"""


def _registry_folder(state: State) -> Path:
    return state.config / "registries"


def _registries(state: State) -> None:
    """Our registries speak plain HTTP, and no other exists: a pull from elsewhere fails at once."""
    for registry in (addresses.REGISTRY, addresses.PRIVATE_REGISTRY):
        _hosts(state, registry, server=f"http://{registry}")
    _hosts(state, "_default", server="http://127.0.0.1:9")


def _hosts(state: State, registry: str, *, server: str) -> None:
    state.configure(
        f"{_registry_folder(state).name}/{registry}/hosts.toml",
        f'server = "{server}"\n[host."{server}"]\n  capabilities = ["pull", "resolve"]\n',
    )


def _kubelet(state: State, resolv: Path) -> dict[str, object]:
    authority = str(certificates.certificate(state, "ca"))
    lax = {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"}
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": addresses.NODE_ADDRESS,
        "port": addresses.KUBELET_PORT,
        "healthzPort": 0,
        "tlsCertFile": str(certificates.certificate(state, "kubelet-server")),
        "tlsPrivateKeyFile": str(certificates.key(state, "kubelet-server")),
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": authority},
        },
        "authorization": {"mode": "Webhook"},
        "containerRuntimeEndpoint": f"unix://{state.containerd_socket}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{addresses.CGROUP}",
        "failCgroupV1": False,
        "enforceNodeAllocatable": [],
        "failSwapOn": False,
        "oomScoreAdj": 0,
        "clusterDNS": [addresses.DNS_SERVICE],
        "clusterDomain": addresses.CLUSTER_DOMAIN,
        "resolvConf": str(resolv),
        "podLogsDir": str(state.logs / "pods"),
        "volumePluginDir": str(state.data / "volume-plugins"),
        "serializeImagePulls": False,
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "evictionHard": lax | {"nodefs.inodesFree": "1%", "imagefs.inodesFree": "1%"},
        "kubeAPIQPS": 200,
        "kubeAPIBurst": 400,
        "eventRecordQPS": 0,
    }
