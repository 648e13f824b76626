"""Calls the cluster's own kubectl as its administrator."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.cluster.errors import ClusterError
from tests.cluster.shell import run
from tests.cluster.state import State

FIELD_MANAGER = "argo-harbor-test"


def kubectl(state: State, *arguments: str | Path, text: str | None = None, seconds: float = 120.0) -> str:
    """Return what kubectl prints.

    Raises:
        ClusterError: it failed; with its own words.
    """
    own = [
        f"--kubeconfig={state.kubeconfig}",
        # Its usual place is the user's home, where it would outlive the cluster.
        f"--cache-dir={state.data / 'kubectl'}",
    ]
    return run([state.programs / "kubectl", *own, *arguments], text=text, seconds=seconds)


def apply(state: State, *, text: str) -> None:
    """Apply manifests on the server's side.

    Raises:
        ClusterError: the API server refused one.
    """
    options = ["--server-side", "--force-conflicts", f"--field-manager={FIELD_MANAGER}"]
    kubectl(state, "apply", *options, "--filename=-", text=text)


def succeeds(state: State, *arguments: str | Path) -> bool:
    """Whether kubectl ends with status 0."""
    try:
        kubectl(state, *arguments, seconds=15)
    except (ClusterError, subprocess.SubprocessError):
        return False
    return True
