"""Takes the cluster down and puts the machine back as it was."""

from __future__ import annotations

import shutil
import signal
from contextlib import suppress
from os import kill
from pathlib import Path

from tests.cluster import cgroups, kubeconfig, leftovers, mounts, network, processes, sockets
from tests.cluster.errors import ClusterError
from tests.cluster.state import State
from tests.cluster.up import STARTED, only_one
from tests.support.gotools import Say

# Its orderly end takes a minute, and nothing of it is kept.
_AT_ONCE = ("kube-apiserver", "etcd")


def down(state: State, *, say: Say) -> bool:
    """End everything and remove every trace; false if there was nothing. ``say`` gets progress lines.

    Raises:
        ClusterError: something is left behind, and what.
    """
    with only_one(say=say):
        if not state.folder.exists():
            return False
        kubeconfig.remove(state)
        say("stopping the programs")
        for name in [*STARTED, *(other for other in processes.names(state) if other not in STARTED)]:
            processes.stop(state, name, grace_seconds=0.0 if name in _AT_ONCE else 3.0)
        say("ending the pods")
        for pid in leftovers.shims(state):
            with suppress(ProcessLookupError):
                kill(pid, signal.SIGKILL)
        cgroups.kill_all()
        cgroups.remove()
        mounts.detach_below(state.folder)
        say("taking back the network's rules")
        network.remove(state)
        record = state.load()
        for folder in record.created:
            mounts.detach_below(Path(folder))
            shutil.rmtree(folder, ignore_errors=True)
        sockets.remove_dead()
        remaining = leftovers.find(state)
        if not remaining:
            shutil.rmtree(state.folder)
            remaining = [f"folder {state.folder}"] if state.folder.exists() else []
        if remaining:
            raise ClusterError("left behind:\n" + "\n".join(f"  * {item}" for item in remaining))
        return True
