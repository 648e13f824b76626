"""Where files that come with the program lie: in a wheel below `_data`, in a checkout beside the package."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

_PACKAGE = Path(__file__).parents[1]


def shipped_folder(kind: Literal["profiles", "templates"]) -> Path:
    """The folder of shipped profiles or templates."""
    in_wheel = _PACKAGE / "_data" / kind
    return in_wheel if in_wheel.is_dir() else _PACKAGE.parent / kind
