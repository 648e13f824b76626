"""Runs one try of a trial from the plan to its record: what `trial` and `agent` do.

`started.json` is written first and `trial.json` last, so that whoever finds the one without the other knows
that the try was lost. The whole trial runs in one sandbox; with a separate verifier `agent` runs the
agent's half and leaves `agent.json` for `grading`.
"""

from __future__ import annotations

from argo_harbor.model.record import AgentHalf, TrialRecord, TrialStarted
from argo_harbor.runner import evidence
from argo_harbor.runner.bench import EXIT_DONE, Bench
from argo_harbor.runner.clock import now
from argo_harbor.runner.job import Report
from argo_harbor.runner.outcome import is_final, judge
from argo_harbor.runner.record import facts_of, record_of
from argo_harbor.runner.supervise import Ended
from argo_harbor.runner.tries import earlier_tries
from argo_harbor.store import layout

HALF_REPORT = "agent-report.json"
HALF_FILES = "agent-files.tar.gz"


def run_trial(bench: Bench) -> int:
    """The exit status. Raises: PlatformError `plan_unreadable`, `run_id_reused`, `store_write_failed`."""
    command, store, place = bench.command, bench.store, bench.place
    place.claim(store, command.run)
    before = earlier_tries(
        store, run=command.run, index=command.index, attempt=command.attempt, before=command.try_
    )
    if before.decided:
        return EXIT_DONE
    head = bench.head()
    setting = bench.setting(head, uid=command.uid, try_=command.try_, started_at=now())
    folder = layout.try_folder(command.run, command.index, command.attempt, command.try_, command.uid)
    started = TrialStarted(
        ref=setting.ref,
        started_at=setting.started_at,
        node=setting.node,
        workflow_uid=place.workflow_uid,
    )
    store.put(folder + layout.STARTED, started.canonical())
    admission = place.admit(store, command.run, head, folder + layout.STARTED)
    uploads = bench.uploads(head, folder)
    ended = bench.drive(setting, admission, uploads)
    files = bench.upload(uploads)
    verdict = judge(facts_of(ended.report, ended.stop, ended.detail), head.reward_key)
    gradable = command.mode == "agent" and _gradable(ended)
    final = not gradable and is_final(
        verdict,
        earlier=before.outcomes,
        max_retries=head.max_retries,
        infra_retries=head.infra_retries,
    )
    record = record_of(setting, ended.report, verdict, final=final, finished_at=now(), files=files)
    if gradable and ended.report is not None:
        return _leave_half(bench, folder, record, ended.report)
    return bench.leave(folder, record, ended, admission)


def _leave_half(bench: Bench, folder: str, record: TrialRecord, report: Report) -> int:
    """Leave what the verifier's half needs: Harbor's folder as it is, for evidence renames odd files."""
    packed = bench.work / HALF_FILES
    evidence.pack(bench.work / report.trial_dir, packed, bench.hidden(bench.head()))
    bench.store.put_file(folder + HALF_FILES, packed)
    bench.store.put(folder + HALF_REPORT, report.canonical())
    half = AgentHalf(record=record, gradable=True, trial_dir=HALF_FILES)
    bench.store.put(folder + layout.AGENT_HALF, half.canonical())
    return EXIT_DONE


def _gradable(ended: Ended) -> bool:
    report = ended.report
    return report is not None and report.gradable and not ended.stop and not report.policy_mismatch
