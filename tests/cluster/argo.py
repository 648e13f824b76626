"""Argo Workflows: its resource definitions and the controller, which runs as a process of the machine."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.cluster import certificates, kubeconfig, processes
from tests.cluster.kubectl import apply, kubectl
from tests.cluster.state import State
from tests.support import gotools
from tests.support.argo import ARGO

PROGRAMS = ("workflow-controller",)
NAMESPACE = "argo"
_DEFINITIONS = Path("manifests", "base", "crds", "full")

_CONFIGURATION = f"""apiVersion: v1
kind: Namespace
metadata: {{name: {NAMESPACE}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: workflow-controller-configmap, namespace: {NAMESPACE}}}
data:
  executor: |
    imagePullPolicy: IfNotPresent
    resources: {{requests: {{cpu: 10m, memory: 32Mi}}}}
  metricsConfig: |
    enabled: false
  telemetryConfig: |
    enabled: false
"""


def install(state: State, *, say: gotools.Say) -> None:
    """Create the definitions of the pinned version, with all of their rules, and the controller's settings.

    Raises:
        ClusterError: the API server refused.
        ToolBuildFailed: the definitions could not be fetched.
    """
    files = {_name(file): file for file in _definitions(say=say)}
    apply(state, text=_CONFIGURATION)
    there = kubectl(state, "get", "crd", "--output=name").split()
    for name, file in files.items():
        if name not in there:
            # Applying also merges megabytes, which can take longer than the API server lets a request take.
            kubectl(state, "create", "--validate=false", f"--filename={file}")
    kubectl(state, "wait", "--for=condition=Established", "--timeout=60s", *files)


def start(state: State, *, executor_image: str) -> None:
    """Start the controller for workflows in all namespaces; ``executor_image`` is the image of argoexec."""
    own = state.config / "workflow-controller.kubeconfig"
    kubeconfig.write(own, state, client="admin", namespace=NAMESPACE)
    processes.start(
        state,
        "workflow-controller",
        [
            state.programs / "workflow-controller",
            f"--kubeconfig={own}",
            f"--executor-image={executor_image}",
            "--qps=100",
            "--burst=200",
            "--loglevel=info",
        ],
        environment={
            "LEADER_ELECTION_DISABLE": "true",
            # The usual ten seconds between looks at a workflow would be most of a test's time.
            "DEFAULT_REQUEUE_TIME": "1s",
            "KUBECONFIG": str(certificates.client_kubeconfig(state, "admin")),
        },
    )


def kill_and_start(state: State) -> None:
    """End the controller without a word of warning, as a lost node does, and start it anew."""
    option = "--executor-image="
    (image,) = (
        part.removeprefix(option)
        for part in processes.command_line(state, "workflow-controller")
        if part.startswith(option)
    )
    processes.stop(state, "workflow-controller", grace_seconds=0)
    start(state, executor_image=image)


def _definitions(*, say: gotools.Say) -> tuple[Path, ...]:
    """The files with the definitions, kept beside the programs so that Go is asked only once."""
    folder = gotools.tool_folder(ARGO) / "definitions"
    if not folder.exists():
        with gotools.locked(ARGO, say=say):
            source = gotools.module_source(ARGO) / _DEFINITIONS
            draft = folder.with_name(f"{gotools.SCRATCH_PREFIX}definitions")
            shutil.rmtree(draft, ignore_errors=True)
            shutil.copytree(source, draft, copy_function=shutil.copyfile)
            draft.chmod(0o755)
            draft.rename(folder)
    return tuple(sorted(file for file in folder.glob("*.yaml") if file.name != "kustomization.yaml"))


def _name(file: Path) -> str:
    """The name of a definition's object, by the name of its file."""
    return (
        f"customresourcedefinition.apiextensions.k8s.io/{file.stem.removeprefix('argoproj.io_')}.argoproj.io"
    )
