"""The real ``argo`` program, for tests that ask whether Argo Workflows accepts what the compiler writes.

``python -m tests.support.argo build`` prepares program and schemas (exit status 3: no usable Go on this
machine), ``python -m tests.support.argo check FILE…`` runs both checks on workflow files by hand.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import yaml

from tests.support import argo_crd, argo_documents, gotools
from tests.support.argo_crd import KINDS, CrdValidator

EXIT_NO_GO = 3

# A lint of the largest workflow takes seconds; two minutes say that something hangs.
LINT_SECONDS = 120


def _add_empty_user_interface(source: Path) -> None:
    """Stand in for the web pages, which the published module lacks and ``argo server`` embeds."""
    page = source / "ui" / "dist" / "app" / "index.html"
    page.parent.mkdir(parents=True)
    page.touch()


ARGO = gotools.GoTool(
    name="argo",
    folder="argo",
    module="github.com/argoproj/argo-workflows/v4",
    package="cmd/argo",
    ldflags="-s -w -X {module}.version={version}",
    mend=_add_empty_user_interface,
)


def argo_binary(*, say: gotools.Say = print) -> Path:
    """Return the ``argo`` program of the pinned version, building it when the cache does not hold it.

    Raises:
        ToolUnavailable: it has to be built, and there is no Go or one too old.
        ToolBuildFailed: fetching or compiling failed.
    """
    return gotools.build(ARGO, say=say)


def crd_validator(kind: str, *, say: gotools.Say = print) -> CrdValidator:
    """Return what checks objects of ``kind`` (a key of :data:`KINDS`) as the API server would.

    Raises:
        ToolUnavailable: the schema has to be fetched, and there is no Go or one too old.
        ToolBuildFailed: fetching failed.
    """
    return CrdValidator(argo_crd.load_schema(ARGO, kind, say=say), kind=kind)


def lint(
    workflows: str | Path | Sequence[Path], *, kinds: Sequence[str] = tuple(KINDS), binary: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run ``argo lint --offline --strict`` on files, or on text that stands for one file.

    References between files resolve only among those given in one call. Findings are on stdout, one a line; a
    document that argo would pass over is one of them.
    """
    program = binary or argo_binary()
    if isinstance(workflows, str):
        with tempfile.TemporaryDirectory(prefix="argo-lint-") as folder:
            file = Path(folder) / "workflow.yaml"
            file.write_text(workflows)
            return _lint_files(program, [file], kinds=kinds)
    files = [workflows] if isinstance(workflows, Path) else list(workflows)
    return _lint_files(program, files, kinds=kinds)


def _lint_files(
    program: Path, files: Sequence[Path], *, kinds: Sequence[str]
) -> subprocess.CompletedProcess[str]:
    plurals = ",".join(KINDS[kind] for kind in kinds)
    command = [str(program), "lint", "--offline", "--strict", "--output", "simple", "--kinds", plurals]
    # Nothing of the caller's cluster or server settings may change what an offline check says.
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("ARGO_", "KUBE"))
    }
    result = subprocess.run(
        [*command, *map(str, files)],
        env=environment | {"KUBECONFIG": os.devnull},
        capture_output=True,
        text=True,
        timeout=LINT_SECONDS,
        check=False,
    )
    if passed_over := [line for file in files for line in argo_documents.overlooked(file, kinds=kinds)]:
        result.stdout = "\n".join([*passed_over, result.stdout])
        result.returncode = result.returncode or 1
    return result


def _build() -> int:
    try:
        print(f"argo: {argo_binary()}")
        for kind in KINDS:
            crd_validator(kind)
    except gotools.ToolUnavailable as reason:
        print(f"argo is not available: {reason}", file=sys.stderr)
        return EXIT_NO_GO
    except gotools.ToolBuildFailed as failure:
        print(f"argo could not be built: {failure}", file=sys.stderr)
        return 1
    return 0


def _check(files: Sequence[Path]) -> int:
    linted = lint(files)
    print(linted.stdout + linted.stderr, end="")
    findings = [
        f"{file}: {finding}"
        for file in files
        for document in yaml.safe_load_all(file.read_text())
        for finding in crd_validator(document["kind"]).errors(document)
    ]
    print("\n".join(findings) or "✔ accepted by the CRD schema")
    return 1 if linted.returncode or findings else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry of ``python -m tests.support.argo``; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.argo", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build", help="build argo and read the CRD schemas, unless the cache holds them")
    commands.add_parser("check", help="argo lint and CRD schema").add_argument("files", nargs="+", type=Path)
    chosen = parser.parse_args(arguments)
    return _build() if chosen.command == "build" else _check(chosen.files)


if __name__ == "__main__":
    sys.exit(main())
