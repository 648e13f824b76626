"""What a runner is told of its surroundings.

On one machine an engine writes it to a small file, the same for all trials of a run. In a pod the runner
finds it out by itself.
"""

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


class PodSandboxSettings(Model):
    """Where a trial pod's sandbox is, and what its network rules are made of besides the plan's."""

    kind: Literal["opensandbox"] = "opensandbox"
    execd_port: int
    execd_token: str
    egress_port: int
    egress_token_file: str
    refusals_port: int
    """Where egress reports what it refused, on loopback."""
    denied: tuple[str, ...]
    """Ranges denied in every phase."""
    hosts: tuple[str, ...]
    """What the pod's own containers need in every phase, by name or address."""
    addresses: tuple[str, ...]
    """What these resolve to."""


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
