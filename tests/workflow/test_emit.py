"""The emitter writes what every YAML reader takes for the same object."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from argo_harbor.workflow.emit import to_yaml

# fmt: off
HOSTILE = [
    "", " ", "a b", "{{", "}}", "{{=1/0}}", "{{workflow.name}}", "1e3", "1E5", "12e45678", "08",
    "0o17", "0x1f", "1_000", "12:30:45", "y", "Y", "n", "yes", "No", "on", "OFF", "true", "False",
    "null", "Null", "~", ".inf", "-.INF", ".nan", "+1", "-1", "1.", ".5", "=", "<<", "-", "?", ":",
    "- a", "? a", "a: b", "a:", ":a", "a #b", "#a", "a#b", "&a", "*a", "!a", "!!str a", "|", ">",
    "%a", "@a", "`a", "'a", '"a', "a'b", 'a"b', "\\", "[a]", "{a}", "a,b", "a, b", "2001-12-14",
    "2001-12-14t21:59:43.10-05:00", "\t", "a\tb", "\n", "a\n", "\na", "a\nb", "a\nb\n", "a\nb\n\n",
    " a\nb", "a \nb", "a\n b\n  c", "\n---\n", "a\n---\nb", "a\n...\n", "---", "...", "a\r\nb",
    "\r", "\0", "\x07", "\x1b", "\x7f", "\x85", "a\x85b", "\xa0", "\xad", "\u2028", "a\u2029b",
    "\ufeff", "é", "ß", "中文", "😀", "a😀b", "\U0010ffff", "0" * 64, "https://a.b:80/c?d=e#f",
    "x" * 5000, "a " * 3000,
]
# fmt: on


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_survives(text: str) -> None:
    data: dict[str, object] = {"key": text, "list": [text, [text], {"inner": text}]}
    if len(text) < 100:
        data[text] = {"a": text}
    assert yaml.safe_load(to_yaml(data)) == data
    assert yaml.load(to_yaml(data), Loader=yaml.CSafeLoader) == data


def test_no_line_of_a_document_is_a_separator() -> None:
    lines = to_yaml({"a": HOSTILE, "b": dict.fromkeys(HOSTILE[:-2], 1)}).split("\n")
    assert not [line for line in lines if line.startswith(("---", "..."))]


TEXT = st.text() | st.sampled_from(HOSTILE) | st.text(alphabet="ab01.:-_{}\n \t#'\"", max_size=12)
KEYS = TEXT.filter(lambda text: len(text) < 100)
DATA = st.recursive(
    TEXT | st.integers() | st.booleans(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=25,
)


@given(DATA)
def test_any_data_survives(data: object) -> None:
    assert yaml.safe_load(to_yaml(data)) == data


def test_plain_where_it_is_safe() -> None:
    data = {
        "image": "ghcr.io/a/b:v1",
        "path": "/opt/x",
        "args": ["--plan", "abc", "0"],
        "count": 3,
        "on": True,
        "e": {},
    }
    assert to_yaml(data) == (
        'image: ghcr.io/a/b:v1\npath: /opt/x\nargs:\n- "--plan"\n- abc\n- "0"\ncount: 3\n"on": true\ne: {}\n'
    )


def test_lines_of_text_stay_readable() -> None:
    assert to_yaml({"a": {"b": "x: 1\n\n  y: 2\n"}}) == "a:\n  b: |\n    x: 1\n\n      y: 2\n"


@pytest.mark.parametrize("value", [None, 1.5, b"a", object(), {1: "a"}, [None]])
def test_other_values_are_refused(value: object) -> None:
    with pytest.raises(TypeError):
        to_yaml({"a": value})


def test_a_key_too_long_for_yaml_is_refused() -> None:
    with pytest.raises(ValueError, match="too long"):
        to_yaml({"k" * 1100: 1})


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb"])
def test_half_a_character_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="half a character"):
        to_yaml({"a": text})
