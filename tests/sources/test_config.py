"""Findings about a task.toml say key, problem and cure in words."""

from __future__ import annotations

import pytest

from argo_harbor.sources.config import read_config


@pytest.mark.parametrize(
    ("text", "key", "message", "hint"),
    [
        (
            "[environment]\ncpus = 0",
            "environment.cpus",
            "0 is out of range",
            "cpus must be above 0 and at most 1024",
        ),
        (
            "[environment]\nmemory_mb = 0",
            "environment.memory_mb",
            "0 is out of range",
            "memory_mb must be from 1 to 16777216 MB",
        ),
        ("[environment]\ngpus = 65", "environment.gpus", "65 is out of range", "gpus must be from 0 to 64"),
        (
            "[agent]\ntimeout_sec = -1",
            "agent.timeout_sec",
            "-1 is out of range",
            "timeout_sec must be above 0 and at most 604800 seconds (7 days)",
        ),
        (
            "[environment.healthcheck]\ncommand = 'x'\nstart_period_sec = -1",
            "environment.healthcheck.start_period_sec",
            "-1 is out of range",
            "start_period_sec must be from 0 to 604800 seconds",
        ),
        (
            "[environment.healthcheck]\ncommand = 'x'\nretries = -1",
            "environment.healthcheck.retries",
            "-1 is out of range",
            "retries must be a finite number that is not negative",
        ),
        ("[environment]\ncpus = true", "environment.cpus", "true is not a number", "write a number"),
        (
            "[environment]\ngpus = 1.5",
            "environment.gpus",
            "1.5 is not a whole number",
            "write a whole number",
        ),
        ("[agent]\nuser = []", "agent.user", "[] is not a name or a number", "write a name or a number"),
        ("agent = 1", "agent", "1 is not a table", "write a table"),
        ("[environment]\nskills_dir = 1", "environment.skills_dir", "1 is not a text in quotes", None),
        ("[[steps]]\nx = 1", "steps[0].name", "is missing", "add steps[0].name"),
        ("[environment]\ncpus = nan", "environment.cpus", "nan is out of range", None),
        ("[environment]\ncpus = inf", "environment.cpus", "inf is out of range", None),
        ("[agent]\nuser = 1.5", "agent.user", "1.5 is not a name or a number", None),
        ("artifacts = [1]", "artifacts[0]", "1 is not a path or a table with a source", None),
        ("[[artifacts]]\ndestination = 'x'", "artifacts[0].source", "is missing", "add artifacts[0].source"),
        (
            "[verifier]\nenvironment_mode = 'both'",
            "verifier.environment_mode",
            "'both' is not one of 'shared' or 'separate'",
            "use one of 'shared' or 'separate'",
        ),
        ("[task]\nname = 'x'", "task.name", "'x' is not allowed here", None),
        ("[environment]\nmemory = 'x'", "environment.memory", None, "correct environment.memory"),
        (
            "[environment]\nallowed_hosts = ['*']",
            "environment.allowed_hosts",
            None,
            "correct environment.allowed_hosts",
        ),
        ("[environment.env]\n\"\" = 'x'", "environment.env", "'' cannot be the name of a variable", None),
        ('[environment.env]\n"a b" = 1', 'environment.env."a b"', "1 is not a text in quotes", None),
        ("[task]\nname = 'a/b'\nversion = ''", "task.version", None, "correct task.version"),
        (
            "[[steps]]\nname = 'a'\nmin_reward = 'x'",
            "steps[0].min_reward",
            None,
            "write a number or a table of numbers",
        ),
    ],
)
def test_one_wrong_value_is_one_finding(text: str, key: str, message: str | None, hint: str | None) -> None:
    (finding,) = read_config(text.encode()).findings
    assert finding.key == key
    assert message is None or finding.message == message
    assert hint is None or finding.hint == hint
    assert finding.hint


def test_long_values_are_cut() -> None:
    (finding,) = read_config(f"agent = '{'x' * 500}'".encode()).findings
    assert len(finding.message) < 100


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"a = \n", "at line 1, column 5"),
        (b"a = 1\na = 2\n", "line 2"),
        (b"ok = 1\nx = '\xff'\n", "not UTF-8 (line 2)"),
        (b"a = " + b"[" * 1000, "nested too deeply"),
        (b"[agent]\nuser = 0x" + b"F" * 6000, "4300 digits"),
    ],
)
def test_broken_toml_says_where(data: bytes, problem: str) -> None:
    (finding,) = read_config(data).findings
    assert problem in finding.message


def test_the_name_is_known_even_if_the_rest_is_broken() -> None:
    assert read_config(b'agent = 1\n[task]\nname = "a/b"\n').named == "a/b"
    assert read_config(b"task = 1\n").named == ""
    assert read_config(b'[task]\nname = "a\\u001bb"\n').named == ""
