"""`runs verify`: is a bundle whole and unchanged, do its numbers add up, and may its scores be reported?"""

from __future__ import annotations

import hashlib
import os
import stat
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from argo_harbor.bundle.read import bundle_folder, read_file, read_rows
from argo_harbor.errors import PlatformError
from argo_harbor.model.bundle import (
    MANIFEST_FILE,
    METADATA_FILE,
    RUN_FILE,
    SCORES_FILE,
    SUMMARY_FILE,
    TASKS_FILE,
    TRIALS_FILE,
    CoverageCounts,
    Manifest,
    Metadata,
    Problem,
    RunFacts,
    RunFile,
    ScoreRow,
    Summary,
    TaskRow,
    TrialRow,
)
from argo_harbor.model.documents import VerifyDocument
from argo_harbor.model.states import Outcome

CERTAIN = frozenset({"attempts_missing", "infrastructure_share", "network_unfenced", "rewards_all_equal"})
"""Codes that leave the scores reportable, as long as they are told with them."""
UNREPORTABLE = frozenset({"reward_keys_mixed", "nothing_scored", "bases_mixed"})
"""Codes of whole bundles whose scores must not be reported."""


def verify(path: Path) -> VerifyDocument:
    """Check the bundle at or below `path`; every problem at once.

    `ok` is false when a file is missing, changed, unlisted or no regular file, a row is broken or doubled, or
    the planned attempts are not the scored, failed and missing ones.
    """
    try:
        folder = bundle_folder(path)
        # Opening a pipe never ends, and what a link leads to is not part of the bundle.
        problems = [*_check_kinds(folder)] or [*_check_files(folder), *_check_rows(folder)]
    except PlatformError as error:
        problems = [Problem(code=error.code, message=error.message)]
    codes = {problem.code for problem in problems}
    ok = codes <= CERTAIN | UNREPORTABLE
    return VerifyDocument(ok=ok, reportable=ok and not codes & UNREPORTABLE, problems=tuple(problems))


def _check_kinds(folder: Path) -> Iterator[Problem]:
    for path in sorted(_files(folder)):
        if not stat.S_ISREG((folder / path).lstat().st_mode):
            yield Problem(code="file_irregular", message=f"{path} is no regular file")


def _check_files(folder: Path) -> Iterator[Problem]:
    manifest = read_file(folder / MANIFEST_FILE, Manifest)
    # The manifest cannot list what is written after it.
    if read_file(folder / RUN_FILE, RunFile) != RunFile(run_id=manifest.run_id):
        yield Problem(code="file_changed", message=f"{RUN_FILE} is not that of {manifest.run_id}")
    listed = {entry.path: entry for entry in manifest.files}
    found = set(_files(folder)) - {MANIFEST_FILE, RUN_FILE}
    for path in sorted(listed.keys() - found):
        yield Problem(code="file_missing", message=f"{path} is in the manifest and not in the bundle")
    for path in sorted(found - listed.keys()):
        yield Problem(code="file_unlisted", message=f"{path} is in the bundle and not in the manifest")
    for path in sorted(found & listed.keys()):
        with (folder / path).open("rb") as source:
            if hashlib.file_digest(source, "sha256").hexdigest() != listed[path].sha256:
                yield Problem(code="file_changed", message=f"{path} is not what the manifest says")


def _files(folder: Path) -> Iterator[str]:
    for place, folders, names in os.walk(folder):
        links = [name for name in folders if os.path.islink(os.path.join(place, name))]
        for name in (*names, *links):
            yield os.path.relpath(os.path.join(place, name), folder).replace(os.sep, "/")


def _check_rows(folder: Path) -> Iterator[Problem]:
    metadata = read_file(folder / METADATA_FILE, Metadata)
    summary = read_file(folder / SUMMARY_FILE, Summary)
    tally = _Tally()
    for task in read_rows(folder / TASKS_FILE, TaskRow):
        tally.task(task)
    for trial in read_rows(folder / TRIALS_FILE, TrialRow):
        tally.trial(trial)
    for score in read_rows(folder / SCORES_FILE, ScoreRow):
        tally.score(score)
    yield from tally.doubled()
    yield from tally.coverage_problems(summary)
    yield from tally.reading_problems(_facts(metadata))


