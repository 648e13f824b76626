"""Collects what is wrong with one task or with the whole request, so that everything is reported at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from argo_harbor.errors import Finding, Refused
from argo_harbor.model.plan import Skipped
from argo_harbor.model.taskset import Task

Refusals = Mapping[str, Sequence[Finding]]
"""What was found wrong with tasks, by their names."""


class Report:
    """Findings about one task, or about the request when there is no task."""

    def __init__(self, task: Task | None = None) -> None:
        self.findings: list[Finding] = []
        self._task = task.name if task else ""
        self._file = f"{task.folder}/task.toml" if task else ""

    def refuse(self, code: str, message: str, *, key: str = "", hint: str = "", file: str = "") -> None:
        """Note one finding; the same finding twice is noted once."""
        finding = Finding(code, message, hint, self._task, file or self._file, key)
        if finding not in self.findings:
            self.findings.append(finding)


class LeftOut:
    """The tasks that a plan does not take, with what is wrong with each."""

    def __init__(self, refused: Refusals) -> None:
        """`refused`: what whoever shall use the plan has found already."""
        self._refused = refused
        self._found: dict[str, list[Finding]] = {}

    def takes(self, task: Task, report: Report) -> bool:
        """Whether the task is one of them, by the report on it or by what was found already."""
        found = [*report.findings, *self._refused.get(task.name, ())]
        if found:
            self._found[task.name] = found
        return bool(found)

    def check(self, tasks: Sequence[Task], *, skip: bool) -> None:
        """Raises Refused with every finding, unless these tasks may be skipped and others are left."""
        if self._found and not (skip and len(self._found) < len(tasks)):
            raise Refused.of(finding for found in self._found.values() for finding in found)

    def skipped(self) -> dict[str, Skipped]:
        """Why each is left out, by its name and by the first of what was found."""
        return {
            name: Skipped(code=found[0].code, message=found[0].message) for name, found in self._found.items()
        }
