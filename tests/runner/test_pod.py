"""Whole trials in a pod of this machine: execd, egress, a real store, the runner as Argo starts it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from argo_harbor.model.profile import Profile
from argo_harbor.model.record import AgentHalf, TrialRecord
from argo_harbor.model.states import Outcome
from argo_harbor.store import layout
from tests.engines.suite import REWARD, write_task
from tests.runner.pods import Pod, start_sandbox, trial_pod
from tests.support import gotools, standins

pytestmark = pytest.mark.contract

OPEN = Profile(name="open", hosts=("ok.example",), verifier_egress=("other.example",), shared_verifier="open")
ALLOWLIST = 'network_mode = "allowlist"\nallowed_hosts = ["ok.example"]\n'
REACHED = (
    'reached() { timeout 2 bash -c "exec 3<>/dev/tcp/$1/443" 2>/dev/null && echo yes || echo no; }; '
    "for host in ok.example other.example 203.0.113.7 203.0.113.8 169.254.169.254; do "
    'echo "$host $(reached $host)"; done'
)


@pytest.fixture(scope="module")
def programs() -> standins.Standins:
    if os.geteuid() != 0 or shutil.which("nft") is None:
        pytest.skip("a pod on this machine needs root and nft")
    try:
        return standins.build(say=print)
    except gotools.ToolUnavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture
def pod(programs: standins.Standins, tmp_path: Path) -> Iterator[Pod]:
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    with trial_pod(tmp_path, programs) as made:
        yield made


def finish(process: subprocess.Popen[str], status: int = 0) -> str:
    out, err = process.communicate(timeout=120)
    assert process.returncode == status, out + err
    return out


def evidence(pod: Pod, name: str) -> str:
    with pod.store() as store:
        folder = layout.try_folder(pod.run, 0, 0, 0, pod.uid)
        return store.get(folder + name).decode()


def test_a_trial_from_its_pods_start_to_its_record(pod: Pod) -> None:
    suite = pod.folder / "suite"
    write_task(
        suite, "hello", test=f"cat /app/done > {REWARD}", solve="mkdir -p /app; echo 1 > /app/done; id -u"
    )
    pod.plan(suite)
    said = finish(pod.start())
    assert "agent begins" in said
    assert "scored: reward=1" in said
    assert "own time:" in said
    record = pod.record()
    assert (record.final, record.outcome, record.rewards) == (True, Outcome.SCORED, {"reward": 1.0})
    assert (record.node, record.sandbox.engine, record.sandbox.base) == ("node-1", "argo", "image")
    assert set(record.policies) == {"setup", "agent", "verifier"}
    assert all(policy.digest != policy.planned for policy in record.policies.values())
    assert set(record.overhead_seconds) == {"before_agent", "after_verifier"}
    assert "agent/oracle.txt" in record.files
    assert json.loads(evidence(pod, layout.PHASE))["phase"] == "verifier"
    # The attempt is decided: a further try does nothing at all.
    finish(pod.start(try_=1, uid="ffffffff-0000-4000-8000-000000000000"))
    with pod.store() as store:
        tries = {entry.key.split("/")[5] for entry in store.list(layout.trials(pod.run))}
    assert tries == {"0-0a1b2c3d"}


def test_each_phase_reaches_its_own_hosts_and_the_others_are_counted(pod: Pod) -> None:
    suite = pod.folder / "suite"
    grade = f"{{ {REACHED}; }} >&2; echo 1 > {REWARD}"
    write_task(suite, "net", toml=f"[environment]\n{ALLOWLIST}", test=grade, solve=REACHED)
    pod.plan(suite, OPEN)
    finish(pod.start())
    agent = evidence(pod, "agent/oracle.txt")
    assert "ok.example yes\nother.example no\n203.0.113.7 yes\n203.0.113.8 no\n169.254.169.254 no" in agent
    grading = evidence(pod, "verifier/test-stdout.txt")
    assert "ok.example yes\nother.example yes" in grading
    record = pod.record()
    refused = {each.host: each.count for each in record.refused["agent"]}
    assert refused.keys() == {"other.example", "203.0.113.8", "169.254.169.254"}
    assert record.opened_for_grading == ("other.example",)


def test_a_cancelled_pod_leaves_what_there_is(pod: Pod) -> None:
    suite = pod.folder / "suite"
    write_task(suite, "long", test="true", solve="echo begun; sleep 300")
    pod.plan(suite)
    process = pod.start()
    assert process.stdout is not None
    for line in process.stdout:
        if "agent begins" in line:
            break
    os.kill(process.pid, signal.SIGTERM)
    finish(process, 75)
    record = pod.record()
    assert (record.final, record.outcome) == (False, Outcome.CANCELLED)
    assert "trial.log" in record.files


def test_a_sandbox_that_is_lost_is_an_infrastructure_fault(pod: Pod, programs: standins.Standins) -> None:
    suite = pod.folder / "suite"
    write_task(suite, "lost", test="true", solve="sleep 300")
    pod.plan(suite)
    process = pod.start()
    assert process.stdout is not None
    for line in process.stdout:
        if "agent begins" in line:
            break
    pod.sandbox.kill()
    pod.sandbox.wait()
    pod.sandbox = start_sandbox(pod.pod, pod.folder / "again", programs)
    finish(process, 75)
    record = pod.record()
    assert record.error is not None
    assert (record.final, record.outcome) == (False, Outcome.INFRASTRUCTURE)
    assert record.error.code in ("sandbox_failed", "sandbox_restarted")


def test_a_cancelled_run_starts_nothing_and_asks_for_no_further_try(pod: Pod) -> None:
    suite = pod.folder / "suite"
    write_task(suite, "late", test="true", solve="true")
    pod.plan(suite)
    with pod.store() as store:
        store.put(layout.cancel_mark(pod.run, "x"), b"{}")
    finish(pod.start(), 1)
    assert pod.record().outcome is Outcome.CANCELLED
    assert "agent" not in pod.record().phases


def test_another_workflow_of_the_same_name_is_told_so(pod: Pod) -> None:
    suite = pod.folder / "suite"
    write_task(suite, "again", test="true", solve="true")
    pod.plan(suite)
    with pod.store() as store:
        store.put(layout.workflow_mark(pod.run, "another"), b"")
    process = pod.start()
    _, err = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "error[run_id_reused]" in err


def test_a_separate_verifier_grades_in_a_pod_of_its_own(pod: Pod) -> None:
    suite = pod.folder / "suite"
    folder = write_task(
        suite, "separate", test=f"cat /logs/artifacts/done > {REWARD}", solve="echo 1 > /logs/artifacts/done"
    )
    text = (folder / "task.toml").read_text()
    (folder / "task.toml").write_text(text + 'environment_mode = "separate"\n')
    pod.plan(suite)
    finish(pod.start("agent"))
    half = AgentHalf.from_json(evidence(pod, layout.AGENT_HALF))
    assert half.gradable
    finish(pod.start("verify", uid="bbbbbbbb-0000-4000-8000-000000000000"))
    record: TrialRecord = pod.record()
    assert (record.outcome, record.rewards, record.final) == (Outcome.SCORED, {"reward": 1.0}, True)
    assert set(record.policies) == {"setup", "agent", "verifier"}
    assert set(record.overhead_seconds) == {"before_agent", "after_verifier"}


def test_rules_that_cannot_be_set_keep_the_trial_from_starting(pod: Pod) -> None:
    suite = pod.folder / "suite"
    write_task(suite, "alone", test="true", solve="true")
    pod.plan(suite)
    pod.token = "another"
    finish(pod.start(), 75)
    record = pod.record()
    assert record.error is not None
    assert record.error.code == "policy_mismatch"
    assert "agent" not in record.phases
