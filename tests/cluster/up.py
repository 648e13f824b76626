"""Brings the cluster up. Every step is safe to repeat, so an interrupted start is finished by another."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from tests.cluster import (
    addresses,
    argo,
    certificates,
    control_plane,
    dns,
    images,
    kubeconfig,
    kubectl,
    network,
    node,
    packages,
    platform,
    preflight,
    processes,
    programs,
    services,
)
from tests.cluster.errors import ClusterError
from tests.cluster.state import State
from tests.support import gotools
from tests.support.gotools import Say
from tests.support.standins import BOOTSTRAP

READY_SECONDS = 90.0
STARTED = (
    *argo.PROGRAMS,
    *network.PROGRAMS,
    *node.PROGRAMS,
    *control_plane.PROGRAMS,
    *services.PROGRAMS,
)
"""All programs of a running cluster, in the order in which they stop."""


def up(state: State, *, say: Say) -> bool:
    """Bring the cluster up; false if it was up already. ``say`` gets progress lines.

    Raises:
        MachineUnfit: this machine cannot hold it; nothing was changed.
        ClusterError: a step failed. What was started stays, for its logs, until ``down``.
        ToolUnavailable, ToolBuildFailed: a program could not be built.
    """
    with only_one(say=say):
        if is_up(state):
            return False
        if not state.exists:
            preflight.check(state.folder)
        packages.install(say=say)
        if not state.exists:
            preflight.check_network()
        _prepare(state, say=say)
        _start(state, say=say)
        state.mark_ready()
        return True


def is_up(state: State) -> bool:
    """Whether an ``up`` was finished and everything that it started runs."""
    return state.ready and not stopped(state) and control_plane.answers(state)


def stopped(state: State) -> list[str]:
    """The programs of a running cluster that do not run."""
    return [name for name in STARTED if not processes.alive(state, name)]


@contextmanager
def only_one(*, say: Say) -> Iterator[None]:
    """Let one process at a time change the cluster; the others wait."""
    folder = gotools.cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "cluster.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another process that starts or stops the cluster")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _prepare(state: State, *, say: Say) -> None:
    finished = programs.build_all(say=say)
    state.make()
    # The one program that is no binary: what starts a sandbox's container.
    finished[BOOTSTRAP.name] = BOOTSTRAP
    for name, program in finished.items():
        _link(state.programs / name, program)
    certificates.make(state)
    network.prepare(state)


def refresh_images(state: State, *, say: Say) -> None:
    """Push what changed since the start, and let the installed platform name the new images.

    Raises:
        ClusterError: an image could not be built or pushed, or the cluster does not take the platform.
        ToolUnavailable, ToolBuildFailed: a program that goes into an image could not be built.
    """
    with only_one(say=say):
        _prepare(state, say=say)
        platform.write(state, images=_push_images(state, say=say))
        platform.install(state, say=say)


def _start(state: State, *, say: Say) -> None:
    began = time.monotonic()

    def tell(what: str) -> None:
        say(f"{time.monotonic() - began:5.1f} s  {what}")

    services.start_registries(state)
    (pause,) = _push_images(state, say=say, only=["pause"]).values()
    node.start_containerd(state, pause=pause)
    tell("registries and containerd run")
    # Images are bytes to be moved, the control plane mostly waits: neither needs the other.
    with ThreadPoolExecutor(max_workers=1) as pool:
        needed = pool.submit(_push_images, state, say=say, only=["coredns", "argoexec"])
        every = pool.submit(_push_images, state, say=say)
        services.start_store(state)
        control_plane.start_api(state)
        tell("the API server answers")
        control_plane.start_controllers(state)
        node.start_kubelet(state)
        network.start_services(state)
        argo.install(state, say=say)
        tell("Argo's definitions are there")
        dns.install(state, image=needed.result()["coredns"])
        argo.start(state, executor_image=needed.result()["argoexec"])
        _wait_for_node(state)
        network.start_policies(state)
        tell("the node is Ready")
        dns.wait(state)
        tell("names resolve")
        platform.write(state, images=every.result())
    platform.install(state, say=tell)
    if ended := stopped(state):
        raise ClusterError(f"{ended[0]} ended after its start:\n{processes.tail(state, ended[0])}")
    kubeconfig.merge(state)


def _push_images(state: State, *, say: Say, only: Sequence[str] = ()) -> Mapping[str, str]:
    def find(name: str) -> Path:
        return state.programs / name

    return images.push_all(registry=addresses.REGISTRY, tools=find, say=say, only=only)


def _wait_for_node(state: State) -> None:
    processes.wait_until(
        state,
        lambda: kubectl.succeeds(
            state, "wait", "--for=condition=Ready", "--timeout=5s", f"node/{addresses.NODE}"
        ),
        what=f"node {addresses.NODE} Ready",
        seconds=READY_SECONDS,
        needs=("kubelet", "containerd", "kube-apiserver"),
    )


def _link(place: Path, program: Path) -> None:
    place.unlink(missing_ok=True)
    place.symlink_to(program.resolve())
