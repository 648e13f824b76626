"""Secrets of builds: found by id, and taken out of what builds say."""

from __future__ import annotations

from pathlib import Path

from argo_harbor.runner.build_secrets import Redactor, read_secrets


def test_the_longest_text_is_looked_for_first() -> None:
    redact = Redactor.of({"a": b"abcdef\nxyz1\n", "b": b"abcdefgh", "short": b"ab"})
    assert redact("abcdefgh abcdef xyz1 ab") == "[secret b] [secret a] [secret a] ab"


def test_without_secrets_nothing_changes() -> None:
    assert Redactor()("anything") == "anything"


def test_values_do_not_show_in_what_is_printed() -> None:
    assert "hidden-value" not in repr(Redactor.of({"a": b"hidden-value"}))


def test_bytes_that_are_no_text_are_looked_for_as_they_are_shown() -> None:
    redact = Redactor.of({"a": b"\xff\xfekey-in-bytes"})
    assert redact(b"\xff\xfekey-in-bytes".decode(errors="replace")) == "[secret a]"


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "value").write_text("hidden-value")
    (tmp_path / "b").mkdir()
    found = read_secrets([("a", "s/x"), ("b", "s/y"), ("c", "t/z")], tmp_path)
    assert found.files == {"a": tmp_path / "a" / "value"}
    assert found.missing == (("b", "s/y"), ("c", "t/z"))
