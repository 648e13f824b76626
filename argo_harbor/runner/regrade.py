"""Grades the recorded half of a trial in a sandbox of its own: what `verify` runs.

Harbor's regrading refuses a trial that lacks a declared artifact; its live separate verifier grades without
it, and an agent that did nothing then gets its 0. A joint trial must end as a live one would, so that
refusal is left out here; the others stay.
"""

from __future__ import annotations

from typing import override

from harbor.models.trial.config import TrialConfig
from harbor.trial.regrade import RegradeTrial
from harbor.trial.trial import Trial


class SeparateGrading(RegradeTrial):  # type: ignore[misc]  # Harbor is not type-checked with us
    """The verifier's half of a trial."""

    @override
    def _validate_artifact_coverage(self) -> None:
        """Missing artifacts are the agent's failure, for the verifier to see."""

    @classmethod
    async def open(cls, config: TrialConfig) -> Trial:
        """What `Trial.create` does for a regrade, with this class.

        Raises: whatever loading a task raises.
        """
        task, downloaded = await cls._load_task(config)
        return cls(config, _task=task, _task_download_result=downloaded)
