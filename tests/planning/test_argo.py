from __future__ import annotations

from argo_harbor.planning.argo import argo_findings
from tests.planning.support import plan_of, spec


def test_a_plan_that_can_be_compiled() -> None:
    assert argo_findings(plan_of({"verifier": {"environment_mode": "separate"}})) == []
    assert argo_findings(plan_of({"steps": [{"name": "one"}]})) == []


def test_steps_with_a_separate_verifier() -> None:
    steps = [{"name": "one"}, {"name": "two", "verifier": {"environment_mode": "separate"}}]
    found = argo_findings(plan_of({"steps": steps}))
    assert [(item.code, item.task, item.file) for item in found] == [
        ("separate_verifier_steps_unsupported", "acme/hello", "hello/task.toml")
    ]


def test_variables_of_the_submitting_shell() -> None:
    request = spec(
        target={"source": {"name": "oracle"}, "env": {"A": "host:B", "C": "lit:x"}},
        verifier={"env": {"D": "host:E"}},
    )
    found = argo_findings(plan_of(request=request))
    assert [(item.code, item.key) for item in found] == [
        ("invalid_spec", "spec.target.env.A"),
        ("invalid_spec", "spec.verifier.env.D"),
    ]
    assert "secret:NAME/A" in found[0].hint
