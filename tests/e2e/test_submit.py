"""The real program from a user's shell: interrupts, kills, credentials, full disks, other people's files."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engines.suite import write_task
from tests.support.program import EXAMPLES, Done, Program, said

pytestmark = pytest.mark.e2e


def wait_for(process: subprocess.Popen[str], pattern: str) -> str:
    """The first line on stderr that the pattern matches."""
    assert process.stderr is not None
    for line in process.stderr:
        if re.search(pattern, line):
            return line
    raise AssertionError(f"the program ended without a line like {pattern!r}")


def started_trials(program: Program) -> list[Path]:
    return list(program.store.glob("local/runs/*/trials/*/*/*/started.json"))


def coverage(program: Program, run_id: str) -> dict[str, int]:
    results = program("runs", "results", run_id, "--json").json("results-document-1")
    found = results["result"]["coverage"]
    assert isinstance(found, dict)
    return found


def slow_suite(folder: Path) -> Path:
    """One quick task, then more slow ones than may run at once."""
    write_task(folder, "a-quick")
    for number in range(2 * 2 * (os.cpu_count() or 1)):
        write_task(folder, f"slow-{number}", solve="sleep 600")
    return folder


@pytest.mark.parametrize("blow", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_was_cut_off_is_finished_by_merge(
    program: Program, tmp_path: Path, blow: signal.Signals
) -> None:
    suite = slow_suite(tmp_path / "suite")
    process = program.start("runs", "submit", "--harbor-dir", suite, "--agent", "oracle", "--base", "preview")
    wait_for(process, r"\[1/\d+\] a-quick: 1 in ")
    assert len(started_trials(program)) >= 2
    process.send_signal(blow)
    stdout, _ = process.communicate(timeout=30)
    run_id = re.findall(r"^Run (run-[0-9a-f]{16}) accepted: ", stdout, re.MULTILINE)[0]
    if blow is signal.SIGINT:
        assert process.returncode == 130
        assert stdout.splitlines()[-1] == f"argo-harbor runs merge {run_id}"
    assert not list(program.store.glob("local/runs/*/agent-eval-results/run.json"))

    merged = program("runs", "merge", run_id)
    assert merged.status == 0, merged.stderr
    assert program("runs", "status", run_id, "--json").json("run-document-1")["run"]["phase"] == "cancelled"
    found = coverage(program, run_id)
    assert (
        found["scored"] + found["failed"] + found["missing"]
        == found["total"]
        == 1 + 4 * (os.cpu_count() or 1)
    )
    assert found["scored"] == 1
    assert program("runs", "verify", run_id, "--json").json("verify-document-1")["ok"] is True
    first = (program.store / f"local/runs/{run_id}/agent-eval-results/trials.jsonl").read_bytes()
    assert program("runs", "merge", run_id).status == 0
    assert (program.store / f"local/runs/{run_id}/agent-eval-results/trials.jsonl").read_bytes() == first


def test_nothing_of_the_callers_shell_reaches_a_task(program: Program, tmp_path: Path) -> None:
    suite = tmp_path / "suite"
    write_task(
        suite,
        "snoop",
        solve="cd /logs/artifacts; env > env.txt; cat /proc/*/environ > all.txt 2>/dev/null; true",
        toml='[environment.env]\nSEEN = "${AWS_SECRET_ACCESS_KEY:-nothing}"\n',
    )
    planted = {
        "AWS_SECRET_ACCESS_KEY": "planted-credential-4711",
        "OPENAI_API_KEY": "planted-credential-4712",
    }
    done = program(
        "runs",
        "submit",
        "--harbor-dir",
        suite,
        "--agent",
        "oracle",
        "--base",
        "preview",
        "--json",
        env=planted,
    )
    assert done.status == 0, done.stderr
    everything = b"".join(path.read_bytes() for path in program.store.rglob("*") if path.is_file())
    assert b"SEEN=nothing" in everything
    assert b"planted-credential" not in everything


def test_a_name_that_is_not_granted_is_refused(program: Program, tmp_path: Path) -> None:
    suite = tmp_path / "suite"
    write_task(suite, "wants", toml='[environment.env]\nKEY = "${OPENAI_API_KEY}"\nHERE = "${HOME:-x}"\n')
    done = program(
        "runs",
        "submit",
        "--harbor-dir",
        suite,
        "--agent",
        "oracle",
        "--json",
        env={"OPENAI_API_KEY": "planted"},
    )
    assert done.status == 3
    assert [item["code"] for item in done.error["items"]] == ["env_not_granted", "env_not_granted"]
    assert not program.store.joinpath("local/runs").exists()


def test_a_sandbox_reads_no_secret_of_the_machine(program: Program, tmp_path: Path) -> None:
    """As root too: what "other" may not read is not there."""
    planted = Path("/usr/share/argo-harbor-test-secret")
    try:
        planted.write_text("planted-secret-4713")
    except PermissionError:
        planted = tmp_path / "secret"
        planted.write_text("planted-secret-4713")
    planted.chmod(0o600)
    suite = tmp_path / "suite"
    places = f"/etc/shadow {planted} ~root/.profile ~root/.bashrc /home/*/.profile"
    write_task(suite, "reader", solve=f"cat {places} > /logs/artifacts/read.txt 2>/dev/null; true")
    try:
        done = program(
            "runs", "submit", "--harbor-dir", suite, "--agent", "oracle", "--base", "preview", "--json"
        )
    finally:
        planted.unlink()
    assert done.status == 0, done.stderr
    (read,) = program.store.glob("local/runs/*/agent-eval-results/evidence/**/read.txt")
    assert read.read_text() == ""


def test_a_full_disk_while_the_bundle_is_written(program: Program, shared: Program, mixed_nop: Done) -> None:
    """A limit on file sizes stands in for a full disk: an old bundle stays, a new one is not half there."""
    run_id = mixed_nop.json("run-document-1")["run"]["id"]
    shutil.copytree(shared.store, program.store)
    bundle = program.store / f"local/runs/{run_id}/agent-eval-results"
    report = (bundle / "report.html").stat().st_size

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (report // 2, report // 2))

    for bundle_is_there in (True, False):
        if not bundle_is_there:
            shutil.rmtree(bundle)
        failed = program("runs", "merge", run_id, "--json", preexec_fn=limit)
        assert (failed.status, failed.error["code"]) == (5, "store_write_failed")
        assert (bundle / "run.json").exists() is bundle_is_there
        assert (program("runs", "verify", run_id).status == 0) is bundle_is_there
    assert program("runs", "merge", run_id).status == 0
    assert program("runs", "verify", run_id, "--json").json("verify-document-1")["ok"] is True


def test_a_disk_that_is_too_full_for_a_run(program: Program) -> None:
    """Objects of a small suite still fit, what sandboxes start from does not."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 10, 64 << 10))

    command = ("runs", "submit", "--harbor-dir", EXAMPLES / "hello-world", "--agent", "oracle", "--json")
    failed = program(*command, "--base", "preview", preexec_fn=limit)
    assert (failed.status, failed.error["code"]) == (5, "store_write_failed")
    assert "cannot prepare the run" in failed.error["message"]
    assert "Traceback" not in said(failed.stderr)
    assert not list(program.store.glob("scratch/*"))


