"""What the store holds of a run, held against the plan: the record that decides each planned attempt, or why
there is none.

One listing, then one read a try until one decides; records are handed on one at a time, so that memory does
not grow with them. Called by the merge, and by whoever shows results before it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace

from argo_harbor.bundle.builds import FailedBuilds
from argo_harbor.bundle.earlier import UNSTARTED
from argo_harbor.bundle.trust import MAX_RECORD_BYTES, RecordRejected, read_record
from argo_harbor.model.bundle import MissingAttempt, Problem
from argo_harbor.model.causes import NOTHING_KNOWN, Cause, Causes
from argo_harbor.model.plan import PlanHead, TaskEntry
from argo_harbor.model.record import TrialRecord
from argo_harbor.model.states import Outcome, RunPhase
from argo_harbor.store import layout
from argo_harbor.store.base import KeyNotFound, Store
from argo_harbor.store.parallel import in_order

MAX_PROBLEMS = 1000
"""Of one run: a broken runner would otherwise repeat itself once a trial."""


@dataclass(slots=True)
class Try:
    """One try as the listing shows it."""

    number: int
    uid: str
    """First 8 hex."""
    folder: str
    """Key of its folder, with a trailing slash."""
    modified: float = 0.0
    """Store time of its record, else of its start."""
    record_size: int = -1
    """Bytes of `trial.json`; -1 when there is none."""


Seen = dict[tuple[str, float, int], TrialRecord]
"""Records of earlier looks at a run, by folder, store time and size: who watches reads each of them once."""


@dataclass(frozen=True, slots=True)
class Collected:
    """One planned attempt. Exactly one of `record` and `missing` is there."""

    entry: TaskEntry
    attempt: int
    tries: int
    """Tries that started."""
    record: TrialRecord | None
    folder: str
    """Store key of the deciding try's folder; empty when missing."""
    missing: MissingAttempt | None
    silent: bool = False
    """True when the latest try has left no readable record: it runs, or it was lost."""
    problems: tuple[Problem, ...] = ()
    """What is wrong with its tries."""


