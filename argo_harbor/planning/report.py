"""Collects what is wrong with one task or with the whole request, so that everything is reported at once."""

from __future__ import annotations

from argo_harbor.errors import Finding
from argo_harbor.model.taskset import Task


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
