"""Real sandboxes for the tests: one preview for all of them, a fresh sandbox for each that asks."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from argo_harbor.sandbox.bubblewrap import BubblewrapSandbox
from argo_harbor.sandbox.image import Base
from argo_harbor.sandbox.preview import Preview, prepare_preview
from argo_harbor.sandbox.scratch import remove_scratch


@pytest.fixture(scope="session")
def scratch() -> Iterator[Path]:
    """A run's scratch folder, where sandboxes can reach it even when the tests run as root."""
    folder = Path(tempfile.mkdtemp(prefix="argo-harbor-test-"))
    folder.chmod(0o711)
    yield folder
    remove_scratch(folder)
    assert not folder.exists()


@pytest.fixture(scope="session")
def preview(scratch: Path) -> Preview:
    return prepare_preview(scratch)


class Starter:
    """Starts sandboxes and sees to it that they end."""

    def __init__(self, scratch: Path, preview: Preview) -> None:
        self.scratch = scratch
        self.preview = preview
        self._count = 0

    @asynccontextmanager
    async def __call__(self, **options: object) -> AsyncIterator[BubblewrapSandbox]:
        folder = Path(tempfile.mkdtemp(dir=self.scratch)) / "sandbox"
        folder.parent.chmod(0o711)
        settings = {"ground": self.preview, "base": Base.bare()} | options
        sandbox = BubblewrapSandbox(folder, **settings)  # type: ignore[arg-type]
        await sandbox.start()
        try:
            yield sandbox
        finally:
            await sandbox.stop()
            assert list(folder.parent.iterdir()) == []

    def run[T](self, use: Callable[[BubblewrapSandbox], Awaitable[T]], **options: object) -> T:
        """Use one sandbox from start to stop."""

        async def whole() -> T:
            async with self(**options) as sandbox:
                return await use(sandbox)

        return asyncio.run(whole())


@pytest.fixture
def sandboxes(scratch: Path, preview: Preview) -> Starter:
    return Starter(scratch, preview)


@pytest.fixture
def everything_loaded(sandboxes: Starter, tmp_path: Path) -> None:
    """For a child process that may not read the interpreter's own files: use all parts once before."""

    async def use(sandbox: BubblewrapSandbox) -> None:
        await sandbox.upload(Path(__file__), "/app/file")
        await sandbox.download_folder("/app", tmp_path / "down")
        await sandbox.exec("sleep 10", timeout_sec=0.01)

    sandboxes.run(use)
