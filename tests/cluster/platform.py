"""The platform file that describes this cluster to argo-harbor, and how it gets into the cluster."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping

import tomli_w

from argo_harbor.install.inputs import ACCESS_VARIABLE, SECRET_VARIABLE
from argo_harbor.model.platform import ImageSettings
from argo_harbor.settings.platform import read_platform
from tests.cluster import addresses, services
from tests.cluster.errors import ClusterError
from tests.cluster.images.catalogue import MIRROR
from tests.cluster.processes import environment_with
from tests.cluster.state import State
from tests.support.gotools import REPOSITORY, Say

REPOSITORIES = "argo-harbor"
"""Folder of the registry where built images go."""
GROUPS = {
    "python": ["python.packages.test"],
    "debian": ["debian.packages.test"],
    "node": ["node.packages.test"],
}
"""Package sources that exist on this machine only, so that no test reaches for those of the world."""


def write(state: State, *, images: Mapping[str, str]) -> None:
    """Write the file; ``images`` gives references by short name, and what it lacks keeps its default."""
    ours = {name: images[name] for name in ImageSettings.model_fields if name in images}
    document = {
        "schema": "platform-1",
        "namespace": addresses.NAMESPACE,
        "registry": f"{addresses.REGISTRY}/{REPOSITORIES}",
        "base_image_mirror": f"{addresses.REGISTRY}/{MIRROR}",
        "insecure_registries": [addresses.REGISTRY, addresses.PRIVATE_REGISTRY],
        "store": {"kind": "s3", "endpoint": addresses.STORE, "bucket": services.BUCKET},
        "images": ours,
        "network": {
            "pod_cidrs": [addresses.PODS],
            "service_cidrs": [addresses.SERVICES],
            "node_cidrs": [f"{addresses.NODE_ADDRESS}/32"],
            "api_server": [f"{addresses.NODE_ADDRESS}:{addresses.API_PORT}"],
        },
        "groups": GROUPS,
        # A finished pod's logs are looked at by tests, a finished workflow by people; neither for days.
        "workflow": {"ttl_seconds": 24 * 3600},
    }
    state.platform.write_text(tomli_w.dumps(document))
    # A mistake here shall be found here, and not by the first test that uses the file.
    read_platform(state.platform)


def install(state: State, *, say: Say) -> None:
    """Let ``argo-harbor install`` bring the file and all that belongs to it into the cluster.

    Raises:
        ClusterError: it refused; with its own words.
    """
    record = state.load()
    command = [sys.executable, "-m", "argo_harbor", "install", "--apply", "--platform", str(state.platform)]
    environment = environment_with(
        {
            "KUBECONFIG": str(state.kubeconfig),
            ACCESS_VARIABLE: record.store_access_key,
            SECRET_VARIABLE: record.store_secret_key,
        }
    )
    done = subprocess.run(
        command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ClusterError(f"`argo-harbor install` failed:\n{done.stdout}{done.stderr}")
    say(f"argo-harbor is installed in namespace {addresses.NAMESPACE}")
