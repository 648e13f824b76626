"""One trial of Harbor's oracle, which the tests run inside the runner's image; prints the reward.

Its environment is the container that this script runs in, so it needs no cluster, no sandbox and no model.
"""

import asyncio
import shutil
import subprocess
import tempfile
from pathlib import Path

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.models.trial.config import AgentConfig, EnvironmentConfig, TaskConfig, TrialConfig
from harbor.trial.trial import Trial

FILES = {
    "task.toml": 'version = "1.0"\n',
    "instruction.md": "Say that it is solved.\n",
    "environment/Dockerfile": "FROM scratch\n",
    "solution/solve.sh": "echo solved > /answer\n",
    "tests/test.sh": "grep -q solved /answer && echo 1 > /logs/verifier/reward.txt\n",
}


class Here(BaseEnvironment):
    """Carries commands out in this container, as whoever runs the script."""

    @staticmethod
    def type() -> str:
        return "here"

    def _validate_definition(self) -> None:
        """Any task will do."""

    async def start(self, force_build: bool) -> None:
        del force_build
        await self.ensure_dirs(self._mount_targets(writable_only=True))

    async def stop(self, delete: bool) -> None:
        del delete

    async def exec(self, command: str, cwd=None, env=None, timeout_sec=None, user=None) -> ExecResult:  # type: ignore[no-untyped-def]
        del cwd, env, timeout_sec, user
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
        return ExecResult(stdout=done.stdout, stderr=done.stderr, return_code=done.returncode)

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        shutil.copy(source_path, target_path)

    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        shutil.copytree(source_dir, target_dir, dirs_exist_ok=True)

    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        shutil.copy(source_path, target_path)

    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        shutil.copytree(source_dir, target_dir, dirs_exist_ok=True)


async def main(folder: Path) -> None:
    task = folder / "task"
    for name, text in FILES.items():
        (task / name).parent.mkdir(parents=True, exist_ok=True)
        (task / name).write_text(text)
    config = TrialConfig(
        task=TaskConfig(path=task),
        trials_dir=folder / "trials",
        agent=AgentConfig(name="oracle"),
        environment=EnvironmentConfig(import_path="__main__:Here"),
    )
    result = await (await Trial.create(config)).run()
    if result.exception_info is not None:
        print(result.exception_info)
    print(result.verifier_result.rewards if result.verifier_result else None)


with tempfile.TemporaryDirectory() as scratch:
    asyncio.run(main(Path(scratch)))
