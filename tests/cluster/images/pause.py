"""The program of the image `pause`, which needs nothing but Go itself."""

from __future__ import annotations

from pathlib import Path

from tests.support.gotools import GoTool

PAUSE = GoTool(
    name="pause", folder="pause", module="argo-harbor.test/pause", source=Path(__file__).parent / "pause"
)
