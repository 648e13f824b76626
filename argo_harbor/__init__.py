"""Run Harbor task suites on Argo Workflows, or on one machine.

The public functions are in `argo_harbor.api`; they are found here by name, and imported when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from argo_harbor.version import __version__

if TYPE_CHECKING:
    from argo_harbor.api import (
        HarborError,
        RunPlan,
        RunResults,
        RunSpec,
        RunStatus,
        Taskset,
        Trial,
        compile_workflow,
        load_taskset,
        plan,
        publish,
        read_trials,
        results,
        status,
        submit,
    )

__all__ = [
    "HarborError",
    "RunPlan",
    "RunResults",
    "RunSpec",
    "RunStatus",
    "Taskset",
    "Trial",
    "__version__",
    "compile_workflow",
    "load_taskset",
    "plan",
    "publish",
    "read_trials",
    "results",
    "status",
    "submit",
]


def __getattr__(name: str) -> object:
    if name in __all__:
        from argo_harbor import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
