"""Starts the real `argo-harbor` as a user would, with a store of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from argo_harbor.schemas import FOLDER

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    status: int
    stdout: str
    stderr: str

    def json(self, schema: str) -> dict[str, Any]:
        """stdout as exactly one document that its published schema accepts."""
        import jsonschema

        document = json.loads(self.stdout)
        jsonschema.validate(document, json.loads((FOLDER / f"{schema}.json").read_text()))
        return document  # type: ignore[no-any-return]  # json.loads gives Any

    @property
    def error(self) -> dict[str, Any]:
        body = self.json("error-document-1")["error"]
        assert isinstance(body, dict)
        return body


def said(stderr: str) -> str:
    """What the program itself wrote: where files cannot be written, coverage cannot be saved either."""
    return stderr.partition("Exception ignored in atexit callback <bound method Coverage")[0]


@dataclass(frozen=True)
class Program:
    """The program with a store and an environment."""

    store: Path
    folder: Path
    """Where it runs."""

    def environment(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        return {**os.environ, "ARGO_HARBOR_STORE": str(self.store), "NO_COLOR": "1", **(extra or {})}

    def command(self, *arguments: object) -> list[str]:
        return [sys.executable, "-m", "argo_harbor", *map(str, arguments)]

    def __call__(
        self, *arguments: object, env: Mapping[str, str] | None = None, timeout: float = 300, **more: Any
    ) -> Done:
        done = subprocess.run(
            self.command(*arguments),
            cwd=self.folder,
            env=self.environment(env),
            capture_output=True,
            text=True,
            timeout=timeout,
            stdin=subprocess.DEVNULL,
            check=False,
            **more,
        )
        assert "Traceback" not in said(done.stderr), done.stderr
        return Done(done.returncode, done.stdout, done.stderr)

    def start(self, *arguments: object, env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        """The same in the background, in a process group of its own."""
        return subprocess.Popen(
            self.command(*arguments),
            cwd=self.folder,
            env=self.environment(env),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
