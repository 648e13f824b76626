"""``python -m tests.cluster up | down | status | images``: the real cluster that tests run on. Needs root."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from tests.cluster import leftovers
from tests.cluster.down import down
from tests.cluster.errors import ClusterError, MachineUnfit
from tests.cluster.state import State
from tests.cluster.status import Status, status
from tests.cluster.up import refresh_images, up
from tests.support.gotools import ToolBuildFailed, ToolUnavailable

EXIT_UNFIT = 3


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status: 0 done, 1 failed or not up, 3 this machine cannot hold a cluster."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in (
        ("up", "start it, unless it runs"),
        ("down", "end it and remove every trace"),
        ("status", "what runs, and how to use it"),
        ("images", "push images whose sources changed, and let the cluster use them"),
        ("leftovers", "list what a cluster left on this machine"),
    ):
        commands.add_parser(name, help=text).add_argument("--json", action="store_true")
    chosen = parser.parse_args(arguments)
    try:
        return _run(chosen.command, as_json=chosen.json)
    except (MachineUnfit, ToolUnavailable) as unfit:
        print(unfit, file=sys.stderr)
        return EXIT_UNFIT
    except (ClusterError, ToolBuildFailed) as failure:
        print(failure, file=sys.stderr)
        return 1


def _run(command: str, *, as_json: bool) -> int:
    state = State.here()
    if command == "leftovers":
        found = leftovers.find(state)
        print(json.dumps(found) if as_json else "\n".join(found) or "nothing is left behind")
        return 1 if found else 0
    if command == "images":
        refresh_images(state, say=_say)
    if command == "up" and not up(state, say=_say):
        _say("the cluster is up")
    if command == "down":
        _say("the cluster is gone" if down(state, say=_say) else "there is no cluster")
        return 0
    found_status = status(state)
    print(json.dumps(found_status.document(), indent=2) if as_json else _text(found_status))
    return 0 if found_status.up else 1


def _text(found: Status) -> str:
    if not found.up:
        return found.reason
    cluster = found.cluster
    return f"""
The cluster is up. kubectl, argo and argo-harbor find it: context {cluster.context} is the current one.

  kubeconfig   {cluster.kubeconfig}
  platform     {cluster.platform} (installed in namespace {cluster.namespace})
  S3           {cluster.store_endpoint}, bucket {cluster.store_bucket}, keys: status --json
  registry     {cluster.registry}, with a password {cluster.private_registry}
  logs         {cluster.state.logs}
  programs     {cluster.programs}

Try it:  argo-harbor runs submit --harbor-dir examples/hello-world --agent oracle --watch
End it:  make cluster-down"""


def _say(line: str) -> None:
    # Progress is no part of the answer.
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
