"""A suite from its first publish to runs by its ref, on this machine: each command as a user types it."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest

from argo_harbor.store import layout
from argo_harbor.store.directory import DirectoryStore
from tests.support.program import EXAMPLES, Done, Program

pytestmark = [pytest.mark.e2e, pytest.mark.sandbox]

LOCAL = ("--engine", "local")
PREVIEW = ("--base", "preview")


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """Two tasks whose images build, one of them with a judge of its own, and one whose image does not."""
    folder = tmp_path / "suite"
    for task in ("reward-txt", "separate-verifier", "reward-json"):
        shutil.copytree(EXAMPLES / "mixed" / task, folder / task)
    broken = folder / "reward-json" / "environment" / "Dockerfile"
    broken.write_text(broken.read_text() + "RUN echo the last words >&2; exit 7\n")
    return folder


def repair(suite: Path) -> None:
    dockerfile = suite / "reward-json" / "environment" / "Dockerfile"
    dockerfile.write_text(dockerfile.read_text().replace("exit 7", "true"))


def create(program: Program, suite: Path) -> Done:
    done = program("tasksets", "create", "--harbor-dir", suite, *LOCAL)
    assert done.status == 0, done.stderr
    return done


def ref_of(done: Done) -> str:
    return done.stdout.splitlines()[-1]


def objects(program: Program) -> dict[str, float]:
    """Archives, manifests and plans of the store with the times at which they were written."""
    store = DirectoryStore(program.store / "local")
    kept = (layout.task_archives(), layout.tasksets(), "plans/")
    return {entry.key: entry.modified for prefix in kept for entry in store.list(prefix)}


def test_publish_once_build_once_run_many_times(program: Program, suite: Path) -> None:
    first = create(program, suite)
    ref = ref_of(first)
    name, _, digest = ref.partition("#")
    assert (name, len(digest)) == ("suite", 64)
    assert [line.split()[0] for line in first.stdout.splitlines()[:3]] == ["Published"] * 3
    assert "Intake label" not in first.stdout
    again = create(program, suite)
    assert [line.split()[0] for line in again.stdout.splitlines()[:4]] == ["Unchanged"] * 4
    assert ref_of(again) == ref

    submit = ("runs", "submit", "--agent", "oracle", *LOCAL, *PREVIEW)
    refused = program(*submit, "--taskset", ref, "--json")
    assert (refused.status, refused.error["code"]) == (3, "image_not_built")
    assert len(refused.error["items"]) == 3
    assert "tasks without images" in refused.error["message"]
    assert f"tasksets build-images '{ref}'" in refused.error["hint"]

    built = program("tasksets", "build-images", ref, "--wait", *LOCAL, *PREVIEW)
    assert built.status == 1
    assert "failed" in built.stdout
    assert "the last words" in built.stdout
    assert "RUN echo the last words" in built.stdout

    refused = program(*submit, "--taskset", ref, "--json")
    codes = {item["task"].rpartition("/")[2]: item["code"] for item in refused.error["items"]}
    assert codes == {"reward-json": "image_build_failed"}
    assert "the last words" in refused.error["items"][0]["message"]

    repair(suite)
    repaired = create(program, suite)
    told = [line for line in repaired.stdout.splitlines() if line.startswith("Published task ")]
    assert [line.split("#")[0].rpartition("/")[2] for line in told] == ["reward-json"]
    newer = ref_of(repaired)
    assert newer != ref

    built = program("tasksets", "build-images", newer, "--wait", *LOCAL, *PREVIEW)
    assert built.status == 0, built.stderr
    assert [line for line in built.stderr.splitlines() if line.startswith("building")] == [
        "building for argo-harbor-examples/reward-json"
    ]
    idle = program("tasksets", "build-images", newer, "--wait", *LOCAL, *PREVIEW, "--json")
    assert idle.status == 0
    assert "building" not in idle.stderr
    assert {image["state"] for image in idle.json("build-images-document-1")["images"]} == {"ready"}

    ran = program(*submit, "--taskset", newer)
    assert ran.status == 0, ran.stderr
    before = objects(program)
    second = program(*submit, "--taskset", newer)
    assert second.status == 0, second.stderr
    assert objects(program) == before


def test_a_run_from_the_folder_builds_by_itself_and_its_taskset_is_ready_then(
    program: Program, suite: Path
) -> None:
    repair(suite)
    ran = program("runs", "submit", "--harbor-dir", suite, "--agent", "oracle", *LOCAL, *PREVIEW)
    assert ran.status == 0, ran.stderr
    rerun = next(line for line in ran.stdout.splitlines() if line.startswith("Rerun these tasks: "))
    assert "--taskset" in rerun
    ref = ref_of(create(program, suite))
    assert ref in rerun
    again = program("runs", "submit", "--taskset", ref, "--agent", "oracle", *LOCAL, *PREVIEW)
    assert again.status == 0, again.stderr


def test_a_part_of_a_suite_is_built_and_run_by_the_same_ref(program: Program, suite: Path) -> None:
    created = program("tasksets", "create", "--harbor-dir", suite, "--tasks", "reward-txt", *LOCAL)
    assert "(1 of 3 tasks)" in created.stdout
    ref = ref_of(created)
    built = program("tasksets", "build-images", ref, "--wait", *LOCAL, *PREVIEW)
    assert built.status == 0, built.stderr
    ran = program("runs", "submit", "--taskset", ref, "--agent", "oracle", *LOCAL, *PREVIEW)
    assert ran.status == 0, ran.stderr
    assert "2 of 3 tasks of suite were never published and are left out" in ran.stderr
    # Whatever is published later: the same line runs the same.
    assert "--tasks 1 " in next(line for line in ran.stdout.splitlines() if line.startswith("Rerun"))


def test_tasks_that_this_machine_refuses_are_left_out_and_named(program: Program, suite: Path) -> None:
    repair(suite)
    dockerfile = suite / "reward-txt" / "environment" / "Dockerfile"
    dockerfile.write_text(dockerfile.read_text() + "EXPOSE 80\n")
    twin = Path(shutil.copytree(suite / "reward-txt", suite / "twin"), "task.toml")
    twin.write_text(twin.read_text().replace("reward-txt", "twin"))
    shutil.copytree(EXAMPLES / "compose" / "ask-a-server", suite / "ask-a-server")
    refused = ["ask-a-server", "reward-txt", "twin"]
    build = ("--wait", *LOCAL, *PREVIEW)
    ref = ref_of(create(program, suite))
    stopped = program("tasksets", "build-images", ref, *build, "--json")
    assert (stopped.status, stopped.error["code"]) == (3, "preview_unsupported")
    assert [name(item["task"]) for item in stopped.error["items"]] == refused
    built = program("tasksets", "build-images", ref, *build, "--skip-refused", "--json")
    assert built.status == 0, built.stderr
    document = built.json("build-images-document-1")
    assert [name(item["task"]) for item in document["skipped"]] == refused
    assert {image["state"] for image in document["images"]} == {"ready"}

    submit = ("runs", "submit", "--agent", "oracle", *LOCAL, *PREVIEW, "--skip-refused")
    from_folder = program(*submit, "--harbor-dir", suite)
    assert from_folder.status == 0, from_folder.stderr
    for task, code in (("twin", "preview_unsupported"), ("ask-a-server", "invalid_compose_file")):
        assert f"warning[{code}]: argo-harbor-examples/{task}: left out: " in from_folder.stderr
    assert "Coverage: 2 of 5 scored, 0 failed, 3 missing" in from_folder.stdout
    (rerun,) = [line for line in from_folder.stdout.splitlines() if line.startswith("Rerun these tasks: ")]
    again = program(*shlex.split(rerun.removeprefix("Rerun these tasks: "))[1:], "--json")
    assert again.status == 0, again.stderr
    by_ref = program(*submit, "--taskset", ref, "--json")
    assert by_ref.status == 0, by_ref.stderr
    runs = program("runs", "list", *LOCAL, "--json").json("runs-document-1")["runs"]
    assert (len(runs), len({run["plan_digest"] for run in runs})) == (3, 1)


def name(task: str) -> str:
    return task.rpartition("/")[2]


def test_listing_tasks_changes_nothing(program: Program, suite: Path) -> None:
    for verb in (("tasksets", "create"), ("runs", "submit"), ("compile",)):
        place = LOCAL if verb != ("compile",) else ()
        done = program(*verb, "--harbor-dir", suite, "--list-tasks", "--tasks", "0,*txt", *place, "--json")
        listed = done.json("task-list-document-1")["tasks"]
        assert [task["index"] for task in listed] == [0, 1]
        assert not program.store.exists()
    unknown = program(
        "tasksets", "create", "--harbor-dir", suite, "--tasks", "reward-jsom,7", *LOCAL, "--json"
    )
    assert (unknown.status, unknown.error["code"]) == (2, "unknown_tasks")
    assert [item["task"] for item in unknown.error["items"]] == ["reward-jsom", "7"]
    assert "reward-json" in unknown.error["items"][0]["hint"]
    assert not program.store.exists()
