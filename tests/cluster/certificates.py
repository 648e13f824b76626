"""The cluster's certificate authority, the certificates under it, and a kubeconfig for each program."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.cluster import addresses, kubeconfig
from tests.cluster.shell import run
from tests.cluster.state import State

DAYS = "365"
# Extensions are all given on the command line; the system's own file would add some that contradict them.
_CONFIG = "[req]\ndistinguished_name = name\n[name]\n"
_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")

_CLIENTS = {
    "admin": "/O=system:masters/CN=argo-harbor-test",
    "kube-controller-manager": "/CN=system:kube-controller-manager",
    "kube-scheduler": "/CN=system:kube-scheduler",
    "kube-proxy": "/CN=system:kube-proxy",
    "kubelet": f"/O=system:nodes/CN=system:node:{addresses.NODE}",
}
"""Programs that call the API server, and who they are there."""

_SERVERS = {
    "apiserver": (
        f"IP:{addresses.NODE_ADDRESS}",
        f"IP:{addresses.API_SERVICE}",
        "IP:127.0.0.1",
        "DNS:localhost",
        "DNS:kubernetes",
        "DNS:kubernetes.default",
        "DNS:kubernetes.default.svc",
        f"DNS:kubernetes.default.svc.{addresses.CLUSTER_DOMAIN}",
    ),
    "kubelet-server": (f"IP:{addresses.NODE_ADDRESS}", f"DNS:{addresses.NODE}"),
}


def make(state: State) -> None:
    """Create what is missing: authority, certificates, the key of service account tokens, kubeconfigs.

    Raises:
        ClusterError: openssl refused.
    """
    config = state.pki / "openssl.cnf"
    config.write_text(_CONFIG)
    _authority(state, config)
    for name, subject in _CLIENTS.items():
        _issue(state, config, name, subject=subject, extensions=["extendedKeyUsage=clientAuth"])
    _issue(
        state,
        config,
        "apiserver-kubelet-client",
        subject="/O=system:masters/CN=kube-apiserver",
        extensions=["extendedKeyUsage=clientAuth"],
    )
    for name, hosts in _SERVERS.items():
        extensions = ["extendedKeyUsage=serverAuth", f"subjectAltName={','.join(hosts)}"]
        _issue(state, config, name, subject=f"/CN={name}", extensions=extensions)
    _token_keys(state)
    for name in _CLIENTS:
        namespace = addresses.NAMESPACE if name == "admin" else "default"
        kubeconfig.write(client_kubeconfig(state, name), state, client=name, namespace=namespace)


def token_key(state: State) -> Path:
    """Signs the tokens of service accounts."""
    return key(state, "service-accounts")


def token_public_key(state: State) -> Path:
    """Checks the tokens of service accounts."""
    return token_key(state).with_suffix(".pub")


def client_kubeconfig(state: State, name: str) -> Path:
    """The kubeconfig of a program of the cluster."""
    return state.kubeconfig if name == "admin" else state.config / f"{name}.kubeconfig"


def certificate(state: State, name: str) -> Path:
    return state.pki / f"{name}.crt"


def key(state: State, name: str) -> Path:
    return state.pki / f"{name}.key"


def _token_keys(state: State) -> None:
    private, public = token_key(state), token_public_key(state)
    if not private.exists():
        run(
            ["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", private]
        )
    run(["openssl", "pkey", "-in", private, "-pubout", "-out", public])


def _authority(state: State, config: Path) -> None:
    if certificate(state, "ca").exists():
        return
    run(
        [
            *("openssl", "req", "-x509", "-config", config, *_NEW_KEY, "-days", DAYS),
            *(
                "-keyout",
                key(state, "ca"),
                "-out",
                certificate(state, "ca"),
                "-subj",
                "/CN=argo-harbor-test-ca",
            ),
            *("-addext", "basicConstraints=critical,CA:TRUE"),
            *("-addext", "keyUsage=critical,keyCertSign,digitalSignature"),
        ]
    )


def _issue(state: State, config: Path, name: str, *, subject: str, extensions: Sequence[str]) -> None:
    if certificate(state, name).exists():
        return
    run(
        [
            *("openssl", "req", "-x509", "-config", config, *_NEW_KEY, "-days", DAYS),
            *("-CA", certificate(state, "ca"), "-CAkey", key(state, "ca")),
            *("-keyout", key(state, name), "-out", certificate(state, name), "-subj", subject),
            *("-addext", "basicConstraints=critical,CA:FALSE"),
            *(word for extension in extensions for word in ("-addext", extension)),
        ]
    )
