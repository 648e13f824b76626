"""The codes of `errors.py` are the only list, and the page in the docs is that list.

`UPDATE_DOCS=1 pytest tests/test_errors.py` rewrites the page.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from argo_harbor.errors import CODES, Conflict, Finding, HarborError, PlatformError, Refused, UsageError

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "errors.md"


def page() -> str:
    lines = [
        "# Errors",
        "",
        "Every error has a code, a message and, where there is a cure, a hint: `error[code]: message`",
        'and `hint: …` on stderr, or with `--json` one document `{"error": {code, message, hint, items}}`',
        "on stdout. The exit status says what to do. A batch of findings is reported at once, in `items`.",
    ]
    for kind in (UsageError, Refused, Conflict, PlatformError):
        assert kind.__doc__ is not None
        lines += [
            "",
            f"## Exit status {kind.exit_status}",
            "",
            kind.__doc__.splitlines()[0],
            "",
            "| code | meaning |",
            "|---|---|",
        ]
        lines += [f"| `{code}` | {meaning} |" for code, meaning in kind.codes.items()]
    lines += [
        "",
        "Exit status 1 means that the run ended failed, cancelled or expired, or that a check said no;",
        "130 that it was interrupted.",
        "",
    ]
    return "\n".join(lines)


def test_the_docs_list_every_code() -> None:
    if os.environ.get("UPDATE_DOCS"):
        PAGE.write_text(page())
    assert PAGE.read_text() == page()


def test_a_code_belongs_to_one_class() -> None:
    assert len(CODES) == sum(len(kind.codes) for kind in (UsageError, Refused, Conflict, PlatformError))


def test_every_code_in_the_sources_is_listed() -> None:
    raised = re.compile(r'(?:UsageError|Refused|Conflict|PlatformError)\(\s*"([a-z_]+)"')
    found = {
        code for path in (ROOT / "argo_harbor").rglob("*.py") for code in raised.findall(path.read_text())
    }
    assert found
    assert found <= set(CODES)


def test_a_class_refuses_a_foreign_code() -> None:
    with pytest.raises(ValueError, match="no_source is no code of Refused"):
        Refused("no_source", "x")


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (UsageError("no_source", "m"), 2),
        (Refused("unknown_profile", "m"), 3),
        (Conflict("idempotency_conflict", "m"), 4),
        (PlatformError("platform_unreachable", "m"), 5),
    ],
)
def test_exit_status(error: HarborError, status: int) -> None:
    assert error.exit_status == status


def test_a_batch_keeps_every_finding() -> None:
    findings = [
        Finding(
            "invalid_task_config",
            "is no number",
            "write 1",
            task="a",
            file="task.toml",
            key="environment.cpus",
        ),
        Finding("env_not_granted", "X is not granted", task="b"),
    ]
    error = Refused.of(findings)
    assert error.code == "invalid_task_config"
    assert str(error) == "2 findings in 2 tasks"
    document = json.loads(json.dumps(error.as_json()))
    assert [item["code"] for item in document["error"]["items"]] == ["invalid_task_config", "env_not_granted"]
    assert document["error"]["items"][0]["key"] == "environment.cpus"


def test_a_batch_of_one_says_it_in_the_message() -> None:
    error = Refused.of([Finding("gpu_unsupported", "asks for 2 GPUs", "use another profile", task="train")])
    assert (error.code, error.message, error.hint) == (
        "gpu_unsupported",
        "train: asks for 2 GPUs",
        "use another profile",
    )


def test_an_empty_batch_is_a_fault_of_the_caller() -> None:
    with pytest.raises(ValueError, match="at least one finding"):
        Refused.of([])
