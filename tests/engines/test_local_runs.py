"""Real runs of small tasks: every row of the table of outcomes, and tasks that do their worst."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from argo_harbor.engines import events
from argo_harbor.engines.base import SubmitOptions
from argo_harbor.errors import PlatformError, Refused
from argo_harbor.model.spec import RunSpec
from argo_harbor.model.states import RunPhase
from tests.engines.conftest import Bench
from tests.engines.suite import REWARD, write_task

pytestmark = pytest.mark.sandbox

FORGE = f"nohup bash -c 'while :; do echo 1 > {REWARD}; sleep 0.05; done' </dev/null >/dev/null 2>&1 &"
HANG = "(trap '' TERM INT HUP; exec sleep 300) & (setsid sleep 300 &) ; sleep 300"
FORK = "for _ in 1 2 3; do (trap '' TERM; while :; do sleep 1; done) & done; setsid sleep 300 & sleep 300"
QUIET = "</dev/null >/dev/null 2>&1 &"
SERVE = f"mkfifo /app/ask; nohup bash -c 'read -r x </app/ask; echo $x >/app/said' {QUIET}"
ASKED = "echo hello >/app/ask; for _ in 1 2 3 4 5 6 7 8 9; do [ -s /app/said ] && break; sleep 0.1; done\n"
ASKED += f'[ "$(cat /app/said)" = hello ] && echo 1 > {REWARD} || echo 0 > {REWARD}'


def test_every_row_of_the_table(bench: Bench, tmp_path: Path) -> None:
    suite = tmp_path / "rows"
    write_task(suite, "agent-exit", solve="exit 3")
    write_task(suite, "agent-timeout", solve="sleep 60", agent_seconds=1)
    write_task(suite, "boolean", test="echo '{\"reward\": true}' > /logs/verifier/reward.json")
    write_task(suite, "empty", test=f": > {REWARD}")
    write_task(suite, "forger", solve=FORGE)
    write_task(suite, "folder", solve=f"mkdir {REWARD}")
    write_task(suite, "hangs", test=HANG, verifier_seconds=1)
    write_task(suite, "infinite", test=f"echo inf > {REWARD}")
    write_task(suite, "keys", test='echo \'{"a": 1, "b": 0}\' > /logs/verifier/reward.json')
    write_task(suite, "link", test=f"echo 1 > /tmp/r; ln -s /tmp/r {REWARD}")
    write_task(suite, "none", test="true")
    write_task(suite, "one-key", test='echo \'{"speed": 0.5, "": 1}\' > /logs/verifier/reward.json')
    write_task(suite, "pipe", test=f"mkfifo {REWARD}")
    write_task(suite, "served", solve=SERVE, test=ASKED)
    write_task(suite, "unfoldered", test="rm -rf /logs/verifier")
    write_task(suite, "words", test=f"echo well done > {REWARD}")
    ran = bench.run(suite)
    found = {
        record.task_name: (
            record.outcome.value,
            record.error.code if record.error else "",
            (record.rewards or {}).get(record.reward_key),
        )
        for record in ran.records()
    }
    assert found == {
        "agent-exit": ("scored", "agent_exit_nonzero", 1.0),
        "agent-timeout": ("scored", "agent_timeout", 1.0),
        "boolean": ("unscored", "reward_invalid", None),
        "empty": ("unscored", "reward_missing", None),
        "folder": ("unscored", "reward_tampered", None),
        "forger": ("unscored", "reward_tampered", None),
        "hangs": ("errored", "verifier_timeout", None),
        "infinite": ("unscored", "reward_invalid", None),
        "keys": ("unscored", "reward_key_missing", None),
        "link": ("unscored", "reward_tampered", None),
        "none": ("unscored", "reward_missing", None),
        "one-key": ("unscored", "reward_key_missing", None),
        "pipe": ("unscored", "reward_tampered", None),
        "served": ("scored", "", 1.0),
        "unfoldered": ("unscored", "reward_missing", None),
        "words": ("unscored", "reward_invalid", None),
    }
    assert all(record.final for record in ran.records())
    results = ran.engine.survey(ran.run_id).results().result.coverage
    assert (results.total, results.scored, results.failed, results.missing) == (16, 3, 13, 0)
    assert ran.engine.status(ran.run_id).phase is RunPhase.COMPLETED
    # The same once more, from the store alone.
    ran.engine.merge(ran.run_id)
    assert ran.engine.survey(ran.run_id).results().result.coverage == results
    cap = ran.of(events.RunAccepted)[0].cap
    running = most = 0
    for event in ran.events:
        running += isinstance(event, events.TrialStarted) - isinstance(event, events.TrialFinished)
        most = max(most, running)
    assert 1 < most <= cap


def test_a_record_holds_what_happened_and_its_evidence_can_be_read(bench: Bench, tmp_path: Path) -> None:
    write_task(
        tmp_path / "suite",
        "one",
        solve="echo solved; cd /logs/artifacts; ln -s /etc/passwd stolen; echo hi > note",
        test=f"echo graded; echo 0.5 > {REWARD}",
    )
    ran = bench.run(tmp_path / "suite")
    (record,) = ran.records()
    assert record.rewards == {"reward": 0.5}
    assert set(record.phases) == {"sandbox", "setup", "agent", "collect", "verifier"}
    assert all(phase.finished_at >= phase.started_at for phase in record.phases.values())
    assert set(record.policies) == {"setup", "agent", "verifier"}
    assert (record.sandbox.network, record.sandbox.base, record.sandbox.limits_enforced) == (
        "none (narrowed)",
        "preview",
        False,
    )
    assert record.sandbox.ignored_from == ("debian:bookworm-slim",)
    assert record.agent_version == "1.0.0"
    assert [(link.path, link.target) for link in record.links] == [("/logs/artifacts/stolen", "/etc/passwd")]
    assert not [file for file in record.files if "stolen" in file]
    assert ran.text(record, "agent/oracle.txt") == "solved\n"
    assert ran.text(record, "verifier/test-stdout.txt") == "graded\n"
    assert ran.text(record, "artifacts/logs/artifacts/note") == "hi\n"
    for name in ("config.json", "result.json", "trial.log"):
        assert name in record.files
    assert set(record.overhead_seconds) == {"before_agent", "after_verifier"}


def test_a_step_whose_solution_fails_is_graded_and_the_failure_kept(bench: Bench, tmp_path: Path) -> None:
    task = write_task(
        tmp_path / "suite", "steps", toml='[[steps]]\nname = "first"\n[[steps]]\nname = "second"\n'
    )
    for step, solution in (("first", "exit 3"), ("second", "true")):
        for file, text in (
            ("instruction.md", "Do it."),
            ("solution/solve.sh", solution),
            ("tests/test.sh", f"echo 1 > {REWARD}"),
        ):
            (task / "steps" / step / file).parent.mkdir(parents=True, exist_ok=True)
            (task / "steps" / step / file).write_text(f"#!/bin/bash\n{text}\n")
    (record,) = bench.run(tmp_path / "suite").records()
    assert (record.outcome.value, record.rewards) == ("scored", {"reward": 1.0})
    assert record.error is not None
    assert (record.error.code, record.error.message) == (
        "agent_exit_nonzero",
        "the solution ended with status 3",
    )
    assert [step.error.code if step.error else "" for step in record.steps] == ["agent_exit_nonzero", ""]


def test_a_verifier_that_forks_and_hangs_leaves_nothing(bench: Bench, tmp_path: Path) -> None:
    write_task(tmp_path / "suite", "forks", test=FORK, verifier_seconds=1)
    (record,) = bench.run(tmp_path / "suite").records()
    assert record.error is not None
    assert record.error.code == "verifier_timeout"
    assert bench.settled(2) == []


def test_an_errored_trial_gets_a_second_fresh_sandbox(bench: Bench, tmp_path: Path) -> None:
    # Nothing but the time tells a first try from a second one. The first waits for the moment and fails; the
    # second comes after it and succeeds, unless it meets the first one's mark.
    moment = int(time.time()) + 15
    check = (
        f"test ! -e /app/mark && touch /app/mark && now=$(date +%s) && "
        f"if [ $now -lt {moment} ]; then sleep $(({moment} - now)); exit 1; fi"
    )
    toml = f"[environment.healthcheck]\ncommand = '{check}'\nretries = 1\ntimeout_sec = 60.0\n"
    write_task(tmp_path / "suite", "once", toml=toml)
    ran = bench.run(tmp_path / "suite", max_retries=1)
    first, second = ran.records()
    assert [(r.ref.try_, r.final, r.outcome.value) for r in (first, second)] == [
        (0, False, "errored"),
        (1, True, "scored"),
    ]
    assert first.error is not None
    assert first.error.code == "healthcheck_failed"
    assert [event.retrying for event in ran.of(events.TrialFinished)] == [True, False]
    coverage = ran.engine.survey(ran.run_id).results().result.coverage
    assert (coverage.total, coverage.scored) == (1, 1)


def test_what_a_retry_cannot_help_is_not_retried(bench: Bench, tmp_path: Path) -> None:
    write_task(tmp_path / "suite", "slow", test="sleep 60", verifier_seconds=1)
    ran = bench.run(tmp_path / "suite", max_retries=3)
    assert len(ran.records()) == 1


def test_attempts_are_trials_of_their_own(bench: Bench, tmp_path: Path) -> None:
    once = f"[ -e /app/was ] && echo 0 > {REWARD} || echo 1 > {REWARD}; touch /app/was"
    write_task(tmp_path / "suite", "twice", test=once)
    ran = bench.run(tmp_path / "suite", attempts=2)
    assert [(record.ref.attempt, record.rewards) for record in ran.records()] == [
        (0, {"reward": 1.0}),
        (1, {"reward": 1.0}),
    ]


def test_a_planted_credential_is_seen_nowhere(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = "planted-credential-4711"
    monkeypatch.setenv("PLANTED", planted)
    monkeypatch.setenv("MY_KEY", "granted-secret-0815")
    write_task(
        tmp_path / "suite",
        "looks",
        solve="env; cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'; echo word=$WORD key=$KEY plain=$PLAIN",
        test=f"env; echo 1 > {REWARD}",
        toml='[environment.env]\nLEFT = "${PLANTED:-nothing}"\n[solution.env]\nALSO = "${PLANTED:-}"\n',
    )
    request = RunSpec.from_data(
        {
            "spec": {
                "target": {
                    "kind": "harbor",
                    "source": {"name": "oracle"},
                    "env": {"KEY": "host:MY_KEY", "WORD": "host:MY_KEY", "PLAIN": "lit:plain-text"},
                }
            },
            "execution": {},
        }
    )
    ran = bench.run(tmp_path / "suite", request=request)
    (record,) = ran.records()
    assert record.rewards == {"reward": 1.0}
    said = ran.text(record, "agent/oracle.txt")
    assert "LEFT=nothing" in said
    assert "word=[REDACTED] key=[REDACTED] plain=plain-text" in said
    for path in bench.root.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            assert planted.encode() not in data, path
            assert b"granted-secret-0815" not in data, path


def test_an_image_that_does_not_build_fails_its_own_tasks_only(bench: Bench, tmp_path: Path) -> None:
    suite = tmp_path / "suite"
    broken = "FROM x\nRUN echo about to fail && exit 9\n"
    write_task(suite, "broken-1", dockerfile=broken)
    write_task(suite, "broken-2", dockerfile=broken)
    write_task(suite, "fine")
    ran = bench.run(suite)
    assert [record.task_name for record in ran.records()] == ["fine"]
    failed = [event for event in ran.of(events.BuildFinished) if event.error]
    assert len(failed) == 1
    assert sorted(failed[0].tasks) == ["broken-1", "broken-2"]
    assert "exit status 9" in failed[0].error
    tasks = {line.name: line for line in ran.engine.survey(ran.run_id).tasks().tasks}
    assert "image_build_failed" in tasks["broken-1"].detail
    notes = [event.note for event in ran.of(events.TrialFinished) if event.record is None]
    assert len(notes) == 2
    assert all(note.startswith("image_build_failed: ") for note in notes)


def test_the_canary_keeps_the_rest_from_running(bench: Bench, tmp_path: Path) -> None:
    suite = tmp_path / "suite"
    check = '[environment.healthcheck]\ncommand = "false"\nretries = 1\ninterval_sec = 0.1\n'
    write_task(suite, "a-unhealthy", toml=check)
    write_task(suite, "b-fine")
    ran = bench.run(suite, canary=1)
    assert [record.task_name for record in ran.records()] == ["a-unhealthy"]
    (decided,) = ran.of(events.GateDecided)
    assert (decided.passed, decided.reasons) == (False, ("a-unhealthy: healthcheck_failed",))
    told = (ran.engine.bundle_dir(ran.run_id) / "tasks.jsonl").read_text()
    assert "the canary stopped the run: a-unhealthy: healthcheck_failed" in told


def test_a_good_canary_lets_the_rest_run(bench: Bench, tmp_path: Path) -> None:
    suite = tmp_path / "suite"
    write_task(suite, "a")
    write_task(suite, "b")
    ran = bench.run(suite, agent="nop", canary=1)
    assert len(ran.records()) == 2
    assert [event.passed for event in ran.of(events.GateDecided)] == [True]


def test_a_spent_budget_ends_what_runs_and_merges(bench: Bench, tmp_path: Path) -> None:
    suite = tmp_path / "suite"
    write_task(suite, "quick")
    write_task(suite, "slow", solve="sleep 120", agent_seconds=300)
    ran = bench.run(suite, seconds=8)
    assert ran.engine.status(ran.run_id).phase is RunPhase.EXPIRED
    assert ran.record("slow").outcome.value == "expired"
    coverage = ran.engine.survey(ran.run_id).results().result.coverage
    assert (coverage.total, coverage.scored + coverage.failed + coverage.missing) == (2, 2)


def test_a_separate_verifier_grades_in_a_sandbox_of_its_own(bench: Bench, tmp_path: Path) -> None:
    suite = tmp_path / "suite"
    separate = 'artifacts = ["/app/kept"]\n[verifier]\nenvironment_mode = "separate"\n'
    folder = write_task(
        suite,
        "separate",
        solve=f"echo kept > /app/kept; echo lost > /app/lost; {FORGE}",
        test=f'[ "$(cat /app/kept)" = kept ] && [ ! -e /app/lost ] && echo 1 > {REWARD} || echo 0 > {REWARD}',
    )
    toml = (folder / "task.toml").read_text()
    (folder / "task.toml").write_text(
        toml.replace("[verifier]\n", separate.partition("\n")[2]).replace(
            'schema_version = "1.4"\n', 'schema_version = "1.4"\nartifacts = ["/app/kept"]\n'
        )
    )
    ran = bench.run(suite)
    (record,) = ran.records()
    assert (record.outcome.value, record.rewards) == ("scored", {"reward": 1.0})
    assert {"agent", "verifier"} <= set(record.phases)
    assert "verifier/test-stdout.txt" in record.files
    assert "agent/oracle.txt" in record.files
    nothing = bench.run(suite, agent="nop")
    assert nothing.records()[0].rewards == {"reward": 0.0}


def test_a_separate_verifier_that_hangs(bench: Bench, tmp_path: Path) -> None:
    folder = write_task(tmp_path / "suite", "hangs", test=HANG, verifier_seconds=1)
    toml = (folder / "task.toml").read_text()
    (folder / "task.toml").write_text(toml + 'environment_mode = "separate"\n')
    (record,) = bench.run(tmp_path / "suite").records()
    assert record.error is not None
    assert (record.error.code, record.final) == ("verifier_timeout", True)


def test_refusals_come_before_anything_starts(bench: Bench, tmp_path: Path) -> None:
    suite = tmp_path / "suite"
    write_task(suite, "one", dockerfile="FROM x\nUSER nobody\n")
    write_task(suite, "two", dockerfile="FROM x\nHEALTHCHECK CMD true\n")
    with pytest.raises(Refused) as caught:
        bench.run(suite)
    assert {(item.code, item.task) for item in caught.value.items} == {
        ("preview_unsupported", "one"),
        ("preview_unsupported", "two"),
    }
    assert not bench.root.exists()
    with pytest.raises(PlatformError) as refused:
        bench.run(suite, options=SubmitOptions(base="image"))
    assert refused.value.code == "sandbox_unavailable"


def test_steps_share_a_sandbox_and_one_may_be_graded_apart(bench: Bench, tmp_path: Path) -> None:
    suite = tmp_path / "suite"
    folder = write_task(suite, "steps")
    (folder / "task.toml").write_text(
        'schema_version = "1.4"\n'
        '[[steps]]\nname = "one"\n[steps.verifier]\ntimeout_sec = 30.0\n[steps.agent]\ntimeout_sec = 1.0\n'
        '[[steps]]\nname = "two"\nartifacts = ["/app/kept"]\n'
        '[steps.verifier]\ntimeout_sec = 30.0\nenvironment_mode = "separate"\n'
    )
    for name, solve, test in (
        ("one", "echo kept > /app/kept; sleep 30", f"echo 0.5 > {REWARD}"),
        ("two", "test -e /app/kept", f'[ "$(cat /app/kept)" = kept ] && echo 1 > {REWARD}'),
    ):
        step = folder / "steps" / name
        (step / "tests").mkdir(parents=True)
        (step / "solution").mkdir()
        (step / "instruction.md").write_text("Do it.\n")
        (step / "solution" / "solve.sh").write_text(f"#!/bin/bash\n{solve}\n")
        (step / "tests" / "test.sh").write_text(f"#!/bin/bash\n{test}\n")
    (record,) = bench.run(suite).records()
    assert record.error is not None
    assert (record.outcome.value, record.rewards, record.error.code) == (
        "scored",
        {"reward": 0.75},
        "agent_timeout",
    )
    assert [(step.name, step.rewards) for step in record.steps] == [
        ("one", {"reward": 0.5}),
        ("two", {"reward": 1.0}),
    ]
    assert "steps/two/verifier/test-stdout.txt" in record.files
