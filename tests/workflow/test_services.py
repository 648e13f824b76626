"""Containers beside the sandbox: where they stand, what they get, and that their text is only ever text."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from argo_harbor.model.plan import (
    Amounts,
    Grant,
    Grants,
    ImagePlan,
    Resources,
    RunPlan,
    ServicePlan,
    ServiceVariable,
    TaskPlan,
)
from argo_harbor.model.services import HealthProbe, ServiceMount
from argo_harbor.workflow.compile import compile_workflow
from argo_harbor.workflow.emit import to_yaml
from argo_harbor.workflow.text import Foreign, escaped, foreign, verbatim
from tests.support.plans import built, prebuilt, run_plan, task_plan

TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"))
TRICKY = st.lists(
    st.one_of(
        TEXT, st.sampled_from(["{{", "}}", "{{workflow.name}}", "$(HOME)", "$", "$$", "\\u007b", '"', "\n"])
    )
).map("".join)
SMALL = Amounts(cpus=0.25, memory_mb=512, storage_mb=1024)


def service(name: str = "db", image: ImagePlan | None = None, **fields: Any) -> ServicePlan:
    size = Resources(request=SMALL, limit=SMALL)
    return ServicePlan(name=name, image=image or prebuilt("postgres:17"), resources=size, **fields)


def with_services(*services: ServicePlan, index: int = 0, **fields: Any) -> TaskPlan:
    return task_plan(index).model_copy(update={"services": services, **fields})


def compiled(*parts: TaskPlan, grants: Grants | None = None, **fields: Any) -> list[Any]:
    return compile_workflow(run_plan(parts, grants=grants, **fields), host_variables=True)


def template(workflow: Any, role: str = "trial-") -> Any:
    [found] = [each for each in workflow["spec"]["templates"] if each["name"].startswith(role)]
    return found


def pod(workflow: Any, role: str = "trial-") -> Any:
    """The pod patch as a node gets it."""
    return yaml.safe_load(template(workflow, role)["podSpecPatch"])


def container(workflow: Any, name: str = "service-db") -> Any:
    [found] = [each for each in pod(workflow)["initContainers"] if each["name"] == name]
    return found


def expanded(text: str) -> str:
    """What a node makes of a command or variable in which nothing is defined: Kubernetes' own rule."""
    return re.sub(r"\$(\$|\([^)]*\)|.)", lambda found: "$" if found[1] == "$" else found[0], text, flags=re.S)


@given(TRICKY)
def test_text_reaches_a_container_as_it_is_and_argo_finds_nothing_in_it(text: str) -> None:
    fields = {
        "entrypoint": (text,),
        "command": (text, text),
        "environment": (ServiceVariable(name="A", text=text),),
    }
    probe = HealthProbe(command=(text,), period_seconds=1, timeout_seconds=1, failures=1)
    [workflow] = compiled(with_services(service(probe=probe, working_dir=f"/{text}", **fields)))
    patch = template(workflow)["podSpecPatch"]
    own = r"\{\{(?:inputs\.parameters\.image|workflow\.uid)\}\}"
    assert "{{" not in re.sub(own, "", patch)
    assert "}}" not in re.sub(own, "", patch)
    made = container(workflow)
    assert expanded(made["command"][0]) == text
    assert [expanded(each) for each in made["args"]] == [text, text]
    assert [(each["name"], expanded(each["value"])) for each in made["env"]] == [("A", text)]
    assert expanded(made["startupProbe"]["exec"]["command"][0]) == text
    assert made["workingDir"] == f"/{text}"


@given(TRICKY)
def test_escaped_text_is_plain_and_reads_back(text: str) -> None:
    written = escaped(text)
    assert re.fullmatch(r'"(?:[A-Za-z0-9._/:@-]|\\u[0-9a-f]{4}|\\U[0-9a-f]{8})*"', written)
    assert yaml.safe_load(written) == text
    assert yaml.safe_load(to_yaml({"a": [Foreign(text)]})) == {"a": [text]}
    assert verbatim(text) == text
    assert expanded(foreign(text)) == text


def test_services_stand_between_the_fence_and_the_sandbox_in_their_order() -> None:
    services = (service("db"), service("seed", once=True), service("web"))
    [workflow] = compiled(with_services(*services))
    patch = pod(workflow)
    names = ["execd-installer", "egress", "service-db", "service-seed", "service-web", "sandbox"]
    assert [each["name"] for each in patch["initContainers"]] == names
    assert [each["name"] for each in patch["$setElementOrder/initContainers"]] == ["init", *names]
    assert patch["hostAliases"] == [{"ip": "127.0.0.1", "hostnames": ["main", "db", "seed", "web"]}]
    assert patch["terminationGracePeriodSeconds"] == 60
    assert [each.get("restartPolicy") for each in patch["initContainers"]] == [
        None,
        "Always",
        "Always",
        None,
        "Always",
        "Always",
    ]


