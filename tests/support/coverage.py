"""Run pytest under coverage, with every Python process it starts measured too.

Trials run in processes with an environment of their own, so the usual way (variables that children inherit)
does not reach them: a `.pth` file in this environment's site-packages starts coverage in each. It is removed
at the end.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
AT_LEAST = 90
PTH = Path(sysconfig.get_path("purelib")) / "zz_argo_harbor_coverage.pth"


def main(arguments: list[str]) -> int:
    config = ROOT / "pyproject.toml"
    data = ROOT / ".coverage"
    _coverage("erase")
    PTH.write_text(
        f"import os; os.environ['COVERAGE_PROCESS_START'] = {str(config)!r}; "
        f"os.environ['COVERAGE_FILE'] = {str(data)!r}; import coverage; coverage.process_startup()\n"
    )
    try:
        failed = subprocess.run(
            [sys.executable, "-m", "pytest", *arguments], cwd=ROOT, check=False
        ).returncode
    finally:
        PTH.unlink()
    _coverage("combine", "--quiet")
    low = _coverage("report", f"--fail-under={AT_LEAST}")
    return failed or low


def _coverage(*arguments: str) -> int:
    return subprocess.run([sys.executable, "-m", "coverage", *arguments], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
