"""Names and addresses of the test cluster: fixed, so that images, goldens and tests can rely on them.

Everything listens on addresses that exist only on this machine (a bridge of our own carries them), hence a
machine can hold one such cluster, and no port of its other services is taken.
"""

from __future__ import annotations

CONTEXT = "argo-harbor-test"
NAMESPACE = "argo-harbor"
"""Where runs are, by the platform file."""
NODE = "argo-harbor-node"
BRIDGE = "argo-harbor0"
"""Pods are attached to it."""
NODE_INTERFACE = "argo-harbor1"
"""A bridge without ports that only carries the node's address."""
CGROUP = "argo-harbor-test"

NODE_ADDRESS = "10.243.0.1"
"""Of the node, as in a cluster whose nodes have a network apart from the pods'."""
GATEWAY = "10.244.0.1"
"""The bridge's own address: where pods find the store and the registries."""
PODS = "10.244.0.0/16"
NODE_PODS = "10.244.0.0/24"
SERVICES = "10.96.0.0/12"
API_SERVICE = "10.96.0.1"
DNS_SERVICE = "10.96.0.10"
CLUSTER_DOMAIN = "cluster.local"

API_PORT = 6443
KUBELET_PORT = 10250
ETCD_PORT = 12379
ETCD_PEER_PORT = 12380
STORE_PORT = 7070
REGISTRY_PORT = 5000
PRIVATE_REGISTRY_PORT = 5001

API_SERVER = f"https://{NODE_ADDRESS}:{API_PORT}"
STORE = f"http://{GATEWAY}:{STORE_PORT}"
REGISTRY = f"{GATEWAY}:{REGISTRY_PORT}"
PRIVATE_REGISTRY = f"{GATEWAY}:{PRIVATE_REGISTRY_PORT}"
"""Asks for a user and a password: for tests of pull and push Secrets."""

LISTENERS = (
    (NODE_ADDRESS, API_PORT),
    (NODE_ADDRESS, KUBELET_PORT),
    (GATEWAY, STORE_PORT),
    (GATEWAY, REGISTRY_PORT),
    (GATEWAY, PRIVATE_REGISTRY_PORT),
    ("127.0.0.1", ETCD_PORT),
    ("127.0.0.1", ETCD_PEER_PORT),
    ("127.0.0.1", 10249),
    ("127.0.0.1", 10256),
    ("127.0.0.1", 10257),
    ("127.0.0.1", 10259),
)
"""What must be free before the start."""

PACKAGE_DOMAIN = "packages.test"
"""Every name below it resolves, in the cluster only, to the gateway."""

ADDRESS_DOMAIN = "addresses.test"
"""Names below it resolve, in the cluster only, to the address they spell: `any.192-0-2-7.addresses.test`."""
