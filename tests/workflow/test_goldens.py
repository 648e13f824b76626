"""What the compiler writes today, for the examples in full, for generated suites by numbers."""

from __future__ import annotations

import pytest

from argo_harbor.model.plan import AgentPlan, Grant, Grants, ModelPlan, RunPlan
from argo_harbor.model.platform import Platform
from argo_harbor.model.profile import Profile, Toleration
from argo_harbor.workflow.compile import compile_workflow
from tests.support import large, workflows
from tests.support.plans import built, example_plan, prebuilt, resources, run_plan, task_plan
from tests.workflow.conftest import Compare


def three() -> RunPlan:
    """Three tasks that between them use whatever a plan can ask for: a canary, attempts, a separate verifier,
    a GPU, grants, a model, and every setting of profile and platform that reaches a pod."""
    tests = built("tests of grade")
    parts = [
        task_plan(0, name="acme/build", image=built("build"), network="public"),
        task_plan(4, name="acme/grade", image=built("build"), verifier_image=tests, network="hosts"),
        task_plan(7, name="acme/train", image=prebuilt(), sandbox=resources(cpus=0.5, gpus=1)),
    ]
    platform = Platform.from_data(
        {
            "schema": "platform-1",
            "namespace": "evaluations",
            "registry": "registry.tools.svc:5000/argo-harbor",
            "store": {"endpoint": "http://minio.storage.svc.cluster.local:9000"},
            "network": {
                "node_cidrs": ["192.168.10.0/24"],
                "api_server": ["192.168.10.11:6443"],
                "resolvers": ["192.168.10.2"],
            },
            "secrets": {"image_pull": ["registry-pull"], "registry": "registry-push"},
        }
    )
    return run_plan(
        parts,
        dag_names=["task-build", "grade", "train"],
        attempts=2,
        canary=[0],
        cap=5,
        taskset="three",
        agent=AgentPlan(
            name="terminus-2",
            calls_model=True,
            model=ModelPlan(
                ref="coder",
                base_url="http://10.96.7.7:8000/v1",
                model="coder-large",
                provider="openai",
                secret="llm-gateway/api-key",
                hosts=("10.96.7.7",),
                closed_book=True,
            ),
        ),
        grants=Grants(
            target=(
                Grant(name="API_TOKEN", kind="secret", value="tokens/api"),
                Grant(name="MOTTO", kind="lit", value="{{workflow.name}}"),
                Grant(name="ZONE", kind="runtime", value="ZONE"),
            ),
            verifier=(Grant(name="GRADER_KEY", kind="secret", value="tokens/grader"),),
        ),
        platform=platform,
        profile=Profile(
            name="lab",
            gpu="nvidia.com/gpu",
            runtime_class="gvisor",
            node_selector={"pool": "sandboxes"},
            tolerations=(
                Toleration(key="sandbox", value="yes", effect="NoSchedule"),
                Toleration(operator="Exists"),
            ),
        ),
    )


def whole(plan: RunPlan, **options: str) -> workflows.Object:
    [document] = compile_workflow(plan, **options)  # type: ignore[arg-type]  # kinds by name
    return workflows.without_digests(dict(document), plan)


@pytest.mark.parametrize("name", ["hello-world", "mixed", "allowlist", "compose"])
def test_examples(name: str, golden: Compare) -> None:
    golden(f"{name}.yaml", whole(example_plan(name)))


def test_three(golden: Compare) -> None:
    golden("three.yaml", whole(three()))


@pytest.mark.parametrize("kind", ["workflowtemplate", "cronworkflow"])
def test_three_to_run_many_times(kind: str, golden: Compare) -> None:
    schedule = {"schedule": "0 3 * * 1"} if kind == "cronworkflow" else {}
    golden(f"three-{kind}.yaml", whole(three(), kind=kind, **schedule))


def test_large(golden: Compare) -> None:
    golden("large.json", {suite.name: large.summary(suite) for suite in large.SUITES})


def test_a_run_of_a_thousand_tasks_and_five_attempts_is_split() -> None:
    parent, *parts = large.compiled(large.SPLIT)
    assert len(parts) > 1
    shards = [entry for _, entry in workflows.entries(parent) if entry["template"] == "shard"]
    assert [workflows.arguments(entry)["part"] for entry in shards] == [f"{n:03}" for n in range(len(parts))]
    assert all("onExit" not in part["spec"] for part in parts)
