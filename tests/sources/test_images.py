"""Which image each sandbox gets; Harbor's own resolution is the judge where it is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from argo_harbor.errors import Refused
from argo_harbor.model.taskset import ImageSource, Task
from argo_harbor.sources import load_taskset
from tests.sources.conftest import WriteTask

verifier_mode = pytest.importorskip("harbor.models.task.verifier_mode")
harbor_task = pytest.importorskip("harbor.models.task.task")

SEPARATE = '[verifier]\nenvironment_mode = "separate"\n'
STEPS = '[[steps]]\nname = "one"\n[steps.verifier]\nenvironment_mode = "separate"\n[[steps]]\nname = "two"\n'
STEP_FILES = {"steps/one/instruction.md": "x", "steps/two/instruction.md": "x"}

CASES: dict[str, tuple[str, dict[str, str]]] = {
    "shared": ("", {}),
    "separate, same image": (SEPARATE, {}),
    "separate, prebuilt agent": (SEPARATE + '[environment]\ndocker_image = "a:1"\n', {}),
    "tests Dockerfile": (SEPARATE, {"tests/Dockerfile": "FROM debian:12\nWORKDIR /tests\n"}),
    "tests compose": (SEPARATE, {"tests/docker-compose.yaml": "services: {}\n"}),
    "verifier image": ('[verifier.environment]\ndocker_image = "v:1"\n', {"tests/Dockerfile": "FROM x\n"}),
    "verifier resources": ("[verifier.environment]\ncpus = 2\n", {}),
    "steps": (STEPS, STEP_FILES),
    "steps, own Dockerfile": (STEPS, STEP_FILES | {"steps/one/tests/Dockerfile": "FROM own\n"}),
    "steps, own image": (
        STEPS.replace('"two"', '"two"\n[steps.verifier.environment]\ndocker_image = "s:1"'),
        STEP_FILES | {"tests/Dockerfile": "FROM shared\n"},
    ),
    "compose": ("", {"environment/docker-compose.yaml": "services: {}\n"}),
}


@pytest.mark.parametrize("case", CASES)
def test_images_are_those_that_harbor_uses(write_task: WriteTask, case: str) -> None:
    toml, files = CASES[case]
    root = write_task(toml=toml, files=files)
    theirs = harbor_task.Task(root)
    task = load_taskset(root).tasks[0]
    steps = theirs.config.steps or []
    assert len(task.step_verifier_images) == len(steps)
    for ours, step in [
        (task.verifier_image, None) if not steps else (None, None),
        *zip(task.step_verifier_images, steps, strict=True),
    ]:
        if step is None and steps:
            continue
        definition = verifier_mode.resolve_verifier_environment_definition(theirs.config, theirs.paths, step)
        assert_image(root, ours, definition)


def assert_image(root: Path, ours: ImageSource | None, definition: object) -> None:
    if definition is None:
        assert ours is None
        return
    assert ours is not None
    assert ours.context == definition.directory.relative_to(root).as_posix()
    assert ours.reference == (definition.config.docker_image or "")
    assert ours.bundles_tests == definition.bundled_tests


def read(root: Path) -> Task:
    return load_taskset(root).tasks[0]


def test_a_dockerfile_image_is_described(write_task: WriteTask) -> None:
    root = write_task(
        files={"environment/Dockerfile": "FROM a:1\nWORKDIR /w\n", "environment/bin/run.sh": "x"}
    )
    image = read(root).agent_image
    assert image.kind == "dockerfile"
    assert image.executables == ("bin/run.sh",)
    assert (image.bases, image.workdir) == (("a:1",), "/w")
    assert len(image.environment_digest) == 64


def test_build_arguments_and_secrets_are_known_by_name(write_task: WriteTask) -> None:
    text = "ARG TAG=1\nFROM a:$TAG\nRUN --mount=type=secret,id=key,required=true true\n"
    image = read(write_task(files={"environment/Dockerfile": text})).agent_image
    assert (image.arguments, image.secrets, image.required_secrets) == (("TAG",), ("key",), ("key",))
    assert image.bases == ("a:1",)
    assert image.variable_bases is not None


def test_a_large_dockerfile_is_read_as_well(write_task: WriteTask) -> None:
    text = "FROM a:1\n" + "# comment\n" * 10_000 + "WORKDIR /w\n"
    assert read(write_task(files={"environment/Dockerfile": text})).agent_image.workdir == "/w"


def test_contexts_that_differ_only_in_a_link_are_told_apart(write_task: WriteTask) -> None:
    images = []
    for name in ("v1", "v2"):
        root = write_task(name, files={"environment/v1": "1", "environment/v2": "2"})
        (root / "environment/current").symlink_to(name)
        images.append(read(root).agent_image)
    assert images[0].environment_digest == images[1].environment_digest
    assert images[0].links != images[1].links
    assert images[0].links[0].startswith("current ")


def test_a_large_file_of_an_image_counts(write_task: WriteTask) -> None:
    root = write_task()
    (root / "environment/data").write_bytes(b"x" * 200_000)
    definition = pytest.importorskip("harbor.environments.definition")
    expected = definition.environment_content_hash(root / "environment", truncate=64)
    assert read(root).agent_image.environment_digest == expected


def test_a_compose_file_leaves_the_dockerfile_to_main(write_task: WriteTask) -> None:
    root = write_task(files={"environment/docker-compose.yaml": "services: {}\n"})
    task = read(root)
    assert task.agent_image.kind == "dockerfile"
    assert task.compose is not None


def test_a_compose_file_of_a_verifier_is_several_containers(write_task: WriteTask) -> None:
    task = read(write_task(toml=SEPARATE, files={"tests/docker-compose.yaml": "services: {}\n"}))
    assert task.verifier_image is not None
    assert task.verifier_image.kind == "compose"


def test_a_prebuilt_image_needs_no_environment(write_task: WriteTask) -> None:
    root = write_task(toml='[environment]\ndocker_image = "a:1"\n', without=("environment/Dockerfile",))
    image = read(root).agent_image
    assert (image.kind, image.reference, image.bases) == ("prebuilt", "a:1", ())


def test_the_same_definition_is_the_same_image(write_task: WriteTask) -> None:
    task = read(write_task(toml=SEPARATE))
    assert task.verifier_image is task.agent_image


@pytest.mark.parametrize(
    ("toml", "key"),
    [
        ('[environment]\nos = "Windows"\n', "environment.os"),
        ('[environment.tpu]\ntype = "v6e"\ntopology = "2x4"\n', "environment.tpu"),
        ('[verifier.environment]\nos = "windows"\n', "verifier.environment.os"),
        (
            '[[steps]]\nname = "a"\n[steps.verifier.environment]\nos = "windows"\n',
            "steps[0].verifier.environment.os",
        ),
    ],
)
def test_what_cannot_run_here_is_refused(write_task: WriteTask, toml: str, key: str) -> None:
    with pytest.raises(Refused) as caught:
        load_taskset(write_task(toml=toml, files={"steps/a/instruction.md": "x"}))
    assert [(item.code, item.key) for item in caught.value.items] == [("invalid_task_config", key)]


def test_a_verifier_image_brings_its_own_tests(write_task: WriteTask) -> None:
    root = write_task(toml='[verifier.environment]\ndocker_image = "v:1"\n', without=("tests/test.sh",))
    assert read(root).verifier_image is not None
    for case in ("", SEPARATE):
        with pytest.raises(Refused, match=r"tests/test\.sh"):
            load_taskset(write_task("b", toml=case, without=("tests/test.sh",)))


def test_a_step_may_use_the_tests_of_the_task(write_task: WriteTask) -> None:
    toml = '[[steps]]\nname = "a"\n[[steps]]\nname = "b"\n'
    files = {"steps/a/instruction.md": "x", "steps/b/instruction.md": "x", "steps/b/tests/test.sh": "x"}
    assert len(read(write_task("one", toml=toml, files=files)).steps) == 2
    with pytest.raises(Refused) as caught:
        load_taskset(
            write_task("two", toml=toml, files=files, without=("tests/test.sh", "steps/b/instruction.md"))
        )
    assert [item.file for item in caught.value.items] == ["steps/a/tests/test.sh", "steps/b/instruction.md"]
