"""What the report page shows, in its order: built here from facts, laid out by the template. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cached_property

from argo_harbor.bundle import wording
from argo_harbor.bundle.facts import TaskFacts, trial_id
from argo_harbor.bundle.gather import Gathered
from argo_harbor.bundle.kinds import KINDS, MISSING, Kind, kind_of
from argo_harbor.bundle.page_parts import (
    Bar,
    Card,
    Cell,
    Counted,
    Fact,
    Place,
    Reason,
    Rollup,
    Row,
    reason_of,
    rows_of,
)
from argo_harbor.bundle.summary import score_name
from argo_harbor.bundle.trust import seconds_between
from argo_harbor.model.bundle import CoverageCounts, Problem, RunFacts, Score, Summary
from argo_harbor.model.states import RunPhase
from argo_harbor.version import __version__

MAX_ROWS = 2500
"""A page of more rows is slow to open; the rest stands in `trials.jsonl`."""
MAX_PROBLEMS = 50
DENSE = 400
"""Cells above which the picture gets smaller ones."""


class Page:
    """All values of the template, computed when it asks for them."""

    def __init__(self, gathered: Gathered, facts: RunFacts, summary: Summary) -> None:
        self._gathered = gathered
        self._facts = facts
        self._summary = summary
        self._scores = {score.name: score for score in summary.scores.scores}
        self._reward = score_name(gathered.head.reward_key)
        self.run = gathered.run_id
        self.phase = facts.phase.value
        self.engine = facts.engine or "unknown"
        self.profile = facts.profile
        self.coverage: CoverageCounts = facts.coverage
        self.task_count = summary.task_count
        self.trial_count = summary.trial_count
        self.score_count = summary.score_count
        self.problems: tuple[Problem, ...] = facts.problems[:MAX_PROBLEMS]
        self.made_by = f"argo-harbor {__version__}"

    @property
    def title(self) -> str:
        return f"{self._gathered.head.taskset.name} · {self._gathered.head.agent.name}"

    @property
    def started(self) -> str:
        began = self._gathered.started_at
        return f"{began[:16].replace('T', ' ')} UTC" if began else ""

    @property
    def wall(self) -> str:
        return wording.duration(self._wall) if self._gathered.trials else ""

    @cached_property
    def _wall(self) -> float:
        return seconds_between(self._gathered.started_at or "", self._gathered.finished_at or "")

    @property
    def notices(self) -> list[str]:
        """What a reader must know before any number."""
        found = []
        if self._facts.phase is RunPhase.CANCELLED:
            found.append("The run was cancelled; what had ended by then is here.")
        if self._facts.phase is RunPhase.EXPIRED:
            found.append(
                "The run's time was spent before everything had run; what had ended by then is here."
            )
        if "preview" in self._facts.bases:
            found.append(
                "Preview base: images were not built and the tasks' FROM was ignored. "
                "These results do not compare with results on the tasks' own images."
            )
        if "unfenced" in self._facts.networks:
            found.append("Network unfenced: trials shared the host's network.")
        return found

    @cached_property
    def _all_rows(self) -> list[Row]:
        return [row for task in self._gathered.tasks for row in rows_of(task, self._gathered.head.reward_key)]

    @cached_property
    def rows(self) -> list[Row]:
        """By task and attempt; of very many only the first, those without a clean score before the others."""
        if len(self._all_rows) <= MAX_ROWS:
            return self._all_rows
        chosen = sorted(self._all_rows, key=lambda row: (-row.kind.order, row.index, row.attempt))[:MAX_ROWS]
        return sorted(chosen, key=lambda row: (row.index, row.attempt))

    @property
    def left_out(self) -> int:
        return len(self._all_rows) - len(self.rows)

    @cached_property
    def _shown(self) -> set[str]:
        return {row.id for row in self.rows}

    @cached_property
    def kinds(self) -> list[Counted]:
        counts = Counter(row.kind.name for row in self._all_rows)
        return [Counted(kind.name, kind.sign, kind.label, counts[kind.name]) for kind in KINDS]

    @property
    def counts_text(self) -> str:
        return ", ".join(f"{kind.count} {kind.label}" for kind in self.kinds if kind.count)

    @property
    def grid_class(self) -> str:
        if self._gathered.head.n_attempts > 1:
            return " many"
        return " dense" if len(self._gathered.tasks) > DENSE else ""

    @property
    def cells(self) -> Iterable[Cell]:
        by_task: dict[int, list[Row]] = {}
        for row in self._all_rows:
            by_task.setdefault(row.index, []).append(row)
        for rows in by_task.values():
            outcomes = ", ".join(row.outcome for row in rows[:5]) + ("…" if len(rows) > 5 else "")
            title = f"{rows[0].task}: {outcomes}"
            yield Cell(self._href(rows[0].id), title, tuple(row.kind for row in rows))

    @property
    def mean(self) -> str:
        return wording.number(self._scores[self._reward].mean)

    @property
    def passes(self) -> list[Card]:
        """pass@1 and, with several attempts, the largest k."""
        names = [name for name in self._scores if name.startswith(f"{self._reward}.pass@")]
        cards = []
        for name in dict.fromkeys((names[0], names[-1])):
            score = self._scores[name]
            label = name.rpartition(".")[2]
            if isinstance(score.mean, float):
                interval = self._facts.intervals[name]
                note = f"95 %: {wording.percent(interval.low)} – {wording.percent(interval.high)}"
                cards.append(Card(label, wording.percent(score.mean), f"{note}, {score.count} tasks"))
            else:
                cards.append(Card(label, "–", "nothing measured"))
        return cards

    @property
    def reasons(self) -> list[Reason]:
        """Every error and every cause of a missing attempt, the most frequent first."""
        found: dict[tuple[str, Kind], list[tuple[Place, str]]] = {}
        for task in self._gathered.tasks:
            for trial in task.trials:
                if trial.error:
                    place = self._place(task, trial.attempt)
                    found.setdefault((trial.error, kind_of(trial)), []).append((place, trial.message))
            for gone in task.missing:
                place = self._place(task, gone.attempt)
                found.setdefault((gone.code, MISSING), []).append((place, gone.cause))
        reasons = [reason_of(code, kind, places) for (code, kind), places in found.items()]
        return sorted(reasons, key=lambda reason: (-reason.count, reason.kind.order, reason.code))

    @cached_property
    def _org(self) -> str:
        """The part before `/` that all tasks share, with it; lists of names leave it out."""
        orgs = {task.name.partition("/")[0] + "/" for task in self._gathered.tasks}
        shared = orgs.pop() if len(orgs) == 1 else ""
        return shared if all(len(task.name) > len(shared) for task in self._gathered.tasks) else ""

    def _place(self, task: TaskFacts, attempt: int, value: str = "") -> Place:
        name = task.name.removeprefix(self._org)
        if self._gathered.head.n_attempts > 1:
            name = trial_id(name, attempt)
        return Place(name, self._href(f"{task.entry.index}-{attempt}"), value)

    def _href(self, row: str) -> str:
        return f"#r{row}" if row in self._shown else "#trials"

    @property
    def spent(self) -> list[Card]:
        runtime = self._scores["runner.harbor.runtime_sec"]
        cards = [
            Card("Time of all trials", wording.duration(_float(runtime.sum))),
            Card(
                "Median trial",
                wording.duration(_float(runtime.median)),
                f"90 % within {wording.duration(_float(runtime.percentiles.p90))}",
            ),
        ]
        for name, label in (("prompt_tokens", "Tokens in"), ("completion_tokens", "Tokens out")):
            if score := self._scores.get(f"runner.harbor.{name}"):
                cards.append(Card(label, wording.tokens(int(_float(score.sum))), self._told(score)))
        if cost := self._scores.get("runner.harbor.cost_usd"):
            cards.append(Card("Cost", wording.dollars(_float(cost.sum)), self._told(cost)))
        return cards

    def _told(self, score: Score) -> str:
        return f"{score.nan_count} trials tell none" if score.nan_count else ""

    @cached_property
    def bars(self) -> list[Bar]:
        """Trials by duration; empty when there are too few to show a shape."""
        runtime = self._scores["runner.harbor.runtime_sec"]
        if runtime.count < 3 or len(runtime.histogram.bins) < 2:
            return []
        most = max(bar.count for bar in runtime.histogram.bins)
        return [
            Bar(
                round(58 * bar.count / most, 1),
                f"{wording.duration(bar.lower_bound)} – {wording.duration(bar.upper_bound)}: {bar.count}",
                wording.duration(bar.lower_bound),
                wording.duration(bar.upper_bound),
            )
            for bar in runtime.histogram.bins
        ]

    @property
    def bars_text(self) -> str:
        return "; ".join(bar.title for bar in self.bars)

    @property
    def slowest(self) -> list[Place]:
        timed = ((trial.seconds, task, trial) for task in self._gathered.tasks for trial in task.trials)
        longest = sorted(timed, key=lambda one: -one[0])[:6]
        return [
            self._place(task, trial.attempt, wording.duration(seconds)) for seconds, task, trial in longest
        ]

    @property
    def rollups(self) -> list[Rollup]:
        return [self._rollup(score) for score in self._summary.scores.scores]

    def _rollup(self, score: Score) -> Rollup:
        interval = self._facts.intervals.get(score.name)
        return Rollup(
            name=score.name,
            value=wording.number(score.mean),
            interval=f"{interval.low:.3f} – {interval.high:.3f}" if interval else "",
            median=wording.number(score.median),
            std_dev=wording.number(score.std_dev),
            count=score.count,
            nan=score.nan_count,
        )

    @property
    def has_tokens(self) -> bool:
        return "runner.harbor.prompt_tokens" in self._scores

    @property
    def has_cost(self) -> bool:
        return "runner.harbor.cost_usd" in self._scores

    @property
    def ground(self) -> list[Fact]:
        head = self._gathered.head
        agent = " ".join((head.agent.name, *self._gathered.distinct("agent_version")))
        facts = [
            Fact("Agent", f"{agent} · {head.agent.model.model}" if head.agent.model else agent),
            Fact("Taskset", self._facts.taskset_ref, mono=True),
            Fact("Selected", f"{len(head.tasks)} of {head.taskset.total} tasks"),
            Fact("Attempts", f"{head.n_attempts} per task"),
            Fact("Plan", self._facts.plan_digest, mono=True),
            Fact("Profile", self._facts.profile),
            Fact("Engine", self.engine),
            Fact("Base", ", ".join(self._facts.bases) or "unknown"),
            Fact("Network", ", ".join(self._facts.networks) or "unknown"),
            Fact("Reward key", ", ".join(self._gathered.distinct("reward_key")) or head.reward_key),
            Fact("Pass", "a reward of exactly 1"),
        ]
        return [*facts, Fact("Completes", head.parent, mono=True)] if head.parent else facts


def _float(value: float | str) -> float:
    return value if isinstance(value, float) else 0.0