def _facts(metadata: Metadata) -> RunFacts:
    ours = metadata.target.config.get("argo_harbor") if metadata.target else None
    try:
        return RunFacts.from_data(ours)
    except ValidationError as error:
        raise PlatformError(
            "bundle_unreadable", f"{METADATA_FILE} does not say what the run was", "merge the run again"
        ) from error


class _Tally:
    """Counts rows as they come, so that a bundle of any size is checked in little memory."""

    def __init__(self) -> None:
        self.ids: Counter[tuple[str, str]] = Counter()
        self.tasks: set[str] = set()
        self.trials: set[str] = set()
        self.orphans: list[str] = []
        self.planned = 0
        self.missing = 0
        self.scored = 0
        self.failed = 0
        self.infrastructure = 0
        self.reward_keys: set[str] = set()
        self.bases: set[str] = set()
        self.networks: set[str] = set()
        self.rewards: set[float] = set()

    def task(self, row: TaskRow) -> None:
        self.ids["task", row.id] += 1
        self.tasks.add(row.id)
        self.planned += row.metadata.planned_attempts
        self.missing += len(row.metadata.missing)

    def trial(self, row: TrialRow) -> None:
        self.ids["trial", row.id] += 1
        self.trials.add(row.id)
        if row.task_id not in self.tasks:
            self.orphans.append(f"trial {row.id} belongs to no task of the bundle")
        ours = row.metadata.argo_harbor
        self.bases.add(ours.sandbox.base)
        self.networks.add(ours.sandbox.network)
        self.infrastructure += ours.outcome is Outcome.INFRASTRUCTURE
        if row.metadata.harbor_primary_reward_key is not None:
            self.reward_keys.add(row.metadata.harbor_primary_reward_key)

    def score(self, row: ScoreRow) -> None:
        self.ids["score", row.id] += 1
        if row.trial_id not in self.trials:
            self.orphans.append(f"score {row.id} belongs to no trial of the bundle")
        if row.status == "completed":
            self.scored += 1
            self.rewards.update(output.value for output in row.outputs if isinstance(output.value, float))
        else:
            self.failed += 1

    def doubled(self) -> Iterator[Problem]:
        for (kind, identity), times in self.ids.items():
            if times > 1:
                yield Problem(code="row_doubled", message=f"{kind} {identity} is there {times} times")
        for message in self.orphans:
            yield Problem(code="row_orphaned", message=message)

    def coverage_problems(self, summary: Summary) -> Iterator[Problem]:
        total = self.scored + self.failed + self.missing
        if self.planned != total:
            yield Problem(
                code="coverage_mismatch",
                message=f"planned {self.planned} attempts, and {self.scored} scored + {self.failed} failed + "
                f"{self.missing} missing are {total}",
            )
        counted = CoverageCounts(
            total=self.planned, scored=self.scored, failed=self.failed, missing=self.missing
        )
        for metric, outputs in summary.metric_coverage.items():
            for output, coverage in outputs.items():
                if coverage != counted:
                    yield Problem(
                        code="coverage_mismatch",
                        message=f"the summary's coverage of {metric}.{output} is not that of the rows",
                    )
        if self.missing:
            yield Problem(
                code="attempts_missing", message=f"{self.missing} of {self.planned} attempts are missing"
            )

    def reading_problems(self, facts: RunFacts) -> Iterator[Problem]:
        if facts.coverage.total != self.planned:
            yield Problem(
                code="coverage_mismatch",
                message=f"the run planned {facts.coverage.total} attempts, the tasks {self.planned}",
            )
        if not self.scored:
            yield Problem(code="nothing_scored", message="no attempt is scored")
        if len(self.reward_keys) > 1:
            keys = ", ".join(sorted(self.reward_keys))
            yield Problem(code="reward_keys_mixed", message=f"rewards of several keys are scored: {keys}")
        if len(self.bases) > 1:
            yield Problem(code="bases_mixed", message="some trials ran on images, some on the preview base")
        if "unfenced" in self.networks:
            yield Problem(code="network_unfenced", message="trials shared the host's network")
        if self.infrastructure:
            share = self.infrastructure / max(self.planned, 1)
            yield Problem(
                code="infrastructure_share",
                message=f"{self.infrastructure} of {self.planned} attempts ({share:.0%}) ended in "
                "infrastructure faults",
            )
        if self.scored > 1 and len(self.rewards) == 1:
            yield Problem(
                code="rewards_all_equal",
                message=f"all {self.scored} rewards are {next(iter(self.rewards)):g}",
            )
