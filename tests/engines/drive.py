"""Runs a suite on the local engine in a process of its own: `python -m tests.engines.drive SUITE ROOT …`.

Events go to standard output, one JSON object a line, so that a test can wait for them and send signals.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from pathlib import Path

from argo_harbor.engines.base import RunInterrupted, SubmitOptions
from argo_harbor.engines.events import Event
from argo_harbor.engines.local import LocalEngine
from argo_harbor.model.spec import RunSpec
from argo_harbor.planning.plan import plan
from argo_harbor.sources.read import load_taskset


def show(event: Event) -> None:
    data = {
        field.name: getattr(event, field.name)
        for field in dataclasses.fields(event)
        if field.name != "record"
    }
    # What is no plain value is of no use to a test in another process.
    print(json.dumps({"event": type(event).__name__, **data}, default=str), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("suite")
    parser.add_argument("root", type=Path)
    parser.add_argument("--agent", default="oracle")
    given = parser.parse_args()
    taskset = load_taskset(given.suite)
    engine = LocalEngine.open(given.root)
    try:
        planned = plan(taskset, RunSpec.for_agent(given.agent))
        run = engine.submit(planned, taskset, options=SubmitOptions(base="preview"), progress=show)
    except RunInterrupted as stopped:
        print(json.dumps({"event": "Interrupted", "run": stopped.run_id}), flush=True)
        return 130
    print(json.dumps({"event": "Merged", "run": run}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
