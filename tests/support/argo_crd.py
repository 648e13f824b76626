"""The custom resource definitions of Argo Workflows, applied in Python as the API server applies them.

``argo lint`` knows few of the limits that live in these definitions (list sizes, lengths, CEL rules), and the
API server drops unknown fields without a word, so an emitted workflow is held against them here, strictly.
The definitions come from the same pinned Go module as the ``argo`` program.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft7Validator

from tests.support import argo_pod_patch, argo_rules, gotools

Schema = dict[str, Any]

INTEGER_RANGES = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}


KINDS: Mapping[str, str] = {
    "Workflow": "workflows",
    "WorkflowTemplate": "workflowtemplates",
    "CronWorkflow": "cronworkflows",
}
"""The kinds that the compiler can emit, with their plurals."""


class CrdValidator:
    """Holds objects of one kind against its definition."""

    def __init__(self, definition: Schema, *, kind: str) -> None:
        """Take ``definition``, the ``openAPIV3Schema`` of ``kind``."""
        self._kind = kind
        self._definition = {**definition, "properties": {**definition["properties"]}}
        # The controller's business: what is emitted has no status, so one that does is refused as unknown.
        self._definition["properties"].pop("status", None)
        schema = _as_json_schema(self._definition, at_root=True)
        self._schema = Draft7Validator(schema)
        spec = schema["properties"]["spec"]
        self._pod = Draft7Validator(argo_pod_patch.pod_schema(spec["properties"].get("workflowSpec", spec)))

    def errors(self, document: object) -> list[str]:
        """Return everything the API server would refuse or drop, as ``path: message``.

        So it is with the pod patches, as if they were part of the object.
        """
        findings = _findings(self._schema, document)
        if findings or not isinstance(document, dict):
            # The rules below, like those of the API server, presuppose the types that the schema asks for.
            return findings
        if (document["apiVersion"], document["kind"]) != (argo_rules.API_VERSION, self._kind):
            findings.append(f"(root): not a {self._kind} of {argo_rules.API_VERSION}")
        findings += argo_rules.metadata_errors(document["metadata"])
        findings += _structural_errors(document, self._definition, "")
        findings += self._patch_errors(document["spec"].get("workflowSpec", document["spec"]))
        return findings

    def _patch_errors(self, workflow_spec: dict[str, Any]) -> Iterator[str]:
        for place, patch in argo_pod_patch.patches(workflow_spec):
            try:
                pod = argo_pod_patch.filled_in(patch)
            except yaml.YAMLError as error:
                yield f"{place}: {error}"
            else:
                findings = _findings(self._pod, pod) or argo_pod_patch.order_errors(pod)
                yield from (f"{place}: {finding}" for finding in findings)


def cel_rules(definition: Schema) -> Iterator[str]:
    """Yield the text of every CEL rule in ``definition``, once for each place it stands."""
    for rule in definition.get("x-kubernetes-validations", []):
        yield rule["rule"]
    for child in _children(definition):
        yield from cel_rules(child)


def load_schema(tool: gotools.GoTool, kind: str, *, say: gotools.Say) -> Schema:
    """Return the ``openAPIV3Schema`` of ``kind`` from the module that ``tool`` is built from.

    The YAML takes seconds to parse, so the cache keeps it as JSON, without the descriptions.

    Raises:
        ToolUnavailable: it is not in the cache, and there is no Go or one too old.
        ToolBuildFailed: fetching failed.
    """
    cached = gotools.tool_folder(tool) / f"crd-{KINDS[kind]}.json"
    if not cached.exists():
        gotools.require_go(tool)
        with gotools.locked(tool, say=say):
            if not cached.exists():
                say(f"reading the CRD of {kind} {tool.version}")
                _extract_schema(gotools.module_source(tool), kind=kind, to=cached)
    schema: Schema = json.loads(cached.read_text())
    return schema


def _extract_schema(source: Path, *, kind: str, to: Path) -> None:
    with (source / f"manifests/base/crds/full/argoproj.io_{KINDS[kind]}.yaml").open() as stream:
        definition = yaml.load(stream, Loader=yaml.CSafeLoader)
    [version] = definition["spec"]["versions"]
    unfinished = to.with_suffix(".new")
    unfinished.write_text(json.dumps(_without_descriptions(version["schema"]["openAPIV3Schema"])))
    unfinished.replace(to)


def _without_descriptions(node: Schema) -> Schema:
    return _rebuilt(
        {key: value for key, value in node.items() if key != "description"}, _without_descriptions
    )


def _as_json_schema(node: Schema, *, at_root: bool = False) -> Schema:
    """Turn a structural schema into JSON Schema: closed objects, integer ranges, anchors as in Go."""
    result = _rebuilt(node, _as_json_schema)
    if (
        node.get("type") == "object"
        and not {"additionalProperties", "x-kubernetes-preserve-unknown-fields"} & node.keys()
    ):
        result["additionalProperties"] = False
    if at_root:
        # The API server knows the fields of the metadata itself; argo_rules checks them.
        result["properties"]["metadata"] = {"type": "object"}
        result["required"] = ["apiVersion", "kind", *node.get("required", [])]
    elif "required" in node:
        # Defaults are filled in before anything is found missing.
        properties = node["properties"]
        result["required"] = [name for name in node["required"] if "default" not in properties[name]]
    if node.get("type") == "integer" and node.get("format") in INTEGER_RANGES:
        lowest, highest = INTEGER_RANGES[node["format"]]
        result.setdefault("minimum", lowest)
        result.setdefault("maximum", highest)
    if node.get("pattern", "").endswith("$"):
        # In Python, `$` also matches before a last line feed.
        result["pattern"] = node["pattern"][:-1] + r"\Z"
    return result


def _structural_errors(value: object, schema: Schema, path: str) -> Iterator[str]:
    """Yield breaches of what JSON Schema cannot say: CEL rules, and lists that are maps by key."""
    for rule in schema.get("x-kubernetes-validations", []):
        if not argo_rules.holds(rule["rule"], value):
            yield f"{path}: {rule['message']}"
    if isinstance(value, list):
        if "x-kubernetes-list-map-keys" in schema:
            yield from _duplicates(value, schema, path)
        for index, item in enumerate(value):
            yield from _structural_errors(item, schema.get("items", {}), f"{path}[{index}]")
    elif isinstance(value, dict):
        for key, item in value.items():
            child = schema.get("properties", {}).get(key) or schema.get("additionalProperties")
            if isinstance(child, dict):
                yield from _structural_errors(item, child, f"{path}.{key}" if path else key)


def _duplicates(items: list[dict[str, Any]], schema: Schema, path: str) -> Iterator[str]:
    properties = schema["items"]["properties"]
    keys = Counter(
        tuple(
            (key, item.get(key, properties[key].get("default")))
            for key in schema["x-kubernetes-list-map-keys"]
        )
        for item in items
    )
    for key, count in keys.items():
        if count > 1:
            yield f"{path}: {count} items with {', '.join(f'{name} {value!r}' for name, value in key)}"


def _rebuilt(node: Schema, transform: Callable[[Schema], Schema]) -> Schema:
    """Copy ``node`` with ``transform`` applied to every schema directly inside it."""
    result = dict(node)
    if "properties" in node:
        result["properties"] = {name: transform(child) for name, child in node["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(node.get(key), dict):
            result[key] = transform(node[key])
    return result


def _children(node: Schema) -> Iterator[Schema]:
    yield from node.get("properties", {}).values()
    for key in ("items", "additionalProperties"):
        if isinstance(node.get(key), dict):
            yield node[key]


def _findings(schema: Draft7Validator, value: object) -> list[str]:
    return [f"{_path(error.absolute_path)}: {_short(error.message)}" for error in schema.iter_errors(value)]


def _path(parts: Iterable[str | int]) -> str:
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)
    return path.lstrip(".") or "(root)"


def _short(message: str) -> str:
    """Shorten a message that quotes a whole list or template, from the middle: its end says what is wrong."""
    return message if len(message) <= 300 else f"{message[:100]} … {message[-160:]}"
