"""Who drives a run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from argo_harbor.engines.request import owner_lives, process_identity, write_request
from argo_harbor.model.plan import RunPlan
from argo_harbor.model.spec import RunSpec
from argo_harbor.planning.plan import plan
from argo_harbor.store import layout
from argo_harbor.store.directory import DirectoryStore
from tests.support.tasks import make_taskset

RUN = "run-0123456789abcdef"


def planned() -> RunPlan:
    return plan(make_taskset(), RunSpec.for_agent("nop"))


def test_the_request_names_plan_and_taskset_and_extra_fields_cannot_replace_them(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    made = planned()
    write_request(
        store, RUN, made, base="preview", submitted_at="2026-01-02T03:04:05Z", more={"rerun": "x", "run": "y"}
    )
    request = json.loads(store.get(layout.request(RUN)))
    assert (request["run"], request["rerun"]) == (RUN, "x")
    assert (request["plan_digest"], request["taskset_ref"]) == (made.digest, made.head.taskset.ref)
    assert owner_lives(store, RUN)


def test_a_pid_alone_is_no_owner(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    assert not owner_lives(store, RUN)
    owner = {"pid": os.getpid(), "identity": "another boot/1"}
    for text in (b"{}", b"[]", b"no json", json.dumps({"owner": owner}).encode()):
        store.put(layout.request(RUN), text)
        assert not owner_lives(store, RUN)


def test_a_process_that_has_ended_has_no_identity() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    first = process_identity(process.pid)
    assert first
    assert first != process_identity(os.getpid())
    process.communicate(b"\n")
    assert process_identity(process.pid) == ""
