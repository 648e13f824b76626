"""The programs that the cluster consists of, and how to have them all finished.

The order is the order in which ``up`` needs them; Go's own cache makes the second program of a module cheap.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.support import gotools
from tests.support.argo import ARGO
from tests.support.gotools import GoTool
from tests.support.s3server import VERSITYGW
from tests.support.standins import EGRESS, EXECD

KUBERNETES = "k8s.io/kubernetes"
_VERSION_PACKAGE = "k8s.io/component-base/version"


def _kubernetes(name: str) -> GoTool:
    """A program of Kubernetes; without the stamped version it would call itself v0.0.0 and fail checks."""
    pinned = GoTool(name=name, folder="kubernetes", module=KUBERNETES).version
    numbers = re.match(r"v(\d+)\.(\d+)", pinned)
    if numbers is None:
        raise LookupError(f"tests/tools/kubernetes pins `{pinned}`, which is no release")
    stamps = {
        "gitVersion": pinned,
        "gitMajor": numbers[1],
        "gitMinor": numbers[2],
        "gitTreeState": "clean",
    }
    ldflags = " ".join(f"-X {_VERSION_PACKAGE}.{key}={value}" for key, value in stamps.items())
    return GoTool(
        name=name,
        folder="kubernetes",
        module=KUBERNETES,
        package=f"cmd/{name}",
        ldflags=f"-s -w {ldflags}",
    )


def _restore_signals(source: Path) -> None:
    """Put back a file that is a link upstream: published modules lose links, and argoexec needs it."""
    folder = source / "workflow" / "executor" / "osspecific"
    (folder / "signal_linux.go").write_bytes((folder / "signal_darwin.go").read_bytes())


def _argo(name: str) -> GoTool:
    return GoTool(
        name=name,
        folder=ARGO.folder,
        module=ARGO.module,
        package=f"cmd/{name}",
        ldflags=ARGO.ldflags,
        mend=_restore_signals,
    )


ETCD = GoTool(name="etcd", folder="etcd", module="go.etcd.io/etcd/server/v3")
KUBE_APISERVER = _kubernetes("kube-apiserver")
KUBE_CONTROLLER_MANAGER = _kubernetes("kube-controller-manager")
KUBE_SCHEDULER = _kubernetes("kube-scheduler")
KUBELET = _kubernetes("kubelet")
KUBE_PROXY = _kubernetes("kube-proxy")
KUBECTL = _kubernetes("kubectl")
REGISTRY = GoTool(
    name="registry",
    folder="registry",
    module="github.com/distribution/distribution/v3",
    package="cmd/registry",
)
WORKFLOW_CONTROLLER = _argo("workflow-controller")
ARGOEXEC = _argo("argoexec")
COREDNS = GoTool(name="coredns", folder="coredns", module="github.com/coredns/coredns")
KUBE_ROUTER = GoTool(
    name="kube-router",
    folder="kube-router",
    module="github.com/cloudnativelabs/kube-router/v2",
    package="cmd/kube-router",
)
BUILDKITD = GoTool(
    name="buildkitd", folder="buildkit", module="github.com/moby/buildkit", package="cmd/buildkitd"
)
BUILDCTL = GoTool(
    name="buildctl", folder="buildkit", module="github.com/moby/buildkit", package="cmd/buildctl"
)

ALL = (
    ETCD,
    KUBE_APISERVER,
    KUBE_CONTROLLER_MANAGER,
    KUBE_SCHEDULER,
    KUBELET,
    KUBECTL,
    KUBE_PROXY,
    VERSITYGW,
    REGISTRY,
    WORKFLOW_CONTROLLER,
    ARGOEXEC,
    ARGO,
    COREDNS,
    KUBE_ROUTER,
    BUILDKITD,
    BUILDCTL,
    EXECD,
    EGRESS,
)


def build_all(tools: Sequence[GoTool] = ALL, *, say: gotools.Say) -> dict[str, Path]:
    """Return the finished programs by name, compiling those that the cache does not hold.

    Raises:
        ToolUnavailable: one has to be built, and there is no Go or one too old.
        ToolBuildFailed: fetching or compiling failed.
    """
    return {tool.name: gotools.build(tool, say=say) for tool in tools}


def path(tool: GoTool) -> Path:
    """Where the finished program is, built or not."""
    return gotools.tool_folder(tool) / tool.name


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry of ``python -m tests.cluster.programs``: build the named programs, or all; returns the status."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.programs", description=__doc__)
    parser.add_argument("names", nargs="*", help="programs to build; default: all")
    wanted = parser.parse_args(arguments).names
    tools = [tool for tool in ALL if not wanted or tool.name in wanted]
    try:
        for name, program in build_all(tools, say=print).items():
            print(f"{name}: {program}", flush=True)
    except (gotools.ToolUnavailable, gotools.ToolBuildFailed) as failure:
        print(failure, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