def test_a_service_gets_what_the_sandbox_gets_and_nothing_of_ours() -> None:
    [workflow] = compiled(with_services(service(user=1000, group=0)))
    made, sandbox = container(workflow), container(workflow, "sandbox")
    shared = ("seccompProfile", "capabilities")
    assert {key: made["securityContext"][key] for key in shared} == {
        key: sandbox["securityContext"][key] for key in shared
    }
    assert made["securityContext"]["runAsUser"] == 1000
    assert made["securityContext"]["runAsGroup"] == 0
    assert made["volumeMounts"] == []
    assert made["resources"]["requests"] == {
        "cpu": "250m",
        "memory": "512Mi",
        "ephemeral-storage": "1024Mi",
    }
    assert "command" not in made
    assert "args" not in made


def test_granted_variables_come_from_where_the_grant_says() -> None:
    grants = Grants(
        target=(
            Grant(name="FROM_SHELL", kind="host", value="FROM_SHELL"),
            Grant(name="LITERAL", kind="lit", value="{{=1+1}} $(A)"),
            Grant(name="TOKEN", kind="secret", value="tokens/api"),
        )
    )
    variables = tuple(
        ServiceVariable(name=f"V{n}", granted=each.name) for n, each in enumerate(grants.target)
    )
    [workflow] = compiled(with_services(service(environment=variables)), grants=grants)
    shell, literal, token = container(workflow)["env"]
    assert shell["valueFrom"]["secretKeyRef"] == {"name": "{{workflow.name}}-host", "key": "FROM_SHELL"}
    assert expanded(literal["value"]) == "{{=1+1}} $(A)"
    assert token["valueFrom"]["secretKeyRef"] == {"name": "tokens", "key": "api"}


def test_shared_folders_are_volumes_of_the_pod() -> None:
    data = ServiceMount(path="/data", volume="data")
    memory = ServiceMount(path="/dev/shm", size_mb=64)
    first = service("a", mounts=(data, memory))
    second = service("b", mounts=(data.model_copy(update={"path": "/in", "read_only": True}),))
    [workflow] = compiled(with_services(first, second, main_mounts=(data,)))
    made = {each["name"]: each for each in template(workflow)["volumes"]}
    assert made["shared-0"] == {"name": "shared-0", "emptyDir": {}}
    assert made["shared-1"] == {"name": "shared-1", "emptyDir": {"medium": "Memory", "sizeLimit": "64Mi"}}
    assert container(workflow, "sandbox")["volumeMounts"][-1] == {"name": "shared-0", "mountPath": "/data"}
    assert container(workflow, "service-a")["volumeMounts"] == [
        {"name": "shared-0", "mountPath": "/data"},
        {"name": "shared-1", "mountPath": "/dev/shm"},
    ]
    assert container(workflow, "service-b")["volumeMounts"] == [
        {"name": "shared-0", "mountPath": "/in", "readOnly": True}
    ]


def test_images_of_services_are_built_before_the_trial() -> None:
    part = with_services(service("web", built("web")), service("worker", built("web")))
    [workflow] = compiled(part)
    entries = {
        entry["name"]: entry
        for each in workflow["spec"]["templates"]
        for entry in each.get("dag", {}).get("tasks", ())
    }
    assert "build-task-0000-service-web" in entries
    assert "build-task-0000-service-worker" not in entries
    trial = entries["task-0000"]
    assert "build-task-0000-service-web.Succeeded" in trial["depends"]
    assert [each["name"] for each in trial["arguments"]["parameters"]] == ["index", "image"]


def test_a_separate_verifier_stands_alone() -> None:
    part = task_plan(0, verifier_image=prebuilt("v:1")).model_copy(update={"services": (service(),)})
    [workflow] = compiled(part)
    assert "hostAliases" in pod(workflow, "agent-")
    assert "hostAliases" not in pod(workflow, "verify-")


def test_tasks_with_the_same_services_share_a_template_and_others_do_not() -> None:
    parts = [with_services(service(), index=0), with_services(service(), index=1)]
    parts += [with_services(service(command=("x",)), index=2), task_plan(3)]
    [workflow] = compiled(*parts)
    found = [each["name"] for each in workflow["spec"]["templates"] if each["name"].startswith("trial-")]
    assert len(found) == len(set(found)) == 3


@pytest.fixture(scope="module")
def many() -> RunPlan:
    """More different compose tasks than a workflow takes templates, and as many plain ones."""
    parts = [with_services(service(command=(f"{{{{{index}}}}}",)), index=index) for index in range(300)]
    return run_plan([*parts, *(task_plan(300 + n, seconds=1000 + n) for n in range(200))])


def test_more_kinds_of_pods_than_templates_are_split(many: RunPlan) -> None:
    parent, *parts = compile_workflow(many)
    assert len(parts) >= 2
    for part in parts:
        assert len(part["spec"]["templates"]) <= 200
    names = {each["name"] for part in parts for each in part["spec"]["templates"]}
    assert len([name for name in names if name.startswith("trial-") and name != "trial-none"]) == 300
    assert "trial-none" in names
    assert parent["spec"]["templates"]
