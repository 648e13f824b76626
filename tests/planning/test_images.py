from __future__ import annotations

from dataclasses import replace

import pytest

from argo_harbor.model.build import BuildInputs
from argo_harbor.model.plan import ImagePlan
from argo_harbor.model.taskset import ImageSource, VariableBases
from argo_harbor.planning.build_inputs import NO_INPUTS
from argo_harbor.planning.images import ImagePlanner, image_key
from argo_harbor.planning.plan import plan
from argo_harbor.planning.report import Report
from tests.planning.support import OPEN, SITE, part_of, places, spec
from tests.support.tasks import make_task, make_taskset, sha

BUILT = ImageSource(
    kind="dockerfile", context="environment", environment_digest=sha("a"), executables=("run.sh",)
)


def test_a_build_is_named_by_its_key() -> None:
    image = part_of().images.agent
    assert image.kind == "build"
    assert len(image.key) == 64
    assert image.reference == f"registry.invalid/argo-harbor/env:{image.key[:32]}"
    assert (image.context, image.bases, image.workdir) == ("environment", ("ubuntu:24.04",), "/app")


def test_what_the_key_depends_on() -> None:
    key = image_key(BUILT)
    assert key == image_key(replace(BUILT, context="tests", bases=("other:1",), workdir="/x"))
    assert key != image_key(replace(BUILT, environment_digest=sha("b")))
    assert key != image_key(replace(BUILT, executables=()))


def test_tasks_that_share_an_environment_share_an_image() -> None:
    tasks = [make_task(f"acme/t{n}", index=n, environment="same" if n < 2 else "other") for n in range(3)]
    made = plan(make_taskset(*tasks), spec(), platform=SITE, profile=OPEN)
    keys = [part.images.agent.key for part in made.parts]
    assert keys[0] == keys[1] != keys[2]


def test_a_prebuilt_image_is_taken_as_named() -> None:
    config = {"environment": {"docker_image": "host.example/org/image:1.2", "workdir": "/judge"}}
    image = part_of(config).images.agent
    assert (image.kind, image.reference, image.key) == ("prebuilt", "host.example/org/image:1.2", "")
    assert image.workdir == "/judge"


@pytest.mark.parametrize(
    ("named", "pulled"),
    [
        ("debian:12-slim", "hub.example/m/library/debian:12-slim"),
        ("debian", "hub.example/m/library/debian:latest"),
        ("acme/app:1", "hub.example/m/acme/app:1"),
        ("docker.io/acme/app:1", "hub.example/m/acme/app:1"),
        (f"acme/app:1@sha256:{sha('a')}", f"hub.example/m/acme/app@sha256:{sha('a')}"),
        ("localhost/app:1", "localhost/app:1"),
        ("host.example/acme/app:1", "host.example/acme/app:1"),
        ("host:5000/app", "host:5000/app"),
        ("no:image:name", "no:image:name"),
    ],
)
def test_the_mirror_stands_in_for_docker_hub_and_nothing_else(named: str, pulled: str) -> None:
    config = {"environment": {"docker_image": named}}
    site = SITE.model_copy(update={"base_image_mirror": "hub.example/m"})
    assert part_of(config, platform=site).images.agent.reference == pulled
    assert part_of(config).images.agent.reference == named


def test_a_separate_verifier_has_an_image_of_its_own() -> None:
    config = {"verifier": {"environment": {"docker_image": "judge:1", "workdir": "/judge"}}}
    verifier = part_of(config).images.verifier
    assert verifier is not None
    assert (verifier.reference, verifier.bundles_tests, verifier.workdir) == ("judge:1", True, "/judge")
    assert part_of().images.verifier is None


def test_steps_have_verifier_images() -> None:
    steps = [{"name": "one"}, {"name": "two", "verifier": {"environment": {"docker_image": "judge:2"}}}]
    part = part_of({"steps": steps})
    assert part.steps[0].verifier_image is None
    assert part.steps[1].verifier_image is not None
    assert part.images.verifier == part.steps[1].verifier_image


def refused_image(source: ImageSource) -> list[tuple[str, str]]:
    task = make_task(agent_image=source)
    report = Report(task)
    ImagePlanner("registry").plan(task, report)
    return places(tuple(report.findings))


def test_images_that_cannot_be_used() -> None:
    compose = ImageSource(kind="compose", context="environment")
    assert refused_image(compose) == [("invalid_compose_file", "")]
    for reference in ("", "image:{{workflow.name}}", "two words"):
        assert refused_image(ImageSource(kind="prebuilt", reference=reference)) == [
            ("invalid_task_config", "environment.docker_image")
        ]


ARGUED = replace(
    BUILT,
    arguments=("TAG", "WHO"),
    variable_bases=VariableBases(("host.example/a:$TAG",), (), (("TAG", "1"),)),
    bases=("host.example/a:1",),
)


def image_of(source: ImageSource, inputs: BuildInputs = NO_INPUTS) -> ImagePlan:
    report = Report()
    images, _ = ImagePlanner("registry", inputs=inputs).plan(make_task(agent_image=source), report)
    assert report.findings == []
    return images.agent


def test_an_image_without_arguments_keeps_its_key() -> None:
    assert image_key(BUILT) == "aceb453e8d57b6611eb8e8c0132d72534ee6bd206e6920c15d9f543696e92b07"
    given = BuildInputs(args={"OTHER": "x"})
    assert image_of(BUILT, given).key == image_of(ARGUED, given).key == image_key(BUILT)


def test_values_count_only_where_the_dockerfile_declares_the_name() -> None:
    image = image_of(ARGUED, BuildInputs(args={"TAG": "2", "OTHER": "x"}))
    assert image.arguments == (("TAG", "2"),)
    assert image.key not in (image_key(ARGUED), image_of(ARGUED, BuildInputs(args={"TAG": "3"})).key)
    assert image.bases == ("host.example/a:2",)
    assert image_of(ARGUED).bases == ("host.example/a:1",)


def test_the_tasks_own_values_come_last() -> None:
    own = replace(ARGUED, own_arguments=(("NOBODY", "z"), ("WHO", "task")))
    image = image_of(own, BuildInputs(args={"WHO": "request", "TAG": "2"}))
    assert image.arguments == (("TAG", "2"), ("WHO", "task"))


def test_another_dockerfile_or_stage_of_the_same_folder_is_another_image() -> None:
    keys = {image_of(replace(BUILT, **change)).key for change in ({}, {"dockerfile": "b"}, {"target": "b"})}
    assert len(keys) == 3
    image = image_of(replace(BUILT, dockerfile="b", target="dev"))
    assert (image.dockerfile, image.target) == ("b", "dev")


def test_secrets_are_granted_by_id_and_change_no_key() -> None:
    source = replace(BUILT, secrets=("key", "other"), required_secrets=("key",))
    image = image_of(source, BuildInputs(secrets={"key": "builds/token", "unused": "a/b"}))
    assert image.secrets == (("key", "builds/token"),)
    assert image.key == image_key(BUILT)


def test_a_secret_that_a_build_needs_must_be_granted() -> None:
    source = replace(BUILT, secrets=("a", "b"), required_secrets=("a", "b"))
    assert refused_image(source) == [("env_not_granted", ""), ("env_not_granted", "")]
