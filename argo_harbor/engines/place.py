"""What a command line says about where to work. Light, since every command's signature needs it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

EngineName = Literal["local", "argo"]


@dataclass(frozen=True, kw_only=True)
class Place:
    """None for what is left open."""

    engine: EngineName | None = None
    platform: Path | None = None
    """Platform file."""
    store: Path | None = None
    """Root of the local store: naming one means this machine."""
    context: str | None = None
    namespace: str | None = None
