"""What a trial pod is made of: who gets which secret, which right and which volume."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

from argo_harbor.model.plan import RunPlan
from argo_harbor.model.profile import Profile
from argo_harbor.workflow import names
from argo_harbor.workflow.build import builds
from argo_harbor.workflow.compile import compile_workflow
from argo_harbor.workflow.tasks import planned_tasks
from tests.support import workflows
from tests.support.kubernetes_models import kept
from tests.support.plans import built, prebuilt, resources, run_plan, task_plan
from tests.workflow.test_goldens import three

Object = dict[str, Any]


def templates(plan: RunPlan) -> dict[str, Object]:
    return workflows.templates(dict(compile_workflow(plan)[0]))


def trial_templates(plan: RunPlan) -> dict[str, Object]:
    return {name: each for name, each in templates(plan).items() if "sandbox" in each.get("podSpecPatch", "")}


def patch_of(template: Object) -> Object:
    found: Object = yaml.safe_load(template["podSpecPatch"])
    return found


def container(template: Object, name: str) -> Object:
    [found] = [each for each in patch_of(template)["initContainers"] if each["name"] == name]
    return dict(found)


def role(template: Object) -> str:
    return str(template["container"]["args"][0])


ALL = list(trial_templates(three()).values())
ROLES = sorted({role(each) for each in ALL})


def of_role(wanted: str) -> Object:
    return next(each for each in ALL if role(each) == wanted)


@pytest.mark.parametrize("template", ALL, ids=role)
def test_the_patch_is_a_pod_of_kubernetes(template: Object) -> None:
    text = re.sub(r"\{\{.*?\}\}", "1m", template["podSpecPatch"])
    pod = yaml.safe_load(text)
    order = [each["name"] for each in pod.pop("$setElementOrder/initContainers")]
    assert order == ["init", "execd-installer", "egress", "sandbox"]
    assert [each["name"] for each in pod["initContainers"]] == order[1:]
    # The model asks for the list that only a whole pod has.
    pod["containers"] = []
    assert kept("V1PodSpec", pod) == pod


@pytest.mark.parametrize("template", ALL, ids=role)
def test_side_containers_start_before_the_runner_and_end_after_it(template: Object) -> None:
    assert "restartPolicy" not in container(template, "execd-installer")
    for name in ("egress", "sandbox"):
        side = container(template, name)
        assert side["restartPolicy"] == "Always"
        assert "startupProbe" in side
        assert side["command"]
    assert not {"sidecars", "initContainers"} & template.keys()


@pytest.mark.parametrize("template", ALL, ids=role)
def test_the_sandbox_has_no_secret_and_no_right(template: Object) -> None:
    sandbox = container(template, "sandbox")
    assert [mount["name"] for mount in sandbox["volumeMounts"]] == ["opensandbox"]
    assert not [each for each in sandbox["env"] if "valueFrom" in each]
    security = sandbox["securityContext"]
    assert {"NET_RAW", "NET_ADMIN", "SYS_ADMIN", "SYS_PTRACE", "MKNOD"} <= set(
        security["capabilities"]["drop"]
    )
    assert "add" not in security["capabilities"]
    assert "privileged" not in json.dumps(patch_of(template))
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}


@pytest.mark.parametrize("template", ALL, ids=role)
def test_only_runner_and_egress_see_the_egress_token(template: Object) -> None:
    holders = {
        each["name"]: {mount["name"]: mount for mount in each["volumeMounts"]}
        for each in [*patch_of(template)["initContainers"], {**template["container"], "name": "main"}]
    }
    assert {name for name, mounts in holders.items() if "egress-token" in mounts} == {
        "execd-installer",
        "egress",
        "main",
    }
    [volume] = [each for each in template["volumes"] if each["name"] == "egress-token"]
    assert volume["emptyDir"]["medium"] == "Memory"


@pytest.mark.parametrize("template", ALL, ids=role)
def test_probe_and_execd_know_the_same_token(template: Object) -> None:
    sandbox = container(template, "sandbox")
    env = {each["name"]: each["value"] for each in sandbox["env"]}
    [header] = sandbox["startupProbe"]["httpGet"]["httpHeaders"]
    assert header == {"name": "X-EXECD-ACCESS-TOKEN", "value": env["EXECD_ACCESS_TOKEN"]}
    runner = {each["name"]: each.get("value") for each in template["container"]["env"]}
    assert runner[names.EXECD_TOKEN_ENV] == env["EXECD_ACCESS_TOKEN"]


@pytest.mark.parametrize("template", ALL, ids=role)
def test_egress_starts_closed(template: Object) -> None:
    env = {each["name"]: each["value"] for each in container(template, "egress")["env"]}
    rules = json.loads(env["OPENSANDBOX_EGRESS_RULES"])
    assert rules["defaultAction"] == "deny"
    assert rules["egress"][0] == {"action": "allow", "target": "$(KUBERNETES_SERVICE_HOST)"}
    assert env["OPENSANDBOX_EGRESS_MODE"] == "dns+nft"


def test_the_runner_is_told_what_to_run() -> None:
    plan = three()
    assert ROLES == ["agent", "trial", "verify"]
    for each in ALL:
        assert each["container"]["command"] == ["python", "-m", "argo_harbor.runner"]
        assert each["container"]["args"] == [
            *(role(each), "--plan", plan.digest, "--run", "{{workflow.name}}"),
            *("--task", "{{inputs.parameters.index}}", "--attempt", "{{inputs.parameters.attempt}}"),
            *("--try", "{{retries}}"),
        ]
        fields = {
            env["name"]: env["valueFrom"]["fieldRef"]["fieldPath"]
            for env in each["container"]["env"]
            if "fieldRef" in env.get("valueFrom", {})
        }
        assert fields[names.POD_UID_ENV] == "metadata.uid"
        assert each["metadata"]["labels"]["argo-harbor/task-index"] == "{{inputs.parameters.index}}"
        assert each["metadata"]["labels"]["argo-harbor/attempt"] == "{{inputs.parameters.attempt}}"


def test_grants_go_where_they_belong() -> None:
    def granted(wanted: str) -> dict[str, Object]:
        return {
            each["name"]: each["valueFrom"]["secretKeyRef"]
            for each in of_role(wanted)["container"]["env"]
            if "secretKeyRef" in each.get("valueFrom", {})
        }

    target = {"ARGO_HARBOR_GRANT_API_TOKEN": {"name": "tokens", "key": "api"}}
    verifier = {"ARGO_HARBOR_GRANT_GRADER_KEY": {"name": "tokens", "key": "grader"}}
    assert granted("agent") == target
    assert granted("trial") == granted("verify") == target | verifier


def test_literal_values_stay_in_the_plan() -> None:
    [document] = compile_workflow(three())
    assert "MOTTO" not in json.dumps(document)
    assert "ZONE" not in json.dumps(document)


def test_the_models_key_is_a_file_of_agents_alone() -> None:
    for wanted, has in (("agent", True), ("trial", True), ("verify", False)):
        volumes = {each["name"]: each for each in of_role(wanted)["volumes"]}
        assert ("model" in volumes) == has
    volumes = {each["name"]: each for each in of_role("agent")["volumes"]}
    assert volumes["model"]["secret"] == {
        "secretName": "llm-gateway",
        "items": [{"key": "api-key", "path": "api_key"}],
    }


def test_profile_settings_reach_the_pod() -> None:
    template = of_role("trial")
    assert template["nodeSelector"] == {"pool": "sandboxes"}
    assert template["tolerations"] == [
        {"operator": "Equal", "key": "sandbox", "value": "yes", "effect": "NoSchedule"},
        {"operator": "Exists"},
    ]
    assert patch_of(template)["runtimeClassName"] == "gvisor"
    gpus = [each for each in ALL if "nvidia.com/gpu" in each["podSpecPatch"]]
    [template] = gpus
    assert container(template, "sandbox")["resources"] == {
        "requests": {
            "cpu": "500m",
            "memory": "2048Mi",
            "ephemeral-storage": "10240Mi",
            "nvidia.com/gpu": "1",
        },
        "limits": {"cpu": "1500m", "memory": "6144Mi", "ephemeral-storage": "10240Mi", "nvidia.com/gpu": "1"},
    }


def test_fractions_of_a_core_are_rounded_up() -> None:
    [template] = trial_templates(run_plan([task_plan(0, sandbox=resources(cpus=0.1234))])).values()
    assert container(template, "sandbox")["resources"]["requests"]["cpu"] == "124m"


def test_tasks_of_one_shape_share_a_template() -> None:
    parts = [
        task_plan(0, image=built("a")),
        task_plan(1, image=prebuilt()),
        task_plan(2, network="public"),
        task_plan(3, seconds=99),
        task_plan(4, sandbox=resources(memory_mb=4096)),
    ]
    found = trial_templates(run_plan(parts))
    assert len(found) == 4
    assert sorted(each["activeDeadlineSeconds"] for each in found.values()) == [99, 1800, 1800, 1800]
    assert sorted(each["metadata"]["labels"][names.NET_LABEL] for each in found.values()) == [
        "internet",
        "none",
        "none",
        "none",
    ]


def test_very_many_shapes_become_parameters() -> None:
    parts = [
        task_plan(
            index,
            sandbox=resources(memory_mb=1024 + index),
            seconds=1000 + index,
            verifier_image=built("tests") if index % 2 else None,
        )
        for index in range(160)
    ]
    plan = run_plan(parts)
    found = trial_templates(plan)
    assert sorted(found) == ["agent-none", "trial-none", "verify-none"]
    assert found["trial-none"]["activeDeadlineSeconds"] == "{{inputs.parameters.deadline}}"
    [document] = compile_workflow(plan)
    entry = next(each for _, each in workflows.entries(dict(document)) if each["name"] == "task-0007")
    assert entry["template"] == "trial-verified-none-none"
    assert workflows.arguments(entry) == {
        "index": "7",
        "image": "docker.io/library/ubuntu:24.04",
        "verifier-image": built("tests").reference,
        **{"cpu": "1000m", "memory": "1031Mi", "storage": "10240Mi"},
        **{"cpu-limit": "3000m", "memory-limit": "3093Mi", "storage-limit": "10240Mi", "deadline": "1007"},
        **{"verifier-cpu": "1000m", "verifier-memory": "1031Mi", "verifier-storage": "10240Mi"},
        **{"verifier-cpu-limit": "3000m", "verifier-memory-limit": "3093Mi"},
        **{"verifier-storage-limit": "10240Mi", "verifier-deadline": "503"},
    }
    limits = container(found["verify-none"], "sandbox")["resources"]["limits"]
    assert limits["memory"] == "{{inputs.parameters.memory-limit}}"


def test_gpus_of_very_many_shapes() -> None:
    parts = [
        task_plan(index, sandbox=resources(memory_mb=1024 + index, gpus=index % 2)) for index in range(160)
    ]
    plan = run_plan(parts, profile=Profile(name="lab", gpu="nvidia.com/gpu"))
    [template] = trial_templates(plan).values()
    requests = container(template, "sandbox")["resources"]["requests"]
    assert requests["nvidia.com/gpu"] == "{{inputs.parameters.gpus}}"
    [document] = compile_workflow(plan)
    wanted = [workflows.arguments(entry)["gpus"] for _, entry in workflows.trial_entries(dict(document))]
    assert sorted(wanted) == ["0"] * 80 + ["1"] * 80


def test_builds_are_named_after_their_first_task() -> None:
    parts = [
        task_plan(0, image=built("a"), verifier_image=built("tests")),
        task_plan(1, image=built("b")),
        task_plan(2, image=built("c")),
        task_plan(3, image=built("a")),
    ]
    found = builds(planned_tasks(run_plan(parts, dag_names=["x", "x-verifier", "y" * 60, "z"])))
    keys = {name: built(name).key for name in ("a", "tests", "b", "c")}
    assert {build.key: build.name for build in found.values()} == {
        keys["a"]: "build-x",
        keys["tests"]: "build-x-verifier",
        keys["b"]: f"build-x-verifier-{keys['b'][:8]}",
        keys["c"]: f"build-{'y' * 48}-{keys['c'][:8]}",
    }
    assert [(build.task, build.side) for build in found.values()] == [
        (0, "agent"),
        (0, "verifier"),
        (1, "agent"),
        (2, "agent"),
    ]


def test_only_builds_are_privileged_and_hold_the_registrys_key() -> None:
    found = templates(three())
    privileged = {name for name, each in found.items() if "privileged: true" in each.get("podSpecPatch", "")}
    assert privileged == {"build"}
    build = found["build"]
    logins = {each["name"]: each["secret"]["secretName"] for each in build["volumes"] if "secret" in each}
    assert logins == {"registry-0": "registry-push", "registry-1": "registry-pull"}
    assert logins.keys() <= {mount["name"] for mount in build["container"]["volumeMounts"]}
    for beside in patch_of(build)["initContainers"]:
        assert not logins.keys() & {mount["name"] for mount in beside["volumeMounts"]}
    assert found["build"]["metadata"]["labels"][names.NET_LABEL] == "build"
    assert not [each for each in templates(run_plan([task_plan(0)])) if each == "build"]


def test_accounts() -> None:
    [document] = compile_workflow(three())
    spec = dict(document)["spec"]
    assert spec["serviceAccountName"] == "argo-harbor-trial"
    assert spec["automountServiceAccountToken"] is False
    assert spec["executor"] == {"serviceAccountName": "argo-harbor-executor"}
    assert spec["imagePullSecrets"] == [{"name": "registry-pull"}]
    with_token = {
        name: each["serviceAccountName"]
        for name, each in templates(three()).items()
        if each.get("automountServiceAccountToken")
    }
    assert with_token == {"merge": "argo-harbor-merge"}


def test_retries() -> None:
    for each in ALL:
        assert each["retryStrategy"] == {
            "limit": "1",
            "retryPolicy": "Always",
            "expression": "!(lastRetry.message contains 'deadline') && (lastRetry.status == 'Error' "
            "|| asInt(lastRetry.exitCode) in [-1, 75, 137, 143, 255])",
        }
