"""Runs as people read them: status, tasks and results, from the documents that `--json` prints."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from argo_harbor.cli import output
from argo_harbor.cli.place import command
from argo_harbor.model.states import Outcome, TaskPhase

if TYPE_CHECKING:
    from argo_harbor.bundle.observed import Step
    from argo_harbor.engines.base import Engine
    from argo_harbor.engines.place import Place
    from argo_harbor.model.documents import ResultsDocument, RunDocument, RunInfo, TaskLine, TrialLine
    from argo_harbor.model.taskset import Warned


DETAIL_LETTERS = 160


def run_document(engine: Engine, run_id: str, warnings: Iterable[Warned] = ()) -> RunDocument:
    """The document of a run with the warnings of the command that made it."""
    from argo_harbor.model.documents import Item

    return engine.survey(run_id).status(Item.each(warnings))


def print_run(document: RunDocument) -> None:
    run = document.run
    counts = ", ".join(f"{count} {phase}" for phase, count in document.counts.items() if count)
    rows = [
        ("Run", run.id),
        ("Phase", run.phase.value),
        ("Result", run.result_state.value),
        ("Tasks", counts or "-"),
        ("Taskset", run.taskset_ref),
        ("Plan", run.plan_digest),
        ("Engine", run.engine),
        ("Profile", run.profile),
        ("Base", run.base or "-"),
        ("Bundle", run.bundle_dir or "-"),
    ]
    if run.submitted_at:
        rows.insert(1, ("Submitted", f"{output.when(run.submitted_at)} by {run.user or 'somebody'}"))
    for name, value in rows:
        output.line(f"{name + ':':<10} {value}")


def print_tasks(tasks: Iterable[TaskLine]) -> None:
    output.table(
        ["#", "Task", "Phase", "Trials", "Detail"],
        (
            [
                str(task.index),
                task.name,
                task.phase.value,
                "  ".join(map(trial_text, task.trials)),
                brief(task.detail),
            ]
            for task in tasks
        ),
        right=["#"],
    )


def print_steps(steps: Iterable[Step]) -> None:
    """Builds, gates, network rules, parts and the merge, where the engine tells of them."""
    output.table(["Step", "State", "Detail"], ([step.name, step.state, brief(step.detail)] for step in steps))


def brief(text: str) -> str:
    """What fits into a line of a table; `--json` has the whole."""
    line = " ".join(text.split())
    return line if len(line) <= DETAIL_LETTERS else f"{line[: DETAIL_LETTERS - 1]}…"


def print_logs(engine: Engine, run_id: str) -> None:
    """Where the files of each trial lie, and how to read them."""
    for task in engine.survey(run_id).tasks().tasks:
        if any(trial.outcome is not None for trial in task.trials):
            output.line(f"{task.name}: argo-harbor runs logs {run_id} --task {task.index}")
    output.line(f"Builds: argo-harbor runs logs {run_id} --build")
    output.line(f"Merge:  argo-harbor runs logs {run_id} --merge")


def trial_text(trial: TrialLine) -> str:
    """One attempt in a word or two: its reward, or why it has none."""
    code = f" ({trial.error.code})" if trial.error else ""
    if trial.outcome is None:
        return f"missing{code}" if code else "…"
    if trial.outcome is Outcome.SCORED and trial.rewards:
        return (
            ", ".join(f"{key} {output.amount(value)}" for key, value in sorted(trial.rewards.items())) + code
        )
    return f"{trial.outcome.value}{code}"


def print_results(engine: Engine, run_id: str) -> None:
    """The scored table: coverage first, since a score without it says nothing."""
    results_text(engine.survey(run_id).results())


def print_report(bundle: str, place: Place, run_id: str) -> None:
    """Where the report lies; one in an object store is downloaded first."""
    if "://" in bundle:
        output.line(f"Download: {command(place, 'runs', 'download', run_id)}")
    output.line(f"Report: {bundle}/report.html")


def results_text(results: ResultsDocument) -> None:
    print_scores(results)
    coverage = results.result.coverage
    output.line(
        f"\nCoverage: {coverage.scored} of {coverage.total} scored, {coverage.failed} failed, "
        f"{coverage.missing} missing"
    )
    for score in results.result.summary.scores.scores:
        if score.mean is None or isinstance(score.mean, str) or score.name.startswith("runner."):
            continue
        output.line(f"{score.name}: {score.mean:.3f} over {score.count}")
    print_state(results.run)


def print_scores(results: ResultsDocument) -> None:
    rows = []
    for task in results.tasks:
        shown = "  ".join(map(trial_text, task.trials)) or "-"
        mean = task.result.summary.mean
        rows.append(
            [str(task.index), task.name, task.phase.value, "-" if mean is None else f"{mean:.3f}", shown]
        )
    output.table(["#", "Task", "Phase", "Mean", "Trials"], rows, right=["#", "Mean"])


def print_state(run: RunInfo) -> None:
    output.line(f"Run {run.id} {run.phase.value}, result {run.result_state.value}")
    for text, where in (("base", run.base), ("profile", run.profile)):
        if where:
            output.line(f"{text.capitalize()}: {where}")


def phases(text: str) -> TaskPhase:
    """A task phase by name. Raises UsageError `unknown_flag_value`."""
    from argo_harbor.errors import UsageError

    try:
        return TaskPhase(text)
    except ValueError:
        raise UsageError(
            "unknown_flag_value", f"there is no task phase {text!r}", f"phases: {', '.join(TaskPhase)}"
        ) from None
