"""A small workflow of the shapes that the compiler emits, accepted by every check of Argo's.

The tests of those checks break it in one way at a time: a check that never says no proves nothing.
"""

from __future__ import annotations

from typing import Any

import yaml

GOOD_WORKFLOW = """
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata:
  generateName: run-
  labels: {argo-harbor/plan: 0123456789abcdef}
  annotations: {workflows.argoproj.io/title: hello · oracle · 2 tasks}
spec:
  entrypoint: main
  onExit: merge
  parallelism: 20
  templates:
  - name: main
    dag:
      failFast: false
      tasks:
      - {name: build-x, template: work, arguments: {parameters: [{name: index, value: "0"}]}}
      - name: first
        template: work
        depends: build-x.Succeeded
        withSequence: {count: "2"}
        arguments: {parameters: [{name: index, value: "1"}]}
  - name: work
    inputs: {parameters: [{name: index}]}
    activeDeadlineSeconds: 3600
    retryStrategy: {limit: "2", retryPolicy: Always, expression: "asInt(lastRetry.exitCode) == 75"}
    podSpecPatch: '{"enableServiceLinks": false}'
    container:
      image: registry.example/runner:1
      command: [python, -m, argo_harbor.runner]
      args: [trial, "{{inputs.parameters.index}}"]
      ports: [{containerPort: 80}]
      resources: {limits: {cpu: 2, memory: 1Gi}}
    outputs:
      artifacts: [{name: record, path: /out, optional: true, archive: {none: {}}, s3: {key: "{{pod.name}}"}}]
  - name: merge
    container: {image: registry.example/runner:1, command: [python], args: ["{{workflow.name}}"]}
"""


def good_workflow() -> dict[str, Any]:
    """A fresh copy, to be changed at will."""
    document: dict[str, Any] = yaml.safe_load(GOOD_WORKFLOW)
    return document
