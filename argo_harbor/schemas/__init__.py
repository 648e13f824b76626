"""The published JSON Schemas: one file a document, generated from the models.

`python -m argo_harbor.schemas` rewrites the files; a test compares them with the models.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from argo_harbor.model import documents
from argo_harbor.model.base import Model
from argo_harbor.model.build import BuildRecord
from argo_harbor.model.build_plan import BuildPlan
from argo_harbor.model.bundle import (
    Manifest,
    Metadata,
    RunFacts,
    RunFile,
    ScoreRow,
    Summary,
    TaskRow,
    TrialRow,
)
from argo_harbor.model.plan import PlanHead, TaskPlan
from argo_harbor.model.platform import Platform
from argo_harbor.model.profile import Profile
from argo_harbor.model.record import AgentHalf, TrialRecord, TrialStarted
from argo_harbor.model.run_state import RunState
from argo_harbor.model.spec import RunSpec
from argo_harbor.model.taskset import StoredTaskset
from argo_harbor.schemas.describe import describe

FOLDER = Path(__file__).parent


class Published(NamedTuple):
    model: type[Model]
    mode: Literal["validation", "serialization"]
    """`validation` for what users write: defaults may be left out."""


def _written(model: type[Model]) -> Published:
    return Published(model, "serialization")


PUBLISHED: Mapping[str, Published] = {
    "platform-1": Published(Platform, "validation"),
    "profile-1": Published(Profile, "validation"),
    "spec-1": Published(RunSpec, "validation"),
    "plan-1": _written(PlanHead),
    "task-1": _written(TaskPlan),
    "started-1": _written(TrialStarted),
    "trial-1": _written(TrialRecord),
    "agent-1": _written(AgentHalf),
    "build-1": _written(BuildRecord),
    "builds-1": _written(BuildPlan),
    "state-1": _written(RunState),
    "taskset-1": _written(StoredTaskset),
    "bundle-run-1": _written(RunFile),
    "bundle-metadata-1": _written(Metadata),
    "bundle-task-1": _written(TaskRow),
    "bundle-trial-1": _written(TrialRow),
    "bundle-score-1": _written(ScoreRow),
    "bundle-summary-1": _written(Summary),
    "run-facts-1": _written(RunFacts),
    "manifest-1": _written(Manifest),
    "run-document-1": _written(documents.RunDocument),
    "runs-document-1": _written(documents.RunsDocument),
    "tasks-document-1": _written(documents.TasksDocument),
    "results-document-1": _written(documents.ResultsDocument),
    "compile-document-1": _written(documents.CompileDocument),
    "task-list-document-1": _written(documents.TaskListDocument),
    "taskset-create-document-1": _written(documents.TasksetCreateDocument),
    "tasksets-document-1": _written(documents.TasksetsDocument),
    "taskset-document-1": _written(documents.TasksetDocument),
    "build-images-document-1": _written(documents.BuildImagesDocument),
    "dry-run-document-1": _written(documents.DryRunDocument),
    "verify-document-1": _written(documents.VerifyDocument),
    "profiles-document-1": _written(documents.ProfilesDocument),
    "profile-document-1": _written(documents.ProfileDocument),
    "check-document-1": _written(documents.CheckDocument),
    "config-document-1": _written(documents.ConfigDocument),
    "download-document-1": _written(documents.DownloadDocument),
    "logs-document-1": _written(documents.LogsDocument),
    "install-document-1": _written(documents.InstallDocument),
    "doctor-document-1": _written(documents.DoctorDocument),
    "error-document-1": _written(documents.ErrorDocument),
}
"""By file name without `.json`."""


def schema_text(name: str) -> str:
    """The schema of one document as its file holds it. Raises KeyError for an unknown name."""
    model, mode = PUBLISHED[name]
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:argo-harbor:schema:{name}",
        **model.model_json_schema(by_alias=True, mode=mode),
    }
    describe(schema, model)
    return json.dumps(schema, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def write_all(folder: Path = FOLDER) -> list[str]:
    """Write every schema, remove the files of schemas that are gone, and name what is there now."""
    for old in folder.glob("*.json"):
        if old.stem not in PUBLISHED:
            old.unlink()
    for name in PUBLISHED:
        (folder / f"{name}.json").write_text(schema_text(name), encoding="utf-8")
    return sorted(PUBLISHED)
