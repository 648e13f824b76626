"""The report page in a real browser: its script runs under its own policy, and sorting and choosing work."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from argo_harbor.bundle.merge import merge
from tests.support.records import Run, make_run

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium or google-chrome on PATH"),
]

_DRIVE = """
<script>
addEventListener("load", () => {
  const rows = () => Array.from(document.querySelectorAll("#trials tbody tr:not([hidden])"), (row) => row.id);
  const buttons = Array.from(document.querySelectorAll("#trials thead button"));
  const outputs = buttons.find((button) => button.textContent === "Outputs");
  const search = document.getElementById("search");
  const seen = {};
  outputs.click();
  seen.up = rows();
  seen.sort = outputs.parentElement.getAttribute("aria-sort");
  outputs.click();
  seen.down = rows();
  document.querySelector("button[data-k=zero]").click();
  seen.chosen = rows();
  document.getElementById("clear").click();
  seen.all = rows();
  search.value = "TASK-002";
  search.dispatchEvent(new Event("input"));
  seen.found = rows();
  seen.said = document.getElementById("said").textContent;
  const out = document.createElement("pre");
  out.id = "seen";
  out.textContent = JSON.stringify(seen);
  document.body.append(out);
});
</script>
"""


def dom(page: Path) -> str:
    """The page's elements after its scripts have run."""
    flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    profile = f"--user-data-dir={page.parent / 'profile'}"
    done = subprocess.run(
        [str(CHROMIUM), *flags, profile, "--virtual-time-budget=2000", "--dump-dom", page.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def run(tmp_path: Path) -> Run:
    run = make_run(
        tmp_path, ["acme/<script>document.title='owned'</script>", "acme/task-001", "acme/task-002"]
    )
    run.add(0, reward=0.5)
    run.add(1, reward=0.0)
    run.add(2)
    merge(run.run_id, run.store, plan=run.plan)
    return run


def test_its_own_script_runs_and_no_other(run: Run, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    text = (run.bundle / "report.html").read_text()
    page.write_text(text.replace("</body>", "<script>document.title = 'owned'</script></body>"))
    found = dom(page)
    assert ">3 rows</span>" in found
    assert "<title>owned" not in found


def test_sorting_choosing_and_searching(run: Run, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    text = (run.bundle / "report.html").read_text()
    page.write_text(re.sub(r"<meta http-equiv.*", "", text).replace("</body>", _DRIVE + "</body>"))
    seen = re.search(r'<pre id="seen">(.*?)</pre>', dom(page))
    assert seen is not None
    assert json.loads(seen[1]) == {
        "up": ["r1-0", "r0-0", "r2-0"],
        "sort": "ascending",
        "down": ["r2-0", "r0-0", "r1-0"],
        "chosen": ["r1-0"],
        "all": ["r2-0", "r0-0", "r1-0"],
        "found": ["r2-0"],
        "said": "1 of 3 rows",
    }
