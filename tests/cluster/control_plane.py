"""etcd, the API server, the controller manager and the scheduler."""

from __future__ import annotations

import ssl
import urllib.error
import urllib.request

from tests.cluster import addresses, certificates, processes
from tests.cluster.state import State

START_SECONDS = 120.0
ETCD_URL = f"http://127.0.0.1:{addresses.ETCD_PORT}"
_PEER_URL = f"http://127.0.0.1:{addresses.ETCD_PEER_PORT}"

PROGRAMS = ("kube-scheduler", "kube-controller-manager", "kube-apiserver", "etcd")
"""In the order in which they stop."""


def start_api(state: State) -> None:
    """Start etcd and the API server, and wait until it answers.

    Raises:
        ClusterError: one of them ended, or it took too long.
    """
    _start_etcd(state)
    _start_apiserver(state)
    processes.wait_until(
        state,
        lambda: answers(state),
        what="the API server",
        seconds=START_SECONDS,
        needs=("etcd", "kube-apiserver"),
    )


def start_controllers(state: State) -> None:
    """Start the controller manager and the scheduler."""
    manager = certificates.client_kubeconfig(state, "kube-controller-manager")
    processes.start(
        state,
        "kube-controller-manager",
        [
            state.programs / "kube-controller-manager",
            f"--kubeconfig={manager}",
            f"--authentication-kubeconfig={manager}",
            f"--authorization-kubeconfig={manager}",
            "--bind-address=127.0.0.1",
            f"--root-ca-file={certificates.certificate(state, 'ca')}",
            f"--service-account-private-key-file={certificates.token_key(state)}",
            f"--cluster-cidr={addresses.PODS}",
            f"--service-cluster-ip-range={addresses.SERVICES}",
            f"--flex-volume-plugin-dir={state.data / 'volume-plugins'}",
            "--use-service-account-credentials=true",
            "--leader-elect=false",
            "--kube-api-qps=200",
            "--kube-api-burst=400",
        ],
    )
    scheduler = certificates.client_kubeconfig(state, "kube-scheduler")
    processes.start(
        state,
        "kube-scheduler",
        [
            state.programs / "kube-scheduler",
            f"--kubeconfig={scheduler}",
            f"--authentication-kubeconfig={scheduler}",
            f"--authorization-kubeconfig={scheduler}",
            "--bind-address=127.0.0.1",
            "--leader-elect=false",
            "--kube-api-qps=200",
            "--kube-api-burst=400",
        ],
    )


def answers(state: State) -> bool:
    """Whether the API server says that it is ready."""
    context = ssl.create_default_context(cafile=certificates.certificate(state, "ca"))
    context.load_cert_chain(certificates.certificate(state, "admin"), certificates.key(state, "admin"))
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
    )
    try:
        with opener.open(f"{addresses.API_SERVER}/readyz", timeout=3) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _start_etcd(state: State) -> None:
    processes.start(
        state,
        "etcd",
        [
            state.programs / "etcd",
            f"--data-dir={state.data / 'etcd'}",
            f"--listen-client-urls={ETCD_URL}",
            f"--advertise-client-urls={ETCD_URL}",
            f"--listen-peer-urls={_PEER_URL}",
            f"--initial-advertise-peer-urls={_PEER_URL}",
            f"--initial-cluster=default={_PEER_URL}",
            "--log-level=warn",
            # A cluster for tests may lose its last writes with the machine's power.
            "--unsafe-no-fsync",
        ],
    )


def _start_apiserver(state: State) -> None:
    processes.start(
        state,
        "kube-apiserver",
        [
            state.programs / "kube-apiserver",
            f"--etcd-servers={ETCD_URL}",
            f"--bind-address={addresses.NODE_ADDRESS}",
            f"--advertise-address={addresses.NODE_ADDRESS}",
            f"--secure-port={addresses.API_PORT}",
            f"--service-cluster-ip-range={addresses.SERVICES}",
            f"--client-ca-file={certificates.certificate(state, 'ca')}",
            f"--tls-cert-file={certificates.certificate(state, 'apiserver')}",
            f"--tls-private-key-file={certificates.key(state, 'apiserver')}",
            f"--kubelet-certificate-authority={certificates.certificate(state, 'ca')}",
            f"--kubelet-client-certificate={certificates.certificate(state, 'apiserver-kubelet-client')}",
            f"--kubelet-client-key={certificates.key(state, 'apiserver-kubelet-client')}",
            "--kubelet-preferred-address-types=InternalIP",
            f"--service-account-issuer=https://kubernetes.default.svc.{addresses.CLUSTER_DOMAIN}",
            f"--service-account-key-file={certificates.token_public_key(state)}",
            f"--service-account-signing-key-file={certificates.token_key(state)}",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--allow-privileged=true",
            "--profiling=false",
        ],
    )
