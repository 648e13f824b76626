"""Small tasks of any behaviour, written for one test; real ones, run by the real program."""

from __future__ import annotations

from pathlib import Path

SHEBANG = "#!/bin/bash\n"
REWARD = "/logs/verifier/reward.txt"


def write_task(
    suite: Path,
    name: str,
    *,
    solve: str = "true",
    test: str = f"echo 1 > {REWARD}",
    toml: str = "",
    dockerfile: str = "FROM debian:bookworm-slim\nWORKDIR /app\n",
    agent_seconds: float = 60,
    verifier_seconds: float = 60,
) -> Path:
    """Write a task of that name and return its folder. `toml` is added to its task.toml."""
    folder = suite / name
    for part in ("environment", "solution", "tests"):
        (folder / part).mkdir(parents=True)
    (folder / "instruction.md").write_text("Do it.\n")
    (folder / "environment" / "Dockerfile").write_text(dockerfile)
    (folder / "solution" / "solve.sh").write_text(SHEBANG + solve + "\n")
    (folder / "tests" / "test.sh").write_text(SHEBANG + test + "\n")
    (folder / "task.toml").write_text(
        'schema_version = "1.4"\n'
        f"{toml}\n"
        f"[agent]\ntimeout_sec = {agent_seconds}\n"
        f"[verifier]\ntimeout_sec = {verifier_seconds}\n"
    )
    return folder
