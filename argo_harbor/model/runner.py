"""What an engine tells the runners that it starts: a small file, the same for all trials of a run."""

from __future__ import annotations

from typing import Literal

from argo_harbor.model.base import Model


class SandboxSettings(Model):
    """How sandboxes are made."""

    kind: Literal["bubblewrap"] = "bubblewrap"
    base: Literal["preview", "image"] = "preview"
    network: Literal["none", "unfenced"] = "none"
    """The most that a sandbox may have: a task whose plan is not public in every phase has `none` anyway."""
    run_scratch: str
    """Folder of the run that trials share: the preview and the bases built on it."""


class RunnerSettings(Model):
    """Everything besides the try itself."""

    schema_version: Literal["runner-1"] = "runner-1"
    store: str
    """Folder of the directory store."""
    sandbox: SandboxSettings
    owner: int = 0
    """Pid of the engine: the runner ends when it does; 0 for none."""
    lock: str = ""
    """File that every process of the run holds locked, so that a sweep knows when the last one has ended."""