@dataclass(slots=True)
class Collector:
    """Reads one run. Iterate once over `attempts`; `unplanned` is complete afterwards."""

    run_id: str
    store: Store
    head: PlanHead
    plan_digest: str
    ended_by: RunPhase | None = None
    """`cancelled` or `expired` where that is known: then it is why attempts never started."""
    causes: Causes = NOTHING_KNOWN
    """What else is known about attempts without a record."""
    seen: Seen | None = None
    """Filled and used where it is given; without it no record is kept in memory."""
    unplanned: list[Problem] = field(default_factory=list)
    """Tries that the plan knows nothing of."""

    def attempts(self, only: Collection[int] | None = None) -> Iterator[Collected]:
        """Every planned attempt, by index and attempt; of some tasks only, by index, if `only` is given."""
        tries = self._list()
        builds = FailedBuilds(self.run_id, self.store, self.head, self.plan_digest)
        planned = [
            (entry, attempt, tries.pop((entry.index, attempt), []))
            for entry in sorted(self.head.tasks, key=lambda entry: entry.index)
            if only is None or entry.index in only
            for attempt in range(self.head.n_attempts)
        ]
        yield from in_order(lambda each: self._decide(*each, builds), planned, threads=self.store.parallel)
        if only is not None:
            return
        for (index, attempt), left in sorted(tries.items()):
            message = f"{left[0].folder}: the plan has no attempt {attempt} at task {index}"
            self.unplanned.append(Problem(code="attempt_unplanned", message=message))

    def _list(self) -> dict[tuple[int, int], list[Try]]:
        found: dict[str, Try] = {}
        by_attempt: dict[tuple[int, int], list[Try]] = {}
        for entry in self.store.list(layout.trials(self.run_id)):
            if not entry.key.endswith(("/" + layout.STARTED, "/" + layout.TRIAL)):
                continue
            key = layout.parse_try(entry.key)
            if key is None or key.file not in (layout.STARTED, layout.TRIAL):
                continue
            folder = entry.key[: -len(key.file)]
            if folder not in found:
                found[folder] = Try(key.try_, key.uid, folder, entry.modified)
                by_attempt.setdefault((key.index, key.attempt), []).append(found[folder])
            if key.file == layout.TRIAL:
                found[folder].record_size = entry.size
                found[folder].modified = entry.modified
        return by_attempt

    def _decide(self, entry: TaskEntry, attempt: int, tries: list[Try], builds: FailedBuilds) -> Collected:
        problems: list[Problem] = []
        collected = self._decided(entry, attempt, tries, builds, problems)
        return replace(collected, problems=tuple(problems)) if problems else collected

    def _decided(
        self,
        entry: TaskEntry,
        attempt: int,
        tries: list[Try],
        builds: FailedBuilds,
        problems: list[Problem],
    ) -> Collected:
        tries.sort(key=lambda one: (one.number, one.modified, one.uid))
        errored: tuple[TrialRecord, str] | None = None
        latest: TrialRecord | None = None
        for one in tries:
            latest = self._read(entry, attempt, one, problems)
            if latest is None or latest.outcome in (Outcome.CANCELLED, Outcome.EXPIRED):
                continue
            if latest.final:
                return Collected(entry, attempt, len(tries), latest, one.folder, None)
            if latest.outcome is Outcome.ERRORED:
                errored = latest, one.folder
        silent = bool(tries) and latest is None
        if errored is not None:
            return Collected(entry, attempt, len(tries), errored[0], errored[1], None, silent)
        missing = self._missing(entry, attempt, tries, latest, builds)
        return Collected(entry, attempt, len(tries), None, "", missing, silent)

    def _read(self, entry: TaskEntry, attempt: int, one: Try, problems: list[Problem]) -> TrialRecord | None:
        if one.record_size < 0:
            return None
        version = (one.folder, one.modified, one.record_size)
        if self.seen is not None and version in self.seen:
            return self.seen[version]
        try:
            if one.record_size > MAX_RECORD_BYTES:
                raise RecordRejected("record_broken", f"it has {one.record_size} bytes")
            record = read_record(
                self.store.get(one.folder + layout.TRIAL),
                run=self.run_id,
                plan=self.plan_digest,
                index=entry.index,
                attempt=attempt,
                try_=one.number,
                uid=one.uid,
                task_name=entry.name,
            )
            if self.seen is not None:
                self.seen[version] = record
            return record
        except RecordRejected as error:
            problems.append(Problem(code=error.code, message=f"{one.folder}{layout.TRIAL}: {error}"))
        except KeyNotFound:
            gone = f"{one.folder}{layout.TRIAL}: it was listed and is gone"
            problems.append(Problem(code="record_broken", message=gone))
        return None

    def _missing(
        self,
        entry: TaskEntry,
        attempt: int,
        tries: list[Try],
        latest: TrialRecord | None,
        builds: FailedBuilds,
    ) -> MissingAttempt:
        known = self.causes.of(entry.index, attempt)
        unstarted = known or self.causes.unstarted.get((entry.index, attempt))
        code, cause = self._why(entry, tries, latest, known) or self._why_unstarted(entry, unstarted, builds)
        return MissingAttempt(attempt=attempt, code=code, cause=cause, tries=len(tries))

    def _why(
        self, entry: TaskEntry, tries: list[Try], latest: TrialRecord | None, known: Cause | None
    ) -> Cause | None:
        """Of a skipped task, or an attempt that started; None for one that did not."""
        if entry.skipped is not None:
            return Cause(entry.skipped.code, entry.skipped.message)
        if latest is not None:
            code = latest.error.code if latest.error else latest.outcome.value
            said = latest.error.message if latest.error else ""
            ended = f"try {latest.ref.try_} ended {latest.outcome.value} and none followed"
            return Cause(code, said or ended)
        if tries:
            lost = f"try {tries[-1].number} started and left no record"
            return Cause("trial_lost", f"{lost}: {known.message}" if known else lost)
        return None

    def _why_unstarted(self, entry: TaskEntry, known: Cause | None, builds: FailedBuilds) -> Cause:
        if cause := builds.of(entry) or known:
            return cause
        if self.ended_by is not None:
            return Cause(self.ended_by.value, f"the run was {self.ended_by.value} before it started")
        return self.causes.others or UNSTARTED
