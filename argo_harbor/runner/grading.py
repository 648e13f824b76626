"""Grades the agent's half of a trial in a sandbox of its own: what `verify` runs.

It takes up what `trial` left, always writes the joint `trial.json`, and may be repeated without the agent.
"""

from __future__ import annotations

from argo_harbor.errors import PlatformError
from argo_harbor.model.states import Outcome
from argo_harbor.runner import evidence
from argo_harbor.runner.bench import EXIT_DONE, Bench, trial_name
from argo_harbor.runner.clock import now
from argo_harbor.runner.exits import EXIT_AGAIN
from argo_harbor.runner.job import Report
from argo_harbor.runner.outcome import is_final, judge
from argo_harbor.runner.record import facts_of, record_of
from argo_harbor.runner.trial import HALF_FILES, HALF_REPORT
from argo_harbor.runner.tries import find_half, has_final, read_record
from argo_harbor.store import layout


def run_grading(bench: Bench) -> int:
    """The exit status. Raises: PlatformError `plan_unreadable`, `run_id_reused`, `store_write_failed`."""
    command, store = bench.command, bench.store
    bench.place.claim(store, command.run)
    found = find_half(store, run=command.run, index=command.index, attempt=command.attempt)
    if found is None:
        if has_final(store, run=command.run, index=command.index, attempt=command.attempt):
            # The agent's half ended without anything to grade, and has decided the attempt.
            return EXIT_DONE
        raise PlatformError(
            "plan_unreadable", "there is no agent's half to grade", "run the agent's half first"
        )
    folder, half = found
    known = read_record(store, folder)
    if known is not None and known.final:
        return EXIT_DONE
    first = half.record
    head = bench.head()
    setting = bench.setting(head, uid=first.ref.uid, try_=first.ref.try_, started_at=first.started_at)
    admission = bench.place.admit(store, command.run, head, folder + layout.STARTED)
    source = bench.work / "half" / trial_name(setting)
    store.get_file(folder + HALF_FILES, bench.work / HALF_FILES)
    evidence.unpack(bench.work / HALF_FILES, source)
    uploads = bench.uploads(head, folder)
    ended = bench.drive(setting, admission, uploads, source=source)
    joint = _join(Report.from_json(store.get(folder + HALF_REPORT)), ended.report)
    verdict = judge(facts_of(joint, ended.stop, ended.detail), head.reward_key)
    final = is_final(
        verdict,
        # A further try of this half leaves no record: its number says how many there were.
        earlier=[verdict.outcome] * command.try_,
        max_retries=head.max_retries,
        infra_retries=head.infra_retries,
    )
    if not final and verdict.outcome in (Outcome.ERRORED, Outcome.INFRASTRUCTURE):
        return EXIT_AGAIN
    files = tuple(sorted({*first.files, *bench.upload(uploads, only=("verifier",))}))
    record = record_of(setting, joint, verdict, final=final, finished_at=now(), files=files, half=first)
    return bench.leave(folder, record, ended, admission)


def _join(first: Report, second: Report | None) -> Report:
    """One report of both halves: the agent's, and what grading it showed."""
    if second is None:
        return first
    return first.model_copy(
        update={
            "created": second.created,
            "unusable": second.unusable,
            "phase": second.phase,
            "failure": first.failure or second.failure,
            "gradings": second.gradings,
            "tampered": second.tampered,
            "policy_mismatch": second.policy_mismatch,
            "phases": {**first.phases, "verifier": second.phases["verifier"]}
            if "verifier" in second.phases
            else first.phases,
            "policies": first.policies | second.policies,
            "refused": first.refused | {"verifier": second.refused.get("verifier", ())}
            if "verifier" in second.refused
            else first.refused,
            "links": first.links + second.links,
            "ignored_from": tuple(dict.fromkeys((*first.ignored_from, *second.ignored_from))),
            "graded_at": second.graded_at,
        }
    )
