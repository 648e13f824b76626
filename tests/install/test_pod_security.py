"""The namespace warns where a pod asks for more than "baseline": only two containers of ours do."""

from __future__ import annotations

import yaml

from argo_harbor.workflow.compile import compile_workflow
from tests.support import plans
from tests.support.pod_security import baseline_findings
from tests.support.workflows import spec_of, templates


def test_egress_and_the_build_daemon_are_the_only_findings() -> None:
    (document,) = compile_workflow(plans.example_plan("mixed"))
    spec = spec_of(document)
    findings: set[str] = set()
    pods = 0
    for template in templates(document).values():
        if "container" not in template:
            continue
        patch = yaml.safe_load(template.get("podSpecPatch") or "{}")
        containers = [template["container"], *patch.get("initContainers", ()), *patch.get("containers", ())]
        volumes = [*spec.get("volumes", ()), *template.get("volumes", ())]
        pod = {**patch, "volumes": volumes, "securityContext": spec.get("securityContext")}
        findings |= set(baseline_findings(pod, containers))
        pods += 1
    assert pods > 2
    assert findings == {"egress: NET_ADMIN", "buildkitd: privileged"}
