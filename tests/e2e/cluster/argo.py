"""Argo's own command line, as people use it who have no other."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from tests.cluster.cluster import Cluster


def argo(cluster: Cluster, *arguments: object) -> str:
    """What it prints; it must succeed."""
    done = subprocess.run(
        [cluster.programs / "argo", "--namespace", cluster.namespace, *map(str, arguments)],
        env=cluster.environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def created(cluster: Cluster, *arguments: object) -> str:
    """Name of the Workflow that such a command makes."""
    made: dict[str, Any] = json.loads(argo(cluster, *arguments, "--output", "json"))
    name: str = made["metadata"]["name"]
    return name