AS_NOBODY = """
import os, sys
import argo_harbor.api, argo_harbor.cli.main, argo_harbor.cli.request, argo_harbor.cli.compiled
import argo_harbor.planning.argo, argo_harbor.settings.specfile, argo_harbor.settings.profiles
os.setgroups([]), os.setgid(65534), os.setuid(65534)
sys.exit(argo_harbor.cli.main.run(sys.argv[1:]))
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_a_folder_that_cannot_be_read(program: Program, tmp_path: Path) -> None:
    """Root reads everything, so another user tries; what it imports is imported before it becomes one."""
    suite = Path(shutil.copytree(EXAMPLES / "hello-world", tmp_path / "suite"))
    (suite / "hello-world/tests").chmod(0o700)
    for folder in (tmp_path, *tmp_path.parents[:3]):
        folder.chmod(folder.stat().st_mode | 0o055)
    done = subprocess.run(
        [sys.executable, "-c", AS_NOBODY, "compile", "--harbor-dir", suite, "--agent", "oracle", "-o", "-"],
        cwd="/",
        env=program.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    assert "error[source_unreadable]" in done.stderr
    assert "hello-world/tests" in done.stderr
    assert "Traceback" not in said(done.stderr)


def test_json_keeps_stdout_to_one_document_and_progress_goes_to_stderr(mixed_nop: Done) -> None:
    assert json.loads(mixed_nop.stdout)["run"]["phase"] == "completed"
    assert "[1/" in mixed_nop.stderr
    assert "accepted" in mixed_nop.stderr


def test_every_verb_answers_in_its_schema(shared: Program, mixed_oracle: Done, mixed_nop: Done) -> None:
    run_id = mixed_oracle.json("run-document-1")["run"]["id"]
    for verb, schema in (
        (["status"], "run-document-1"),
        (["info"], "run-document-1"),
        (["tasks", "--phase", "succeeded"], "tasks-document-1"),
        (["results"], "results-document-1"),
        (["verify"], "verify-document-1"),
        (["merge"], "run-document-1"),
        (["logs", "--task", "reward-txt"], "logs-document-1"),
        (["download", "--task", "reward-txt", "-o", "one"], "download-document-1"),
    ):
        done = shared("runs", verb[0], run_id, *verb[1:], "--json")
        assert done.status == 0, done
        assert done.json(schema)
        for_people = shared("runs", verb[0], run_id, *verb[1:])
        assert for_people.status == 0, for_people
        assert for_people.stdout
    listed = shared("runs", "list", "--json").json("runs-document-1")["runs"]
    assert {run["id"] for run in listed} >= {run_id, mixed_nop.json("run-document-1")["run"]["id"]}
    assert shared("runs", "list", "--active", "--json").json("runs-document-1")["runs"] == []
