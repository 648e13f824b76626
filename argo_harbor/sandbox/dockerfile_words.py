"""Words and variables of a Dockerfile, as its reference describes them: quotes, escapes, `$NAME`,
`${NAME:-x}`."""

from __future__ import annotations

import re
from collections.abc import Mapping

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class WordError(ValueError):
    """A word that cannot be read."""


def split_words(text: str, escape: str) -> list[str]:
    """Cut at blanks outside quotes. Quotes and escapes stay in the words. Raises: WordError."""
    words: list[str] = []
    current = ""
    quote = ""
    place = 0
    while place < len(text):
        char = text[place]
        if char == escape and quote != "'" and place + 1 < len(text):
            current += text[place : place + 2]
            place += 2
            continue
        if not quote and char.isspace():
            if current:
                words.append(current)
            current = ""
        else:
            if char in "\"'" and quote in ("", char):
                quote = "" if quote else char
            current += char
        place += 1
    if quote:
        raise WordError(f"the quote {quote} is never closed")
    return [*words, current] if current else words


def expand(word: str, variables: Mapping[str, str], escape: str, *, quotes: bool = True) -> str:
    """Take quotes and escapes away and put values in; unknown names are empty.

    With `quotes` false they are ordinary characters, as in a here-document. Raises: WordError.
    """
    out = ""
    quote = ""
    place = 0
    while place < len(word):
        char = word[place]
        following = word[place + 1 : place + 2]
        if quote == "'":
            quote, out = ("", out) if char == "'" else (quote, out + char)
        elif char == escape and following and (not quote or following in ('"', "$", escape)):
            out += following
            place += 1
        elif quotes and (char == '"' or (char == "'" and not quote)):
            quote = "" if quote else char
        elif char == "$":
            value, place = _variable(word, place, variables, escape)
            out += value
            continue
        else:
            out += char
        place += 1
    if quote:
        raise WordError(f"the quote {quote} is never closed")
    return out


def _variable(word: str, place: int, variables: Mapping[str, str], escape: str) -> tuple[str, int]:
    """The value of the reference at `place` (a `$`), and where the text goes on."""
    if word[place + 1 : place + 2] != "{":
        plain = _NAME.match(word, place + 1)
        return ("$", place + 1) if plain is None else (variables.get(plain.group(), ""), plain.end())
    name = _NAME.match(word, place + 2)
    end = _closing_brace(word, place + 2, escape)
    if name is None:
        raise WordError(f"{word[place : end + 1]} names no variable")
    operator, alternative = _operator(word[name.end() : end])
    value = variables.get(name.group())
    absent = not value if operator.startswith(":") else value is None
    match operator.lstrip(":"):
        case "" if not alternative and not operator:
            return value or "", end + 1
        case "-":
            return (expand(alternative, variables, escape) if absent else value or ""), end + 1
        case "+":
            return ("" if absent else expand(alternative, variables, escape)), end + 1
    raise WordError(f"{word[place : end + 1]} uses a form that is not supported")


def _operator(rest: str) -> tuple[str, str]:
    width = 2 if rest.startswith(":") else 1
    return rest[:width], rest[width:]


def _closing_brace(word: str, place: int, escape: str) -> int:
    depth = 1
    while place < len(word):
        if word[place] == escape:
            place += 1
        elif word[place] == "{":
            depth += 1
        elif word[place] == "}":
            depth -= 1
            if depth == 0:
                return place
        place += 1
    raise WordError("a ${ is never closed")
