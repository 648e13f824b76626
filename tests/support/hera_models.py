"""Writes ``argo_harbor/workflow/objects.py``: the Argo and Kubernetes objects that the compiler emits, as
TypedDicts.

hera's models are generated from Argo's own API description. Importing them takes longer than a whole
compile may, so the compiler only takes their field names and types, which mypy checks; the tests hold every
emitted object against the models themselves. ``python -m tests.support.hera_models`` rewrites the file, a
test compares.
"""

from __future__ import annotations

import keyword
import sys
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hera.workflows import models
from pydantic import BaseModel
from pydantic.fields import FieldInfo

OBJECTS = Path(__file__).resolve().parents[2] / "argo_harbor" / "workflow" / "objects.py"

EMITTED = (
    "Workflow",
    "WorkflowTemplate",
    "CronWorkflow",
    "ObjectMeta",
    "WorkflowSpec",
    "CronWorkflowSpec",
    "WorkflowMetadata",
    "Metadata",
    "Arguments",
    "Parameter",
    "ArtifactRepositoryRef",
    "ExecutorConfig",
    "LocalObjectReference",
    "PodGC",
    "TTLStrategy",
    "Template",
    "Inputs",
    "Outputs",
    "Artifact",
    "ArchiveStrategy",
    "NoneStrategy",
    "RetryStrategy",
    "DAGTemplate",
    "DAGTask",
    "Sequence",
    "ResourceTemplate",
    "Container",
    "UserContainer",
    "ResourceRequirements",
    "EnvVar",
    "EnvVarSource",
    "ObjectFieldSelector",
    "SecretKeySelector",
    "Probe",
    "ExecAction",
    "HTTPGetAction",
    "HTTPHeader",
    "SecurityContext",
    "PodSecurityContext",
    "Capabilities",
    "SeccompProfile",
    "Toleration",
    "Volume",
    "VolumeMount",
    "EmptyDirVolumeSource",
    "ConfigMapVolumeSource",
    "SecretVolumeSource",
    "KeyToPath",
    "HostAlias",
    "Synchronization",
    "Mutex",
)
"""Models by hera's name. A field of a type that is not listed is left out, so that nothing can be written
into it."""

HEADER = '''"""The Argo and Kubernetes objects that the compiler emits, as types for mypy. Generated; do not
edit.

Made from hera's models by `python -m tests.support.hera_models`: hera is the source of every name and type
here and the judge of every emitted object in the tests, but importing it takes seconds, which a compile must
not. Fields whose type is not among these classes are left out: the compiler never writes them.
"""

from __future__ import annotations

from typing import TypedDict
'''


def source() -> str:
    """The text of ``objects.py``."""
    return HEADER + "".join(_class(name) for name in EMITTED)


def model(name: str) -> type[BaseModel]:
    """hera's model behind an emitted class."""
    # hera gives the core class another name where Argo has one of the same name.
    found: type[BaseModel] = getattr(models, f"V1{name}", None) or getattr(models, name)
    return found


def fields(name: str) -> Iterator[tuple[str, FieldInfo, str]]:
    """Each field of an emitted class: its key in an object, hera's description of it, its type as written."""
    for attribute, field in model(name).model_fields.items():
        key = field.alias or attribute
        written = _written(field.annotation)
        if written and key.isidentifier() and not keyword.iskeyword(key):
            yield key, field, written


def root_type(annotation: object) -> object:
    """What stands in the object for a model that only wraps a value, such as Quantity; else the
    annotation."""
    if (
        isinstance(annotation, type)
        and issubclass(annotation, BaseModel)
        and "root" in annotation.model_fields
    ):
        return annotation.model_fields["root"].annotation
    return annotation


def _class(name: str) -> str:
    lines = [f"    {key}: {written}" for key, _, written in fields(name)]
    return "\n\n" + "\n".join([f"class {name}(TypedDict, total=False):", *(lines or ["    pass"])]) + "\n"


def _written(annotation: Any) -> str:
    """A type as it is written in the file; empty when a class that is not emitted is part of it."""
    annotation = root_type(annotation)
    if annotation in (str, int, float, bool):
        return str(annotation.__name__)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation.__name__ if annotation.__name__ in EMITTED else ""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _written(arguments[0])
    if origin in (typing.Union, types.UnionType):
        parts = [_written(part) for part in arguments if part is not type(None)]
        return " | ".join(parts) if all(parts) else ""
    if origin in (list, dict):
        parts = [_written(part) for part in arguments]
        return f"{origin.__name__}[{', '.join(parts)}]" if all(parts) else ""
    return ""


if __name__ == "__main__":
    OBJECTS.write_text(source())
    print(f"wrote {OBJECTS.relative_to(Path.cwd())}", file=sys.stderr)
