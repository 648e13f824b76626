"""Tasks for runs that are disturbed: small enough that many of them run at once on one machine."""

from __future__ import annotations

from pathlib import Path

from tests.cluster import addresses
from tests.engines.suite import REWARD, write_task

DEBIAN = f"{addresses.REGISTRY}/mirror/library/debian:bookworm-slim"
SMALL = "cpus = 0.05\nmemory_mb = 128\nstorage_mb = 256\n"


def ready_task(
    suite: Path, name: str, *, image: str = DEBIAN, solve: str = "true", test: str = f"echo 1 > {REWARD}"
) -> Path:
    """A task whose image needs no build."""
    toml = f'[environment]\ndocker_image = "{image}"\n{SMALL}'
    folder = write_task(suite, name, toml=toml, solve=solve, test=test, agent_seconds=900)
    (folder / "environment" / "Dockerfile").unlink()
    return folder


def built_task(
    suite: Path,
    name: str,
    *,
    run: str = "true",
    solve: str = "true",
    test: str = f"echo 1 > {REWARD}",
) -> Path:
    """A task whose image is built, by one command more than its base."""
    dockerfile = f"FROM debian:bookworm-slim\nWORKDIR /app\nRUN {run}\n"
    toml = f"[environment]\n{SMALL}"
    return write_task(suite, name, toml=toml, solve=solve, test=test, dockerfile=dockerfile)
