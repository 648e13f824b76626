"""Where a trial's files lie in the bundle, and what each is called there. Pure.

Names of descriptors follow the reference bundle: `logs`, `verifier_logs`, `trace`, `config`, `result`,
`trial_dir`, and `json:`, `log:`, `artifact:`, `trace:` with the file's path.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from argo_harbor.model.bundle import EVIDENCE, Evidence, EvidenceSet
from argo_harbor.model.record import TrialRecord

MAX_LINKS = 4
"""Shown beside a trial in the report; all of its files are in `trials.jsonl` and below its folder."""

_LABELS = {"logs": "log", "verifier_logs": "verifier", "trace:atif": "trajectory", "agent_logs": "agent"}


class Link(NamedTuple):
    """One file of a trial that a reader of the report wants first."""

    label: str
    ref: str


def folder_of(record: TrialRecord) -> str:
    """Folder of the trial's evidence, relative to the bundle, without a trailing slash."""
    return f"{EVIDENCE}/{record.ref.index}/{record.ref.attempt}"


def evidence_of(record: TrialRecord) -> EvidenceSet:
    """Every file of the deciding try. The refs are right once the files are copied to `folder_of`."""
    root = folder_of(record)
    descriptors = {}
    if record.files:
        descriptors["trial_dir"] = Evidence(
            kind="directory", ref=root, description="all files of the deciding try"
        )
    for path in sorted(record.files):
        for name, kind, form in names_of(path):
            descriptors.setdefault(name, Evidence(kind=kind, ref=f"{root}/{path}", format=form))
    links = [{"path": link.path, "target": link.target} for link in record.links]
    return EvidenceSet(descriptors=descriptors, metadata={"links": links} if links else {})


class Descriptor(NamedTuple):
    name: str
    kind: str
    format: str


@lru_cache(maxsize=4096)
def names_of(path: str) -> tuple[Descriptor, ...]:
    """The descriptors of one file of a try: its well-known name, if it has one, and its general one."""
    folders, _, name = path.rpartition("/")
    parts = folders.split("/")
    form = "json" if name.endswith(".json") else "text"
    if "artifacts" in parts:
        return (Descriptor(f"artifact:{path}", "artifact", form if form == "json" else "binary"),)
    if name == "trajectory.json":
        return (Descriptor("trace:atif", "trace", "atif"), Descriptor(f"trace:{path}", "trace", "atif"))
    found = [
        Descriptor(f"json:{path}", "json", form) if form == "json" else Descriptor(f"log:{path}", "log", form)
    ]
    if name == "result.json" and "verifier" not in parts:
        found.insert(0, Descriptor("result", "json", form))
    elif name == "config.json" and "verifier" not in parts:
        found.insert(0, Descriptor("config", "json", form))
    elif name in ("trial.log", "runner.log", "job.log"):
        found.insert(0, Descriptor("logs", "log", form))
    elif parts[-1] == "verifier" and name.startswith("test-stdout"):
        found.insert(0, Descriptor("verifier_logs", "log", form))
    elif parts[-1] == "agent" and name.endswith((".txt", ".log")):
        found.insert(0, Descriptor("agent_logs", "log", form))
    return tuple(found)


def links_of(record: TrialRecord) -> tuple[Link, ...]:
    """The files that the report links to: log, agent's and verifier's output, trajectory."""
    root = folder_of(record)
    found: dict[str, Link] = {}
    for path in sorted(record.files):
        for descriptor in names_of(path):
            if descriptor.name in _LABELS:
                label = _LABELS[descriptor.name]
                found.setdefault(label, Link(label, f"{root}/{path}"))
    return tuple(found.values())[:MAX_LINKS]
