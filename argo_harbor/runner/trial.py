"""Runs one try of a trial from the plan to its record: what `trial`, `agent` and `verify` do.

`started.json` is written first and `trial.json` last, so that whoever finds the one without the other knows
that the try was lost. The whole trial runs in one sandbox; with a separate verifier `agent` runs the
agent's half and leaves `agent.json`, and `verify` grades that half in a sandbox of its own and writes the
joint record.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import sys
from dataclasses import dataclass
from pathlib import Path

from argo_harbor.bundle.plans import read_head, read_part
from argo_harbor.errors import HarborError, PlatformError
from argo_harbor.model.plan import TaskPlan
from argo_harbor.model.record import AgentHalf, AttemptRef, TrialRecord, TrialStarted
from argo_harbor.model.runner import RunnerSettings, SandboxSettings
from argo_harbor.model.states import Outcome
from argo_harbor.planning.local import local_network
from argo_harbor.runner import evidence
from argo_harbor.runner.clock import now
from argo_harbor.runner.command import Command
from argo_harbor.runner.grants import GrantedValues, secrets
from argo_harbor.runner.job import TRIALS, Job, Report
from argo_harbor.runner.outcome import is_final, judge
from argo_harbor.runner.process import Interrupt
from argo_harbor.runner.record import Setting, facts_of, record_of
from argo_harbor.runner.supervise import LOG_FILE, Ended, run_child
from argo_harbor.runner.tries import earlier_tries, find_half, read_record
from argo_harbor.runner.workspace import workspace
from argo_harbor.sources.fetch import fetch_task
from argo_harbor.store import layout
from argo_harbor.store.base import Store

EXIT_DONE = 0
"""A record that decides the attempt is in the store."""
EXIT_AGAIN = 75
"""A further try shall run (EX_TEMPFAIL)."""
CLOSING_SECONDS = 60.0
"""What the outer clock leaves beyond the planned phases: interpreters start, evidence is uploaded."""
HALF_REPORT = "agent-report.json"
HALF_FILES = "agent-files.tar.gz"


@dataclass(frozen=True, slots=True)
class Runner:
    """One try and everything that it needs."""

    command: Command
    store: Store
    settings: RunnerSettings
    target: GrantedValues
    """Granted variables of the agent phase."""
    verifier: GrantedValues
    interrupt: Interrupt

    def run(self) -> int:
        """Raises: PlatformError `plan_unreadable`, `store_write_failed`."""
        if self.command.mode == "verify":
            return self._verify()
        return self._run_agent()

    def _run_agent(self) -> int:
        command = self.command
        before = earlier_tries(
            self.store,
            run=command.run,
            index=command.index,
            attempt=command.attempt,
            before=command.try_,
        )
        if before.decided:
            return EXIT_DONE
        setting = self._setting(command.uid, command.try_, now())
        folder = layout.try_folder(command.run, command.index, command.attempt, command.try_, command.uid)
        started = TrialStarted(ref=setting.ref, started_at=setting.started_at, node=setting.node)
        self.store.put(folder + layout.STARTED, started.canonical())
        with workspace(Path(self.settings.sandbox.run_scratch), _work_name(setting.ref)) as work:
            ended = self._drive(setting, work)
            files = self._upload(work, folder)
            verdict = judge(facts_of(ended.report, ended.stop, ended.detail), setting.head.reward_key)
            gradable = command.mode == "agent" and _gradable(ended)
            final = not gradable and is_final(
                verdict,
                earlier=before.outcomes,
                max_retries=setting.head.max_retries,
                infra_retries=setting.head.infra_retries,
            )
            record = record_of(setting, ended.report, verdict, final=final, finished_at=now(), files=files)
            if gradable and ended.report is not None:
                return self._leave_half(work, folder, record, ended.report)
        return self._leave(folder, record)

    def _leave_half(self, work: Path, folder: str, record: TrialRecord, report: Report) -> int:
        """Leave what the verifier's half needs: Harbor's folder as it is, for evidence renames odd files."""
        packed = work / HALF_FILES
        evidence.pack(work / report.trial_dir, packed, self._secrets())
        self.store.put_file(folder + HALF_FILES, packed)
        self.store.put(folder + HALF_REPORT, report.canonical())
        half = AgentHalf(record=record, gradable=True, trial_dir=HALF_FILES)
        self.store.put(folder + layout.AGENT_HALF, half.canonical())
        return EXIT_DONE

    def _leave(self, folder: str, record: TrialRecord) -> int:
        self.store.put(folder + layout.TRIAL, record.canonical())
        return EXIT_DONE if record.final else EXIT_AGAIN

    def _verify(self) -> int:
        command = self.command
        found = find_half(self.store, run=command.run, index=command.index, attempt=command.attempt)
        if found is None:
            raise PlatformError(
                "plan_unreadable", "there is no agent's half to grade", "run the agent's half first"
            )
        folder, half = found
        known = read_record(self.store, folder)
        if known is not None and known.final:
            return EXIT_DONE
        first = half.record
        setting = self._setting(first.ref.uid, first.ref.try_, first.started_at)
        with workspace(Path(self.settings.sandbox.run_scratch), _work_name(setting.ref) + "-verify") as work:
            source = work / "half" / _trial_name(setting)
            self.store.get_file(folder + HALF_FILES, work / HALF_FILES)
            evidence.unpack(work / HALF_FILES, source)
            ended = self._drive(setting, work, source=source)
            joint = _join(Report.from_json(self.store.get(folder + HALF_REPORT)), ended.report)
            verdict = judge(facts_of(joint, ended.stop, ended.detail), setting.head.reward_key)
            final = is_final(
                verdict,
                # A further try of this half leaves no record: its number says how many there were.
                earlier=[verdict.outcome] * command.try_,
                max_retries=setting.head.max_retries,
                infra_retries=setting.head.infra_retries,
            )
            if not final and verdict.outcome in (Outcome.ERRORED, Outcome.INFRASTRUCTURE):
                return EXIT_AGAIN
            uploaded = self._upload(work, folder, only=("verifier",))
            files = tuple(sorted({*first.files, *uploaded}))
            record = record_of(setting, joint, verdict, final=final, finished_at=now(), files=files)
        return self._leave(folder, record)

    def _setting(self, uid: str, try_: int, started_at: str) -> Setting:
        command = self.command
        head = read_head(command.plan, self.store)
        try:
            part = read_part(head, command.plan, command.index, self.store)
        except KeyError as error:
            raise PlatformError(
                "plan_unreadable", f"the plan has no task {command.index}", "submit again"
            ) from error
        ref = AttemptRef.model_validate(
            {
                "run": command.run,
                "plan": command.plan,
                "index": command.index,
                "attempt": command.attempt,
                "try": try_,
                "uid": uid,
            }
        )
        return Setting(ref, head, part, self._sandbox(part), platform.node(), started_at)

    def _sandbox(self, part: TaskPlan) -> SandboxSettings:
        """How this task's sandboxes are made: the host's network only for what is public in every phase."""
        rule = local_network(part)
        public = rule is not None and rule.mode == "public"
        return (
            self.settings.sandbox if public else self.settings.sandbox.model_copy(update={"network": "none"})
        )

    def _drive(self, setting: Setting, work: Path, source: Path | None = None) -> Ended:
        task_dir = work / "task" / setting.part.folder
        try:
            fetch_task(self.store, setting.part.digest, task_dir)
        except HarborError as error:
            report = Report(created=False, unusable=f"{error.code}: {error.message}", trial_dir="")
            return Ended(report)
        job = Job(
            mode=self.command.mode,
            part=setting.part,
            agent=setting.head.agent,
            sandbox=setting.sandbox,
            task_dir=str(task_dir),
            work_dir=str(work),
            trial_name=_trial_name(setting),
            source_trial=str(source) if source else "",
            target_env=self.target,
            verifier_env=self.verifier,
        )
        outer = setting.part.verifier_outer_seconds if self.command.mode == "verify" else 0
        return asyncio.run(
            run_child(
                job,
                outer_seconds=(outer or setting.part.outer_seconds) + CLOSING_SECONDS,
                run_deadline=self.command.deadline,
                interrupt=self.interrupt,
                on_phase=announce,
            )
        )

    def _upload(self, work: Path, folder: str, only: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Put Harbor's folder of the trial into the try's, or only some of its parts, and our own log."""
        hidden = self._secrets()
        stored: set[str] = set()
        for trial_dir in sorted((work / TRIALS).glob("*")):
            for part in only or ("",):
                prefix = f"{part}/" if part else ""
                for name in evidence.upload(self.store, trial_dir / part, folder + prefix, hidden):
                    stored.add(prefix + name)
        log = work / LOG_FILE
        if log.exists() and log.stat().st_size:
            stored.update(evidence.upload_file(self.store, log, folder, hidden))
        return tuple(sorted(stored))

    def _secrets(self) -> tuple[str, ...]:
        return secrets(read_head(self.command.plan, self.store).grants, {**self.target, **self.verifier})


def announce(phase: str) -> None:
    """Tell the engine where the trial is. When the engine is gone, the trial still ends well."""
    try:
        print(json.dumps({"phase": phase}), flush=True)
    except BrokenPipeError:
        # The interpreter flushes once more at its end, and must not fail there.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _gradable(ended: Ended) -> bool:
    report = ended.report
    return report is not None and report.gradable and not ended.stop and not report.policy_mismatch


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
            "links": first.links + second.links,
            "ignored_from": tuple(dict.fromkeys((*first.ignored_from, *second.ignored_from))),
        }
    )


def _trial_name(setting: Setting) -> str:
    """Harbor's name of the trial: a folder, and what its own viewer shows."""
    ref = setting.ref
    return f"{setting.part.folder[:32].rstrip('_-')}__{ref.index}-{ref.attempt}-{ref.try_}"


def _work_name(ref: AttemptRef) -> str:
    return f"{ref.index}-{ref.attempt}-{ref.try_}-{ref.uid[:8]}"
