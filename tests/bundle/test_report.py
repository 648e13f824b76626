"""The report page as text: what it says, that it loads and runs nothing that is not ours, and its size."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from argo_harbor.bundle.merge import merge
from argo_harbor.bundle.page import MAX_ROWS
from argo_harbor.model.plan import Skipped
from argo_harbor.model.states import RunPhase
from tests.support.records import Run, make_run

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&{{ 7*7 }}"


def page(run: Run, **options: Any) -> str:
    merge(run.run_id, run.store, plan=run.plan, **options)
    return (run.bundle / "report.html").read_text(encoding="utf-8")


class Elements(HTMLParser):
    """Every element with its attributes, and whether all are closed."""

    VOID = frozenset({"meta", "input", "br", "line", "rect", "img", "link"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


@pytest.fixture
def mixed(tmp_path: Path) -> Run:
    """One of everything."""
    run = make_run(tmp_path, 9, skipped={8: Skipped(code="gpu_unsupported", message="asks for a GPU")})
    usage = {"prompt_tokens": 12_345, "completion_tokens": 10, "cost_usd": 0.5}
    run.add(
        0,
        usage=usage,
        files={"agent/trajectory.json": b"{}", "verifier/test-stdout.txt": b"", "a b#?.log": b""},
    )
    run.add(1, reward=0.0)
    run.add(2, rewards={"reward": 0.5, "speed": 3.25}, error="agent_timeout")
    run.add(3, outcome="unscored", error={"code": "reward_missing", "message": "no file"})
    run.add(4, outcome="errored", error={"code": "agent_crashed", "message": HOSTILE})
    run.add(5, outcome="infrastructure", error="sandbox_failed")
    run.start(6)
    return run


def test_coverage_comes_before_any_score(mixed: Run) -> None:
    text = page(mixed)
    coverage = text.index("3 of 9 attempts scored")
    assert coverage < text.index("Mean of the scored")
    assert coverage < text.index("pass@1")
    assert "3 ended without a score · 3 missing" in text


def test_it_shows_the_picture_the_reasons_and_the_tables(mixed: Run) -> None:
    text = page(mixed)
    order = ["Every task", "Why the others", "Time and cost", "Metric Rollups", ">Scores<", "stand on"]
    places = [text.index(heading) for heading in order]
    assert places == sorted(places)
    for code in (
        "agent_timeout",
        "reward_missing",
        "agent_crashed",
        "sandbox_failed",
        "trial_lost",
        "gpu_unsupported",
    ):
        assert f"<code>{code}</code>" in text
    for column in (
        "Name",
        "Value",
        "Median",
        "Std dev",
        "Count",
        "NaN",
        "Task",
        "Trial",
        "Metric",
        "Outputs",
    ):
        assert f">{column}</button>" in text
    for card in ("Tasks", "Trials", "Metric Scores"):
        assert f"<dt>{card}</dt>" in text
    assert "speed 3.25" in text
    assert "12.3k" in text
    assert "$0.50" in text
    elements = Elements(text)
    rows = [row for row in elements.all("tr") if row.get("id")]
    assert [row["data-k"] for row in rows] == [
        "pass", "zero", "part", "unscored", "errored", "infra", "missing", "missing", "missing",
    ]  # fmt: skip


def test_it_is_one_page_that_loads_nothing(mixed: Run) -> None:
    text = page(mixed)
    elements = Elements(text)
    assert elements.open == []
    assert not elements.all("link")
    assert not elements.all("img")
    assert [script for script in elements.all("script") if script] == []
    for attributes in elements.all("a"):
        assert (attributes["href"] or "").startswith(("#", "evidence/"))
    assert "http://" not in text
    assert "https://" not in text
    script = re.search(r"<script>(.*?)</script>", text, re.DOTALL)
    assert script is not None
    digest = base64.b64encode(hashlib.sha256(script[1].encode()).digest()).decode()
    (policy,) = [meta["content"] for meta in elements.all("meta") if "http-equiv" in meta]
    assert policy is not None
    assert f"script-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")


def test_links_lead_to_files_of_the_bundle(mixed: Run) -> None:
    refs = [link["href"] or "" for link in Elements(page(mixed)).all("a")]
    files = [ref for ref in refs if ref.startswith("evidence/")]
    assert files
    for ref in files:
        assert (mixed.bundle / unquote(ref)).is_file()


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    run = make_run(tmp_path, [HOSTILE, "javascript:alert(1)"])
    run.add(0, outcome="errored", error={"code": "agent_crashed", "message": HOSTILE, "type": HOSTILE})
    run.add(1, agent_version=HOSTILE)
    text = page(run)
    elements = Elements(text)
    assert len(elements.all("script")) == 1
    assert not elements.all("img")
    assert all(not name.startswith("on") for _, attributes in elements.found for name in attributes)
    assert "&lt;img src=x onerror=alert(2)&gt;" in text
    assert "49" not in re.findall(r"<h1>.*?</h1>", text)[0]


def test_it_can_be_used_without_a_mouse_or_colours(mixed: Run) -> None:
    text = page(mixed)
    elements = Elements(text)
    assert len(elements.all("caption")) == len(elements.all("table")) == 2
    assert all(head.get("scope") in ("col", "row") for head in elements.all("th"))
    assert {button["type"] for button in elements.all("button")} == {"button"}
    grids = [attributes for tag, attributes in elements.found if attributes.get("role") == "img"]
    assert all(attributes["aria-label"] for attributes in grids)
    assert elements.all("html") == [{"lang": "en"}]
    signs = re.findall(r'<i class="k (\w+)">(.)</i>', text)
    assert dict(signs) == {
        "pass": "✓", "zero": "✗", "part": "◐", "unscored": "?", "errored": "!", "infra": "▲", "missing": "–",
    }  # fmt: skip
    assert "prefers-color-scheme: dark" in text


@pytest.mark.parametrize(
    ("phase", "words"), [(RunPhase.CANCELLED, "was cancelled"), (RunPhase.EXPIRED, "time was spent")]
)
def test_it_says_what_must_be_known_first(tmp_path: Path, phase: RunPhase, words: str) -> None:
    run = make_run(tmp_path, 2, parent="run-before")
    run.add(0, sandbox={"engine": "local", "base": "preview", "network": "unfenced"})
    text = page(run, ended_by=phase)
    for expected in (words, "Preview base", "Network unfenced", "run-before"):
        assert expected in text


def test_problems_of_the_merge_are_on_the_page(tmp_path: Path) -> None:
    run = make_run(tmp_path, 1)
    run.add(0, 7)
    assert "<code>attempt_unplanned</code>" in page(run)


def test_a_run_without_any_trial_still_has_a_page(tmp_path: Path) -> None:
    text = page(make_run(tmp_path, 2))
    assert "0 of 2 attempts scored" in text
    assert "Time and cost" not in text
    assert "nothing measured" in text


def test_a_thousand_tasks_stay_below_two_megabytes(tmp_path: Path) -> None:
    run = make_run(tmp_path, 1000)
    for index in range(0, 1000, 100):
        run.add(index)
    text = page(run)
    assert len(text.encode()) < 2_000_000
    assert text.count('<tr id="r') == 1000
    assert "grid dense" in text


def test_of_very_many_trials_the_unclean_are_shown_first(tmp_path: Path) -> None:
    run = make_run(tmp_path, 3, attempts=1000)
    run.add(0, 999, files={}, outcome="unscored", error="reward_missing")
    run.add(1, 0, files={})
    text = page(run)
    assert text.count('<tr id="r') == MAX_ROWS
    assert f"{3000 - MAX_ROWS} more are in" in text
    assert 'id="r1-0"' not in text
    assert '<a href="#trials"' in text
    assert "and 2798 more in" in text
