"""Bases and working folder of Dockerfiles as people write them."""

from __future__ import annotations

import pytest

from argo_harbor.sources.dockerfile import base_images, instructions, read_dockerfile


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


def test_arguments_are_found_wherever_they_are_declared() -> None:
    text = "ARG TAG=1\nFROM a:$TAG\nARG TAG\nARG two THREE=\"x y\" four='z'\nRUN <<EOF\nARG no\nEOF"
    assert read_dockerfile(text).arguments == ("TAG", "THREE", "four", "two")


@pytest.mark.parametrize(
    ("text", "values", "bases"),
    [
        ("ARG TAG=1\nFROM a:$TAG", {"TAG": "2"}, ("a:2",)),
        ("ARG TAG=1\nARG BASE=a:${TAG}\nFROM $BASE", {"TAG": "2"}, ("a:2",)),
        ("ARG TAG=1\nARG BASE=a:${TAG}\nFROM $BASE", {}, ("a:1",)),
        ("FROM b AS dev\nFROM c AS prod\nARG X\nFROM ${KIND}", {"KIND": "prod"}, ("b", "c")),
        ("ARG KIND=dev\nFROM b AS dev\nFROM c AS prod\nFROM $KIND", {}, ("b", "c")),
        ("ARG IMAGE\nFROM ${IMAGE:-d}\nFROM scratch", {"IMAGE": "e", "OTHER": "f"}, ("e",)),
    ],
)
def test_bases_follow_the_values_of_arguments(
    text: str, values: dict[str, str], bases: tuple[str, ...]
) -> None:
    written = read_dockerfile(text).variable_bases
    assert written is not None
    assert base_images(written, values) == bases


def test_bases_without_arguments_need_no_values() -> None:
    assert read_dockerfile("ARG X=1\nFROM a\nRUN echo $X").variable_bases is None


@pytest.mark.parametrize(
    ("run", "secrets", "required"),
    [
        ("RUN --mount=type=secret,id=key cat", ("key",), ()),
        ("RUN --mount=type=secret,id=key,required=true cat", ("key",), ("key",)),
        ("RUN --mount=type=secret,id=key,required cat", ("key",), ("key",)),
        ("RUN --mount=type=secret,target=/etc/netrc cat", ("netrc",), ()),
        ("RUN --network=none --mount=type=cache,target=/c --mount=type=secret,id=b \\\n  cat", ("b",), ()),
        ("RUN --mount=type=secret cat", (), ()),
        ("RUN echo --mount=type=secret,id=no", (), ()),
        (
            "RUN --mount=type=secret,id=b x\nRUN --mount=type=secret,id=b,required=1 "
            "--mount=type=secret,id=a x",
            ("a", "b"),
            ("b",),
        ),
    ],
)
def test_secrets_are_what_run_mounts(run: str, secrets: tuple[str, ...], required: tuple[str, ...]) -> None:
    found = read_dockerfile(f"FROM a\n{run}\n")
    assert (found.secrets, found.required_secrets) == (secrets, required)
