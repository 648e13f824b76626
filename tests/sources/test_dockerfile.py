"""Bases and working folder of Dockerfiles as people write them."""

from __future__ import annotations

import pytest

from argo_harbor.sources.dockerfile import instructions, read_dockerfile


@pytest.mark.parametrize(
    ("text", "bases"),
    [
        ("FROM ubuntu:24.04", ["ubuntu:24.04"]),
        ("from --platform=linux/amd64 python:3.12 as build\nFROM build\nFROM scratch", ["python:3.12"]),
        ("ARG TAG=24.04\nARG BASE=ubuntu\nFROM $BASE:${TAG}", ["ubuntu:24.04"]),
        ("ARG TAG\nFROM ubuntu:${TAG:-22.04}", ["ubuntu:22.04"]),
        ('ARG BASE="debian:12"\nFROM ${BASE}', ["debian:12"]),
        ("FROM a AS one\nFROM b AS two\nCOPY --from=one /x /x\nFROM a", ["a", "b"]),
        ("# FROM no\nFROM \\\n  # comment\n\n  ubuntu:24.04\n", ["ubuntu:24.04"]),
        ("FROM a\nRUN <<EOF\nFROM b\nEOF\nRUN cat <<-'X' <<Y\n\tFROM c\n\tX\nFROM d\nY\nFROM e", ["a", "e"]),
        ("# escape=`\nFROM `\n windows", ["windows"]),
        ("# syntax=docker/dockerfile:1\n# escape=x\nFROM a", ["a"]),
        ("FROM", []),
        ("", []),
    ],
)
def test_bases(text: str, bases: list[str]) -> None:
    assert list(read_dockerfile(text).bases) == bases


@pytest.mark.parametrize(
    ("text", "workdir"),
    [
        ("FROM a\nWORKDIR /app", "/app"),
        ("FROM a\nWORKDIR /app\nWORKDIR src\nWORKDIR ./x", "/app/src/x"),
        ("FROM a\nWORKDIR src", "/src"),
        ("FROM a\nWORKDIR /app\nFROM b", ""),
        ("FROM a\nWORKDIR\nRUN WORKDIR /x", ""),
    ],
)
def test_the_final_working_folder(text: str, workdir: str) -> None:
    assert read_dockerfile(text).workdir == workdir


def test_instructions_name_their_first_line() -> None:
    found = list(instructions("\n# c\nFROM a\nRUN x \\\n  y\nCOPY <<A /a\nbody\nA\nCMD z"))
    assert [(item.line, item.name, item.value, item.heredocs) for item in found] == [
        (3, "FROM", "a", ()),
        (4, "RUN", "x   y", ()),
        (6, "COPY", "<<A /a", ("body\n",)),
        (9, "CMD", "z", ()),
    ]


def test_a_here_document_without_an_end_takes_the_rest() -> None:
    assert read_dockerfile("FROM a\nRUN <<EOF\nFROM b").bases == ("a",)
