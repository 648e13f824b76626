"""What the API server checks of a workflow beyond types: the CEL rules of its definition, and its metadata.

There is no CEL interpreter among the test tools, so each rule is written again in Python under its own text.
A rule that is not listed, because a newer definition brought it, is an error and not a silent gap. Used by
:mod:`tests.support.argo_crd`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

API_VERSION = "argoproj.io/v1alpha1"

TEMPLATE_TYPES = (
    "container",
    "script",
    "dag",
    "steps",
    "resource",
    "suspend",
    "containerSet",
    "data",
    "http",
    "plugin",
)
ARTIFACT_LOCATIONS = ("s3", "git", "http", "artifactory", "hdfs", "raw", "oss", "gcs", "azure", "plugin")

METADATA_FIELDS = {
    "name",
    "generateName",
    "namespace",
    "labels",
    "annotations",
    "finalizers",
    "ownerReferences",
}
# https://kubernetes.io/docs/concepts/overview/working-with-objects/ (names, labels, annotations)
OBJECT_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
LABEL_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
ANNOTATION_BYTES = 256 * 1024
# Argo copies the name into a label of every pod.
WORKFLOW_NAME_LENGTH = 63


def _at_most_one(value: Mapping[str, Any], names: tuple[str, ...]) -> bool:
    return sum(name in value for name in names) <= 1


def _is_group(template: Mapping[str, Any]) -> bool:
    return "dag" in template or "steps" in template


def _sum_of(prefix: str, names: tuple[str, ...]) -> str:
    return " + ".join(f"(has({prefix}.{name}) ? 1 : 0)" for name in names)


RULES: Mapping[str, Callable[[Any], bool]] = {
    f"{_sum_of('self', ARTIFACT_LOCATIONS)} <= 1": lambda artifact: _at_most_one(
        artifact, ARTIFACT_LOCATIONS
    ),
    f"self.all(t, {_sum_of('t', TEMPLATE_TYPES)} <= 1)": lambda templates: all(
        _at_most_one(template, TEMPLATE_TYPES) for template in templates
    ),
    'self.all(t, !(has(t.timeout) && t.timeout != "" && (has(t.steps) || has(t.dag))))': lambda templates: (
        not any(template.get("timeout") and _is_group(template) for template in templates)
    ),
    "self.all(t, !(has(t.activeDeadlineSeconds) && (has(t.steps) || has(t.dag))))": lambda templates: (
        not any("activeDeadlineSeconds" in template and _is_group(template) for template in templates)
    ),
    "!has(self.depends) || !has(self.dependencies)": lambda task: (
        not {"depends", "dependencies"} <= task.keys()
    ),
    "!has(self.depends) || !has(self.continueOn)": lambda task: not {"depends", "continueOn"} <= task.keys(),
    "!(has(self.depends) || has(self.dependencies)) || !self.name.matches('^[0-9]')": lambda task: (
        not ({"depends", "dependencies"} & task.keys() and re.match("[0-9]", task["name"]))
    ),
    "!(has(self.count) && has(self.end))": lambda sequence: not {"count", "end"} <= sequence.keys(),
    "(has(self.manifest) && !has(self.manifestFrom)) || (!has(self.manifest) && has(self.manifestFrom))"
    " || (!has(self.manifest) && !has(self.manifestFrom))": lambda resource: (
        not ({"manifest", "manifestFrom"} <= resource.keys())
    ),
    "!has(self.realtime) || !self.realtime || !self.value.contains('resourcesDuration.')": lambda gauge: (
        not (gauge.get("realtime") and "resourcesDuration." in gauge["value"])
    ),
}


def holds(rule: str, value: object) -> bool:
    """Whether ``value`` obeys the CEL ``rule``.

    Raises:
        LookupError: nobody has written this rule in Python yet.
    """
    if rule not in RULES:
        raise LookupError(f"unknown CEL rule, add it to {__name__}.RULES: {rule}")
    return RULES[rule](value)


def metadata_errors(metadata: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the API server, or Argo right after it, refuses in the metadata of a workflow."""
    for unknown in sorted(metadata.keys() - METADATA_FIELDS):
        yield f"metadata: field {unknown!r} is unknown or not the author's to set"
    name, prefix = metadata.get("name"), metadata.get("generateName")
    if not (name or prefix):
        yield "metadata: neither name nor generateName"
    # What the server appends to the prefix is five letters and digits.
    for text in filter(None, (name, f"{prefix}abcde" if prefix else None)):
        if not OBJECT_NAME.fullmatch(text) or len(text) > WORKFLOW_NAME_LENGTH:
            yield f"metadata: {text!r} is no name of at most {WORKFLOW_NAME_LENGTH} characters"
    for key, value in metadata.get("labels", {}).items():
        yield from _key_errors("labels", key)
        if value and not LABEL_NAME.fullmatch(value):
            yield f"metadata.labels.{key}: {value!r} is no label value"
    annotations = metadata.get("annotations", {})
    for key in annotations:
        yield from _key_errors("annotations", key)
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > ANNOTATION_BYTES:
        yield f"metadata.annotations: more than {ANNOTATION_BYTES} bytes"


def _key_errors(field: str, key: str) -> Iterator[str]:
    domain, slash, name = key.rpartition("/")
    if not LABEL_NAME.fullmatch(name) or (slash and (not OBJECT_NAME.fullmatch(domain) or len(domain) > 253)):
        yield f"metadata.{field}: {key!r} is no qualified name"
