"""What every kind of try needs: its setting, its scratch folder, the child that runs Harbor, its uploads.

Used by `trial` for whole trials and agent's halves, and by `grading` for verifier's halves.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from argo_harbor.bundle.plans import read_head, read_part
from argo_harbor.errors import HarborError, PlatformError
from argo_harbor.model.plan import PlanHead
from argo_harbor.model.record import AttemptRef, TrialRecord
from argo_harbor.runner.built import image_digest
from argo_harbor.runner.command import Command
from argo_harbor.runner.evidence import Uploads
from argo_harbor.runner.exits import EXIT_AGAIN
from argo_harbor.runner.grants import secrets
from argo_harbor.runner.harbor_process import LOG_FILE, HarborProcess
from argo_harbor.runner.job import GRADED, TRIALS, Job, Report
from argo_harbor.runner.place import Admission, Place
from argo_harbor.runner.process import Interrupt
from argo_harbor.runner.record import Setting
from argo_harbor.runner.supervise import Ended, run_child
from argo_harbor.sources.fetch import fetch_task
from argo_harbor.store import layout
from argo_harbor.store.base import Store

EXIT_DONE = 0
"""A record that decides the attempt is in the store."""
_WHOLE = ("agent", "verifier", "artifacts", "steps")
"""Parts of Harbor's folder that are complete once the last grading has been read."""


@dataclass(slots=True)
class Bench:
    """One try at work."""

    command: Command
    store: Store
    place: Place
    interrupt: Interrupt
    child: HarborProcess
    _head: PlanHead | None = None
    _aside: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1))

    @property
    def work(self) -> Path:
        """The try's scratch folder."""
        return self.child.work

    def head(self) -> PlanHead:
        """The plan's head, read once. Raises: PlatformError `plan_unreadable`."""
        if self._head is None:
            self._head = read_head(self.command.plan, self.store)
        return self._head

    def setting(self, head: PlanHead, *, uid: str, try_: int, started_at: str) -> Setting:
        """Raises: PlatformError `plan_unreadable`."""
        command = self.command
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
        return Setting(
            ref=ref,
            head=head,
            part=part,
            sandbox=self.place.sandbox(head, part),
            node=self.place.node,
            started_at=started_at,
            began_at=self.place.began_at or started_at,
            image_digest=image_digest(self.store, command.run, part.images.agent),
        )

    def uploads(self, head: PlanHead, folder: str) -> Uploads:
        """What will be stored in the try's folder, the granted secrets blotted out."""
        return Uploads(self.store, folder, self.hidden(head))

    def hidden(self, head: PlanHead) -> tuple[str, ...]:
        granted = self.place.grants(head)
        return secrets(head.grants, granted.target | granted.verifier, granted.model_key)

    def drive(
        self, setting: Setting, admission: Admission, uploads: Uploads, *, source: Path | None = None
    ) -> Ended:
        """Fetch the task and run the child. `source` is Harbor's folder of the half to grade.

        What is complete when the last grading has been read is uploaded while the child still looks for
        rewards that come back.
        """
        if admission.stop:
            return Ended(None, admission.stop, admission.detail)
        task_dir = self.work / "task" / setting.part.folder
        try:
            fetch_task(self.store, setting.part.digest, task_dir)
        except HarborError as error:
            return Ended(Report(created=False, unusable=f"{error.code}: {error.message}", trial_dir=""))

        def on_phase(phase: str) -> None:
            if phase == GRADED:
                self._aside.submit(self._upload_whole, uploads)
            else:
                self.place.announce(phase)

        part = setting.part
        planned = part.verifier_outer_seconds if self.command.mode == "verify" else 0
        try:
            return asyncio.run(
                run_child(
                    self.child,
                    self._job(setting, task_dir, source),
                    outer_seconds=self.place.outer_seconds(planned or part.outer_seconds),
                    run_deadline=admission.deadline,
                    interrupt=self.interrupt,
                    on_phase=on_phase,
                    grace=self.place.grace,
                )
            )
        finally:
            self._aside.shutdown()

    def _job(self, setting: Setting, task_dir: Path, source: Path | None) -> Job:
        granted = self.place.grants(setting.head)
        return Job(
            mode=self.command.mode,
            part=setting.part,
            agent=setting.head.agent,
            sandbox=setting.sandbox,
            task_dir=str(task_dir),
            work_dir=str(self.work),
            trial_name=trial_name(setting),
            source_trial=str(source) if source else "",
            target_env=granted.target,
            verifier_env=granted.verifier,
            model_key=granted.model_key,
        )

    def _upload_whole(self, uploads: Uploads) -> None:
        # What does not get through here is tried once more when the child has ended, and then counts.
        with suppress(HarborError, OSError):
            for part in ("verifier",) if self.command.mode == "verify" else _WHOLE:
                for trial_dir in self.trial_dirs():
                    uploads.add(trial_dir / part, f"{part}/")

    def upload(self, uploads: Uploads, *, only: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Put Harbor's folder of the trial into the try's, or only some of its parts, and our own log.

        Returns the stored paths, sorted.
        """
        for trial_dir in self.trial_dirs():
            for part in only or ("",):
                uploads.add(trial_dir / part, f"{part}/" if part else "")
        log = self.work / LOG_FILE
        if log.exists() and log.stat().st_size:
            uploads.add_file(log)
        return uploads.names

    def trial_dirs(self) -> list[Path]:
        return sorted((self.work / TRIALS).glob("*"))

    def leave(self, folder: str, record: TrialRecord, ended: Ended, admission: Admission) -> int:
        """Put the record, which says that the try is over. Returns the exit status."""
        self.store.put(folder + layout.TRIAL, record.canonical())
        self.place.leave(record, self.work, self.hidden(self.head()))
        if record.final:
            return EXIT_DONE
        if ended.stop in ("cancelled", "expired"):
            return self.place.stopped_status(ended.stop, before=bool(admission.stop))
        return EXIT_AGAIN


def trial_name(setting: Setting) -> str:
    """Harbor's name of the trial: a folder, and what its own viewer shows."""
    ref = setting.ref
    return f"{setting.part.folder[:32].rstrip('_-')}__{ref.index}-{ref.attempt}-{ref.try_}"
