"""Services of a task in its plan: images, resources, variables, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from argo_harbor.errors import Finding, Refused
from argo_harbor.model.plan import RunPlan, ServiceVariable, TaskPlan
from argo_harbor.model.platform import Platform
from argo_harbor.model.profile import Profile
from argo_harbor.model.services import Compose, HealthProbe, Service, ServiceMount, ServiceValue
from argo_harbor.model.spec import RunSpec
from argo_harbor.model.taskset import ImageSource, Task
from argo_harbor.planning.builds import plan_builds
from argo_harbor.planning.local import local_findings
from argo_harbor.planning.plan import plan
from tests.planning.support import OPEN, SITE, places, spec
from tests.support.tasks import make_task, make_taskset, sha

FILE = "hello/environment/docker-compose.yaml"
MIRRORED = Platform.from_data({"registry": "r.example/harbor", "base_image_mirror": "m.example/hub"})


def service(name: str = "db", image: str = "postgres:17", **fields: Any) -> Service:
    source = ImageSource(kind="prebuilt", reference=image) if image else built(name)
    return Service(name=name, image=source, **fields)


def built(name: str) -> ImageSource:
    return ImageSource(
        kind="dockerfile",
        context=f"environment/{name}",
        environment_digest=sha(name),
        target="final",
        own_arguments=(("FLAVOUR", "plain"),),
        arguments=("FLAVOUR",),
    )


def task(*services: Service, config: dict[str, Any] | None = None, **fields: Any) -> Task:
    return replace(make_task(config=config), compose=Compose(services=services, **fields))


def planned(made: Task, **options: Any) -> RunPlan:
    request = options.pop("request", None) or spec()
    return plan(make_taskset(made), request, **{"platform": SITE, "profile": OPEN, **options})


def part(made: Task, **options: Any) -> TaskPlan:
    return planned(made, **options).parts[0]


def refused(made: Task, **options: Any) -> tuple[Finding, ...]:
    with pytest.raises(Refused) as caught:
        part(made, **options)
    return caught.value.items


def granting(**env: str) -> RunSpec:
    return spec(target={"env": env})


def test_a_service_is_planned_with_its_image_and_resources() -> None:
    probe = HealthProbe(command=("true",), period_seconds=1, timeout_seconds=1, failures=3)
    mount = ServiceMount(path="/data", volume="data")
    first = service("db", command=("x",), probe=probe, mounts=(mount,), user=1, group=2, working_dir="/w")
    made = part(task(first, service("web", "", cpus=0.5, memory_mb=100)), platform=MIRRORED)
    db, web = made.services
    assert db.image.reference == "m.example/hub/library/postgres:17"
    assert (db.command, db.probe, db.mounts, db.user, db.group) == (("x",), probe, (mount,), 1, 2)
    assert (db.resources.request.cpus, db.resources.request.memory_mb) == (0.25, 512)
    assert (db.resources.limit.cpus, db.resources.limit.memory_mb) == (0.75, 1536)
    assert (web.resources.request.cpus, web.resources.request.memory_mb) == (0.5, 100)
    assert web.image.kind == "build"
    assert (web.image.context, web.image.target) == ("environment/web", "final")
    assert web.image.arguments == (("FLAVOUR", "plain"),)
    assert set(made.sides) == {"agent", "service-db", "service-web"}


def test_the_images_of_services_can_be_built_before_any_run() -> None:
    builds = plan_builds(make_taskset(task(service("web", ""))), platform=SITE, profile=OPEN)
    assert [image.side for image in builds.images] == ["agent", "service-web"]
    broken = task(findings=(Finding("invalid_compose_file", "no", "do", file="x", key="services.a"),))
    with pytest.raises(Refused):
        plan_builds(make_taskset(broken), platform=SITE, profile=OPEN)


VALUES = (
    ServiceValue("DEFAULTED", "d", "DEFAULTED"),
    ServiceValue("LITERAL", "${l}"),
    ServiceValue("NAMED", None, "TOKEN"),
    ServiceValue("PASSED", None, "PASSED", optional=True),
)


def test_variables_take_what_is_granted_else_their_default() -> None:
    made = part(task(service(environment=VALUES)), request=granting(TOKEN="lit:t"))
    assert made.services[0].environment == (
        ServiceVariable(name="DEFAULTED", text="d"),
        ServiceVariable(name="LITERAL", text="${l}"),
        ServiceVariable(name="NAMED", granted="TOKEN"),
    )
    everything = part(
        task(service(environment=VALUES)),
        request=granting(TOKEN="lit:t", PASSED="host:P", DEFAULTED="secret:a/b"),
    )
    assert [each.granted for each in everything.services[0].environment] == [
        "DEFAULTED",
        "",
        "TOKEN",
        "PASSED",
    ]
    assert everything.env.environment == ("DEFAULTED", "PASSED", "TOKEN")


def test_a_variable_that_nobody_grants_is_refused() -> None:
    found = refused(task(service(environment=VALUES)))
    assert [(item.code, item.file, item.key) for item in found] == [
        ("env_not_granted", FILE, "services.db.environment.NAMED")
    ]
    assert "spec.target.env" in found[0].hint
    assert "TOKEN: host:TOKEN" in found[0].hint
    assert "lit:VALUE" in found[0].hint


def test_a_variable_of_the_runner_s_container_reaches_main_only() -> None:
    request = granting(TOKEN="runtime:ZONE")
    assert places(refused(task(service(environment=VALUES)), request=request)) == [
        ("env_not_granted", "services.db.environment.NAMED")
    ]
    made = part(task(environment=VALUES), request=request)
    assert made.main_environment[-1] == ServiceVariable(name="NAMED", granted="TOKEN")


def test_what_main_gets_stands_in_the_plan() -> None:
    mount = ServiceMount(path="/data", volume="data")
    made = part(task(service(), mounts=(mount,), working_dir="/srv"))
    assert (made.main_mounts, made.images.agent.workdir) == ((mount,), "/srv")
    own = task(service(), working_dir="/srv", config={"environment": {"workdir": "/own"}})
    assert part(own).images.agent.workdir == "/own"


def test_findings_of_the_file_refuse_the_task_and_can_be_skipped() -> None:
    finding = Finding("invalid_compose_file", "says no", "do", file="x", key="services.a.privileged")
    broken = task(findings=(finding,))
    found = refused(broken)
    assert [(item.code, item.file, item.key, item.message) for item in found] == [
        ("invalid_compose_file", FILE, "services.a.privileged", "says no")
    ]
    good = make_task("acme/good", index=1)
    skipped = plan(make_taskset(broken, good), spec(), platform=SITE, profile=OPEN, skip_refused=True)
    assert [entry.skipped and entry.skipped.code for entry in skipped.head.tasks] == [
        "invalid_compose_file",
        None,
    ]


def test_main_and_services_together_stay_below_the_ceilings() -> None:
    small = Profile(name="small", max_cpus=1.0, max_memory_mb=4096)
    config = {"environment": {"cpus": 1, "memory_mb": 1024, "network_mode": "no-network"}}
    found = refused(task(service(cpus=0.5), service("b", "x"), config=config), profile=small)
    assert [(item.code, item.file, item.key) for item in found] == [
        ("resources_exceed_policy", FILE, "services")
    ]
    assert "sandbox (1) and its services (db 0.5, b 0.25) are together above 1" in found[0].message


def test_a_service_alone_above_the_ceiling_is_refused() -> None:
    assert places(refused(task(service(memory_mb=100_000)))) == [("resources_exceed_policy", "services")]


def test_an_image_that_is_no_reference_is_refused_at_its_place() -> None:
    assert places(refused(task(service(image="a b")))) == [("invalid_task_config", "services.db.image")]


@pytest.mark.parametrize("name", ["minio", "llm", "api"])
def test_a_service_takes_no_name_of_the_platform(name: str) -> None:
    site = Platform.from_data(
        {
            "store": {"endpoint": "http://minio:9000"},
            "models": {"m": {"base_url": "http://llm:8000/v1", "model": "m"}},
            "network": {"api_server": ["api:6443"]},
        }
    )
    assert places(refused(task(service(name)), platform=site)) == [
        ("invalid_compose_file", f"services.{name}")
    ]


def test_texts_that_no_pod_can_hold_are_refused() -> None:
    assert part(task(service(command=("x" * 50_000,)))).services
    assert places(refused(task(service(command=("{" * 9_000,))))) == [("invalid_compose_file", "services")]


def test_the_services_of_a_task_with_steps_stay_for_all_of_them() -> None:
    made = task(service(), config={"steps": [{"name": "one"}, {"name": "two"}]})
    planned_part = part(made)
    assert [step.name for step in planned_part.steps] == ["one", "two"]
    assert [each.name for each in planned_part.services] == ["db"]


def test_a_task_with_services_is_a_kind_of_its_own_for_the_canary() -> None:
    members = [make_task(f"acme/t{number}", index=number) for number in range(3)]
    beside = replace(make_task("acme/t3", index=3), compose=Compose(services=(service(),)))
    made = plan(make_taskset(*members, beside), spec(canary=2), platform=SITE, profile=OPEN)
    assert made.head.canary == (0, 3)


def separate(bundles: bool) -> Iterator[Task]:
    made = task(service(), config={"verifier": {"environment_mode": "separate"}})
    image = replace(made.agent_image, bundles_tests=bundles)
    yield replace(made, verifier_image=image)


def test_a_separate_verifier_needs_an_image_of_its_own() -> None:
    (own,) = separate(True)
    assert part(own).images.verifier is not None
    (shared,) = separate(False)
    assert places(refused(shared)) == [("invalid_compose_file", "")]


def test_on_one_machine_a_sandbox_is_alone() -> None:
    closed = Profile(name="closed")
    made = planned(task(service()), profile=closed)
    assert [(item.code, item.file) for item in local_findings(made)] == [("invalid_compose_file", FILE)]
    assert local_findings(planned(task(environment=(ServiceValue("A", "b"),)), profile=closed)) == []
