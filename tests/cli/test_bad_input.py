"""Whatever is wrong with the input: a code, a hint, the documented exit status, and nothing written."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.support.program import EXAMPLES

HELLO = EXAMPLES / "hello-world"


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A suite of one good task, to be broken."""
    return Path(shutil.copytree(HELLO, tmp_path / "suite"))


def task(suite: Path) -> Path:
    return suite / "hello-world"


def test_no_source(argo_harbor: Command) -> None:
    done = argo_harbor("compile", "--agent", "oracle", "--json")
    assert (done.status, done.error["code"]) == (2, "no_source")
    assert "--harbor-dir" in done.error["hint"]


def test_two_sources(argo_harbor: Command) -> None:
    done = argo_harbor(
        "compile", "--harbor-dir", HELLO, "--taskset", "x#" + "0" * 12, "--agent", "oracle", "--json"
    )
    assert (done.status, done.error["code"]) == (2, "two_sources")


def test_every_pair_of_sources_excludes_one_another(argo_harbor: Command) -> None:
    flags = {
        "--harbor-dir": HELLO,
        "--harbor-git": "https://127.0.0.1/o/r@v1",
        "--harbor-hub": "org/name",
        "--taskset": "x#" + "0" * 12,
    }
    for first, second in itertools.combinations(flags, 2):
        for verb in (("compile",), ("runs", "submit")):
            done = argo_harbor(
                *verb, first, flags[first], second, flags[second], "--agent", "oracle", "--json"
            )
            assert (done.status, done.error["code"]) == (2, "two_sources")
            assert done.error["message"] == f"{first} and {second} exclude one another"


@pytest.mark.parametrize("given", [(), ("--experiment", "nightly"), ("--taskset", "x#" + "0" * 12)])
def test_a_dataset_label_needs_a_taskset_and_an_experiment(
    argo_harbor: Command, given: tuple[str, ...]
) -> None:
    source = () if "--taskset" in given else ("--harbor-dir", HELLO)
    done = argo_harbor(
        "runs", "submit", *source, *given, "--intake-dataset", "d@1", "--agent", "oracle", "--json"
    )
    assert (done.status, done.error["code"]) == (2, "bad_usage")
    assert "--taskset and --experiment" in done.error["message"]


def test_two_sources_for_people(argo_harbor: Command) -> None:
    done = argo_harbor("runs", "submit", "--harbor-dir", HELLO, "--taskset", "x#" + "0" * 12)
    assert done.status == 2
    assert done.stdout == ""
    assert done.stderr.splitlines() == [
        "error[two_sources]: --harbor-dir and --taskset exclude one another",
        "hint: give one of them",
    ]


def test_no_agent(argo_harbor: Command) -> None:
    done = argo_harbor("compile", "--harbor-dir", HELLO, "--json")
    assert (done.status, done.error["code"]) == (2, "bad_usage")


def test_an_unknown_flag_and_a_bad_value(argo_harbor: Command) -> None:
    done = argo_harbor("compile", "--harbor-dirr", HELLO, "--json")
    assert (done.status, done.error["code"]) == (2, "bad_usage")
    done = argo_harbor("compile", "--harbor-dir", HELLO, "--cpus", "many", "--json")
    assert (done.status, done.error["code"]) == (2, "unknown_flag_value")


@pytest.mark.parametrize(
    "flag", ["--agent=oracle", "--sandbox-profile=closed", "--cpus=2", "--memory-mb=9", "--storage-mb=9"]
)
def test_a_request_file_excludes_the_flags_it_replaces(argo_harbor: Command, flag: str) -> None:
    spec = EXAMPLES / "specs/oracle.toml"
    done = argo_harbor("compile", "--harbor-dir", HELLO, "--spec-file", spec, *flag.split("="), "--json")
    assert (done.status, done.error["code"]) == (2, "bad_usage")
    assert flag.partition("=")[0] in done.error["message"]


def test_tasks_that_do_not_exist(argo_harbor: Command) -> None:
    done = argo_harbor(
        "runs", "submit", "--harbor-dir", HELLO, "--tasks", "hello-wrld,7", "--list-tasks", "--json"
    )
    assert (done.status, done.error["code"]) == (2, "unknown_tasks")
    assert "hello-world" in done.error["items"][0]["hint"]


