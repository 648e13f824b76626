"""The run verbs as a user meets them: one set of tests, on this machine and on the real cluster."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from argo_harbor import read_trials
from tests.engines.suite import write_task
from tests.support.program import Done, Program

SMALL = "[environment]\ncpus = 0.2\nmemory_mb = 256\nstorage_mb = 512\n"
BROKEN = "FROM debian:bookworm-slim\nRUN echo about to fail\nRUN exit 7\n"


@dataclass
class User:
    """Somebody with a shell. Which engine it is, the program finds out by itself."""

    engine: str
    program: Program
    environment: dict[str, str] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    """Of `runs submit`."""
    begun: list[subprocess.Popen[str]] = field(default_factory=list)

    def __call__(self, *arguments: object) -> Done:
        return self.program(*arguments, env=self.environment, timeout=900)

    def submit(self, suite: Path, *flags: object) -> Done:
        """Submit and wait for the end."""
        command = ("runs", "submit", "--harbor-dir", suite, "--agent", "oracle", "--wait", *self.flags)
        return self(*command, *flags)

    def begin(self, suite: Path, *flags: object) -> str:
        """Submit, and leave it to run. Returns the run's id."""
        command = ("runs", "submit", "--harbor-dir", suite, "--agent", "oracle", *self.flags, *flags)
        process = self.program.start(*command, env=self.environment)
        self.begun.append(process)
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("Run ") and " accepted: " in line:
                return line.split()[1]
        raise AssertionError(process.communicate())

    def tasks(self, run_id: str, *flags: object) -> dict[str, dict[str, Any]]:
        lines = self("runs", "tasks", run_id, *flags, "--json").json("tasks-document-1")["tasks"]
        return {line["name"]: line for line in lines}

    def status(self, run_id: str) -> dict[str, Any]:
        return self("runs", "status", run_id, "--json").json("run-document-1")

    def until(self, condition: Callable[[], bool], seconds: float = 600) -> None:
        limit = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < limit, "it never came to be"
            time.sleep(2)


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("local", marks=[pytest.mark.e2e, pytest.mark.sandbox]),
        pytest.param("argo", marks=pytest.mark.cluster),
    ],
)
def user(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[User]:
    folder = tmp_path_factory.mktemp("verbs")
    program = Program(folder / "store", folder)
    if request.param == "local":
        made = User("local", program, {"KUBECONFIG": str(folder / "none")}, ("--base", "preview"))
    else:
        cluster = request.getfixturevalue("cluster")
        made = User("argo", program, dict(cluster.environment))
    yield made
    for process in made.begun:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A task that is solved, one that is not, one whose image does not build."""
    folder = tmp_path_factory.mktemp("suites") / "verbs"
    write_task(folder, "a-solved", toml=SMALL, solve="echo solving")
    write_task(folder, "b-zero", toml=SMALL, test="echo 0 > /logs/verifier/reward.txt")
    write_task(folder, "c-broken", toml=SMALL, dockerfile=BROKEN)
    return folder


@pytest.fixture(scope="module")
def submitted(user: User, suite: Path) -> Done:
    return user.submit(suite)


@pytest.fixture(scope="module")
def run_id(submitted: Done) -> str:
    (line,) = [line for line in submitted.stdout.splitlines() if " accepted: " in line]
    return line.split()[1]


def test_submit_says_where_it_runs_and_how_to_go_on(user: User, submitted: Done, run_id: str) -> None:
    assert submitted.status == 0, submitted.stderr
    lines = submitted.stdout.splitlines()
    assert lines[0].startswith(f"Engine {user.engine}, ")
    assert all(re.match(r"(Published|Unchanged) task [abc]-\w+#[0-9a-f]{12}$", line) for line in lines[1:4])
    assert re.match(r"(Published|Unchanged) taskset verbs#[0-9a-f]{12} \(3 of 3 tasks\)$", lines[4])
    assert lines[5].startswith(f"Run {run_id} accepted: 3 tasks, 3 trials, ")
    assert lines[6].startswith("Rerun these tasks: argo-harbor runs submit --taskset 'verbs#")
    assert lines[7].startswith(f"View evaluation run: argo-harbor runs status {run_id}")
    assert lines[-1].startswith("Report: ")
    assert lines[-1].endswith("/agent-eval-results/report.html")
    assert "Coverage: 2 of 3 scored, 0 failed, 1 missing" in submitted.stdout


def test_status_info_and_results_are_the_same_on_both(user: User, run_id: str) -> None:
    for verb in ("status", "info"):
        document = user("runs", verb, run_id, "--json").json("run-document-1")
        run = document["run"]
        assert (run["id"], run["phase"], run["result_state"]) == (run_id, "completed", "ready")
        assert (run["engine"], bool(run["user"]), bool(run["submitted_at"])) == (user.engine, True, True)
        assert document["counts"] == {"succeeded": 2, "failed": 1}
        assert user("runs", verb, run_id).stdout.splitlines()[0].split() == ["Run:", run_id]
    results = user("runs", "results", run_id, "--json").json("results-document-1")
    assert results["result"]["coverage"] == {"total": 3, "scored": 2, "failed": 0, "missing": 1}
    assert [task["result"]["summary"]["mean"] for task in results["tasks"]] == [1.0, 0.0, None]
    assert results["result"]["bundle_ref"] == user.status(run_id)["run"]["bundle_dir"]


def test_tasks_say_why_one_failed(user: User, run_id: str) -> None:
    tasks = user.tasks(run_id)
    assert [(name, task["phase"]) for name, task in tasks.items()] == [
        ("a-solved", "succeeded"),
        ("b-zero", "succeeded"),
        ("c-broken", "failed"),
    ]
    assert tasks["c-broken"]["detail"].startswith("image_build_failed: ")
    assert tasks["c-broken"]["trials"][0]["error"]["code"] == "image_build_failed"
    assert list(user.tasks(run_id, "--phase", "failed")) == ["c-broken"]
    assert user("runs", "tasks", run_id, "--phase", "none").status == 2


def test_lists(user: User, run_id: str) -> None:
    for flags, there in ((["--mine"], True), (["--active"], False), (["--mine", "--active"], False)):
        runs = user("runs", "list", *flags, "--json").json("runs-document-1")["runs"]
        assert (run_id in {run["id"] for run in runs}) is there
    assert run_id in user("runs", "list").stdout


def test_logs_of_trials_and_builds(user: User, run_id: str) -> None:
    trial = user("runs", "logs", run_id, "--task", "a-solved", "--json").json("logs-document-1")["logs"]
    assert any("solving" in log["text"] for log in trial)
    assert "solving" in user("runs", "logs", run_id, "--task", "0").stdout
    build = user("runs", "logs", run_id, "--build", "--task", "c-broken")
    assert "exit 7" in build.stdout
    assert user("runs", "logs", run_id).status == 2
    assert user("runs", "logs", run_id, "--task", "none").status == 2


def test_downloads_verify_and_python(user: User, run_id: str, tmp_path: Path) -> None:
    assert user("runs", "verify", run_id, "--json").json("verify-document-1")["ok"]
    done = user("runs", "download", run_id, "-o", tmp_path, "--json").json("download-document-1")
    assert done["path"] == str(tmp_path / "agent-eval-results")
    assert user("runs", "verify", tmp_path).status == 0
    trials = {trial.task_id: trial for trial in read_trials(tmp_path)}
    assert sorted(trials) == ["a-solved", "b-zero"]
    task = user("runs", "download", run_id, "--task", "b-zero", "-o", tmp_path, "--json")
    records = list(Path(task.json("download-document-1")["path"]).rglob("trial.json"))
    assert [json.loads(record.read_text())["rewards"] for record in records] == [{"reward": 0.0}]


def test_merging_again_changes_nothing(user: User, run_id: str, tmp_path: Path) -> None:
    user("runs", "download", run_id, "-o", tmp_path / "before")
    assert user("runs", "merge", run_id).status == 0
    user("runs", "download", run_id, "-o", tmp_path / "after")
    for name in ("trials.jsonl", "scores.jsonl", "tasks.jsonl", "summary.json"):
        before, after = (tmp_path / when / "agent-eval-results" / name for when in ("before", "after"))
        assert before.read_bytes() == after.read_bytes()
    assert user.status(run_id)["run"]["phase"] == "completed"


def test_following_a_run_that_is_over(user: User, run_id: str) -> None:
    for flag in ("--watch", "--wait"):
        assert user("runs", "status", run_id, flag).status == 0
    done = user("runs", "cancel", run_id)
    assert (done.status, "was over already" in done.stdout) == (0, True)


def test_one_key_is_one_run(user: User, suite: Path) -> None:
    command = ("--tasks", "a-solved", "--idempotency-key", f"key-{time.time_ns()}")
    first = user.submit(suite, *command, "--json").json("run-document-1")["run"]
    again = user.submit(suite, *command, "--json").json("run-document-1")["run"]
    assert first["phase"] == "completed"
    assert again == first
    clash = user.submit(suite, *command, "-O", "spec.target.n_attempts=2", "--json")
    assert (clash.status, clash.error["code"]) == (4, "idempotency_conflict")
    assert {item["key"]: item["message"] for item in clash.error["items"]} == {"n_attempts": "1 → 2"}


def test_cancel_keeps_what_succeeded(user: User, tmp_path: Path) -> None:
    folder = tmp_path / "slow"
    write_task(folder, "a-quick", toml=SMALL)
    write_task(folder, "b-slow", toml=SMALL, solve="echo begun; sleep 600", agent_seconds=900)
    run_id = user.begin(folder)
    user.until(lambda: user.tasks(run_id)["a-quick"]["phase"] == "succeeded")
    user.until(lambda: user.tasks(run_id)["b-slow"]["detail"] in ("agent", "running"))
    active = user("runs", "list", "--active", "--mine", "--json").json("runs-document-1")["runs"]
    assert run_id in {run["id"] for run in active}
    busy = user("runs", "merge", run_id, "--json")
    assert (busy.status, busy.error["code"]) == (4, "run_active")

    assert user("runs", "cancel", run_id).status == 0
    assert user("runs", "status", run_id, "--wait").status == 1
    document = user.status(run_id)
    assert (document["run"]["phase"], document["run"]["result_state"]) == ("cancelled", "ready")
    assert document["counts"] == {"succeeded": 1, "cancelled": 1}
    assert user("runs", "verify", run_id, "--json").json("verify-document-1")["ok"]
    tried = user("runs", "download", run_id, "--task", "b-slow", "-o", tmp_path / "out", "--json")
    (record,) = Path(tried.json("download-document-1")["path"]).rglob("trial.json")
    assert json.loads(record.read_text())["outcome"] == "cancelled"


def test_a_dry_run_starts_nothing(user: User, tmp_path: Path) -> None:
    suite = tmp_path / f"dry-{time.time_ns()}"
    write_task(suite, "a", toml=SMALL)
    done = user.submit(suite, "--dry-run", "--json").json("dry-run-document-1")
    assert [line for line in done["lines"] if line["state"] == "failed"] == []
    assert done["ok"]
    assert {line["what"] for line in done["lines"]} >= {"variables", "profile"}
    assert "Only a canary shows" in user.submit(suite, "--dry-run").stdout
    runs = user("runs", "list", "--json").json("runs-document-1")["runs"]
    assert [run for run in runs if run["taskset_ref"].startswith(suite.name)] == []


def test_what_is_not_there(user: User) -> None:
    for verb in ("status", "info", "tasks", "results", "download", "cancel", "merge", "verify"):
        done = user("runs", verb, "run-0000000000000000", "--json")
        assert (done.status, done.error["code"]) == (2, "unknown_run"), verb
