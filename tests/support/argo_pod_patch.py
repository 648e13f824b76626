"""Checks the pod patches inside a workflow, which neither ``argo lint`` nor the API server looks into.

To both, ``podSpecPatch`` is just text. The controller merges it into every pod, and what is misspelt there
shows as a pod that lacks a container or a limit. The definition of Workflow describes the parts of a pod too,
only elsewhere: :mod:`tests.support.argo_crd` hands them in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

Schema = dict[str, Any]

# Parts of a pod that the template of a workflow has under the same name.
FROM_TEMPLATE = (
    "affinity",
    "automountServiceAccountToken",
    "hostAliases",
    "initContainers",
    "nodeSelector",
    "priorityClassName",
    "schedulerName",
    "securityContext",
    "serviceAccountName",
    "tolerations",
    "volumes",
)
FROM_SPEC = ("dnsConfig", "dnsPolicy", "hostNetwork", "imagePullSecrets")
# Parts that only a patch can set.
# https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/
PATCH_ONLY: Schema = {
    "enableServiceLinks": {"type": "boolean"},
    "hostUsers": {"type": "boolean"},
    "runtimeClassName": {"type": "string", "minLength": 1},
    "shareProcessNamespace": {"type": "boolean"},
    "terminationGracePeriodSeconds": {"type": "integer", "minimum": 0},
}

# https://kubernetes.io/docs/reference/using-api/api-concepts/#patch-strategic-merge
ORDER = "$setElementOrder/"
ORDERED_LISTS = ("initContainers", "containers")
ORDER_SCHEMA: Schema = {
    "type": "array",
    "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
}

# A text, an image and a quantity at once, so that it may stand for any parameter.
STAND_IN = "1m"


def pod_schema(workflow_spec: Schema) -> Schema:
    """Put together the JSON Schema of a pod patch from that of the ``spec`` of a workflow."""
    spec = workflow_spec["properties"]
    template = spec["templates"]["items"]["properties"]
    properties = {
        **{name: template[name] for name in FROM_TEMPLATE},
        **{name: spec[name] for name in FROM_SPEC},
        **{f"{ORDER}{name}": ORDER_SCHEMA for name in ORDERED_LISTS},
        **PATCH_ONLY,
        "containers": template["initContainers"],
    }
    return {"type": "object", "additionalProperties": False, "properties": properties}


def patches(workflow_spec: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield every pod patch of a workflow with its place."""
    if "podSpecPatch" in workflow_spec:
        yield "podSpecPatch", workflow_spec["podSpecPatch"]
    for index, template in enumerate(workflow_spec.get("templates", [])):
        if "podSpecPatch" in template:
            yield f"templates[{index}].podSpecPatch", template["podSpecPatch"]


def filled_in(patch: str) -> Any:
    """Parse a patch, YAML or JSON, with a stand-in for every ``{{…}}``.

    Raises:
        yaml.YAMLError: it is neither.
    """
    return yaml.load(re.sub(r"\{\{.*?\}\}", STAND_IN, patch), Loader=yaml.CSafeLoader)


def order_errors(pod: dict[str, Any]) -> Iterator[str]:
    """Yield the lists of a well-formed patch whose own order contradicts the one it asks for.

    The merge fails on these, when the pod is made and not before.
    """
    for name in ORDERED_LISTS:
        order = [item["name"] for item in pod.get(f"{ORDER}{name}", [])]
        patched = [item["name"] for item in pod.get(name, [])]
        if order and patched != [item for item in order if item in patched]:
            yield f"{name}: {patched} do not stand in the order {order}"