def test_no_task_selected(argo_harbor: Command) -> None:
    done = argo_harbor("compile", "--harbor-dir", HELLO, "--tasks", "nothing*", "--agent", "oracle", "--json")
    assert (done.status, done.error["code"]) == (2, "no_tasks_selected")


def test_a_folder_without_tasks(argo_harbor: Command, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = argo_harbor("compile", "--harbor-dir", tmp_path / "empty", "--agent", "oracle", "--json")
    assert (done.status, done.error["code"]) == (2, "no_tasks_selected")


def test_a_folder_that_is_not_there(argo_harbor: Command) -> None:
    done = argo_harbor("compile", "--harbor-dir", "nowhere", "--agent", "oracle", "--json")
    assert (done.status, done.error["code"]) == (3, "source_unreadable")


@pytest.mark.parametrize(
    ("broken", "key"),
    [
        ("[environment\n", ""),
        ('[environment]\ncpus = "two"\n', "environment.cpus"),
        ("[environment]\ncpus = -1\n", "environment.cpus"),
        ("[agent]\ntimeout_sec = true\n", "agent.timeout_sec"),
    ],
)
def test_a_broken_task(argo_harbor: Command, suite: Path, broken: str, key: str) -> None:
    (task(suite) / "task.toml").write_text(broken)
    done = argo_harbor("compile", "--harbor-dir", suite, "--agent", "oracle", "-o", "out", "--json")
    assert (done.status, done.error["code"]) == (3, "invalid_task_config")
    (item,) = done.error["items"]
    assert (item["file"], item["key"]) == ("hello-world/task.toml", key)
    assert item["hint"]
    assert not Path("out").exists()


def test_missing_files_and_escaping_links_of_all_tasks_at_once(argo_harbor: Command, suite: Path) -> None:
    other = Path(shutil.copytree(task(suite), suite / "other"))
    toml = (other / "task.toml").read_text()
    (other / "task.toml").write_text(
        toml.replace("argo-harbor-examples/hello-world", "argo-harbor-examples/other")
    )
    (task(suite) / "instruction.md").unlink()
    (other / "tests/test.sh").unlink()
    (other / "tests/test.sh").symlink_to("/etc/passwd")
    done = argo_harbor("runs", "submit", "--harbor-dir", suite, "--agent", "oracle", "--json")
    assert (done.status, done.error["code"]) == (3, "invalid_task_config")
    assert {item["file"] for item in done.error["items"]} >= {
        "hello-world/instruction.md",
        "other/tests/test.sh",
    }


def test_an_unknown_profile_lists_the_known(argo_harbor: Command) -> None:
    done = argo_harbor(
        "compile", "--harbor-dir", HELLO, "--agent", "oracle", "--sandbox-profile", "open", "--json"
    )
    assert (done.status, done.error["code"]) == (3, "unknown_profile")
    for name in ("closed", "harbor-standard", "open-internet"):
        assert name in done.error["hint"]


def test_more_than_the_profile_allows(argo_harbor: Command) -> None:
    done = argo_harbor("compile", "--harbor-dir", HELLO, "--agent", "oracle", "--cpus", "17", "--json")
    assert (done.status, done.error["code"]) == (3, "resources_exceed_policy")


def test_an_allowlist_under_closed(argo_harbor: Command) -> None:
    done = argo_harbor("compile", "--harbor-dir", EXAMPLES / "allowlist", "--agent", "oracle", "--json")
    assert (done.status, done.error["code"]) == (3, "host_outside_profile")
    assert len(done.error["items"]) >= 2


def test_an_allowlist_cannot_be_enforced_here(argo_harbor: Command) -> None:
    done = argo_harbor(
        "runs",
        "submit",
        "--harbor-dir",
        EXAMPLES / "allowlist",
        "--agent",
        "oracle",
        "--sandbox-profile",
        "open-internet",
        "--json",
    )
    assert (done.status, done.error["code"]) == (3, "local_network_unenforceable")


def test_a_model_calling_agent_is_not_run_here(argo_harbor: Command) -> None:
    platform = EXAMPLES / "platform.toml"
    done = argo_harbor(
        "runs",
        "submit",
        "--harbor-dir",
        HELLO,
        "--spec-file",
        EXAMPLES / "specs/codex.json",
        "--platform",
        platform,
        "--json",
    )
    assert done.status == 3
    assert "local_agent_unsupported" in {item["code"] for item in done.error["items"]}


def test_a_model_calling_agent_compiles(argo_harbor: Command) -> None:
    platform = EXAMPLES / "platform.toml"
    done = argo_harbor(
        "compile",
        "--harbor-dir",
        HELLO,
        "--spec-file",
        EXAMPLES / "specs/codex.json",
        "--platform",
        platform,
        "--json",
    )
    assert done.status == 0, done
    assert done.json("compile-document-1")["files"]


def test_an_agent_that_calls_a_model_needs_one(argo_harbor: Command) -> None:
    done = argo_harbor("compile", "--harbor-dir", HELLO, "--agent", "codex", "--json")
    assert done.status == 3
    assert "--spec-file" in done.error["hint"] or "model" in done.error["message"]


def test_an_unknown_agent(argo_harbor: Command) -> None:
    done = argo_harbor("compile", "--harbor-dir", HELLO, "--agent", "orcale", "--json")
    assert (done.status, done.error["code"]) == (2, "unknown_flag_value")
    assert "oracle" in done.error["message"] + done.error["hint"]


def test_values_still_to_fill_are_listed_at_once(argo_harbor: Command, tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text("spec:\n  target:\n    source:\n      name: ???\n    n_attempts: ???\nexecution: {}\n")
    done = argo_harbor("compile", "--harbor-dir", HELLO, "--spec-file", spec, "--json")
    assert (done.status, done.error["code"]) == (3, "invalid_spec")
    assert {item["key"] for item in done.error["items"]} == {
        "spec.target.source.name",
        "spec.target.n_attempts",
    }


def test_the_output_folder_of_somebody_else_is_left_alone(argo_harbor: Command, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/notes.txt").write_text("mine")
    done = argo_harbor("compile", "--harbor-dir", HELLO, "--agent", "oracle", "-o", "out", "--json")
    assert (done.status, done.error["code"]) == (2, "output_not_empty")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["notes.txt"]


def test_only_a_cronworkflow_has_a_schedule(argo_harbor: Command) -> None:
    done = argo_harbor(
        "compile", "--harbor-dir", HELLO, "--agent", "oracle", "--schedule", "0 3 * * *", "--json"
    )
    assert (done.status, done.error["code"]) == (2, "bad_usage")


@pytest.mark.parametrize(
    "verb", ["status", "info", "tasks", "results", "download", "verify", "merge", "logs"]
)
def test_a_run_that_does_not_exist(argo_harbor: Command, verb: str) -> None:
    done = argo_harbor("runs", verb, "run-0123456789abcdef", "--json")
    assert (done.status, done.error["code"]) == (2, "unknown_run")


@pytest.mark.parametrize("run", ["", "../tasks", "/etc/nothing", "a/b", "Run-1", "x" * 300, "a\nb"])
@pytest.mark.parametrize(
    "verb", ["status", "info", "tasks", "results", "download", "verify", "merge", "logs"]
)
def test_what_cannot_be_the_name_of_a_run(argo_harbor: Command, verb: str, run: str) -> None:
    done = argo_harbor("runs", verb, run, "--json")
    assert (done.status, done.error["code"]) == (2, "unknown_run")


def test_no_last_run(argo_harbor: Command) -> None:
    assert argo_harbor("runs", "status", "last", "--json").error["code"] == "unknown_run"


def test_a_taskset_nobody_published(argo_harbor: Command) -> None:
    done = argo_harbor("runs", "submit", "--taskset", "x#0123456789ab", "--agent", "oracle", "--json")
    assert (done.status, done.error["code"]) == (2, "unknown_flag_value")


def test_findings_are_shown_each_with_its_place(argo_harbor: Command) -> None:
    done = argo_harbor("compile", "--harbor-dir", EXAMPLES / "allowlist", "--agent", "oracle")
    assert done.status == 3
    assert done.stdout == ""
    assert done.stderr.startswith("error[host_outside_profile]: ")
    assert "example.com" in done.stderr
    assert "hint: " in done.stderr
