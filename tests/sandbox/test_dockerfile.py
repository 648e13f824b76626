"""Dockerfiles of real shapes become steps; everything else becomes a finding with its line."""

from __future__ import annotations

import pytest

from argo_harbor.errors import Refused
from argo_harbor.sandbox.dockerfile import Copy, MakeFolder, Run, check_dockerfile, plan_build
from argo_harbor.sandbox.dockerfile_words import WordError, expand, split_words
from argo_harbor.sandbox.preview import PREVIEW_ENV


def plan(text: str, **options):
    return plan_build(text, file="environment/Dockerfile", **options)


def commands(text: str, **options) -> list[str]:
    return [step.command for step in plan(text, **options).steps if isinstance(step, Run)]


def findings(text: str) -> list[tuple[str, str]]:
    return [(found.code, found.message) for found in check_dockerfile(text, file="environment/Dockerfile")]


REAL = """\
# syntax=docker/dockerfile:1
ARG VERSION=3.12
FROM --platform=linux/amd64 python:${VERSION}-slim AS base

# a comment
LABEL maintainer="x"
ENV APP=/srv/app PATH="/opt/tool bin:$PATH" \\
    # a comment between continued lines
    GREETING='not $APP'
ARG WHO
ARG NAME="the ${WHO:-nobody}"
WORKDIR $APP
RUN apt-get update && \\

    apt-get install -y x
WORKDIR sub
COPY --chmod=755 --chown=root:root run.sh data/*.txt ./
COPY ["with blank", "/a b/"]
ADD archive.tar.gz /opt
RUN ["/bin/echo", "a b", "$APP"]
USER root
CMD ["python"]
ENTRYPOINT /x
"""


def test_a_whole_file():
    got = plan(REAL, build_args={"WHO": "us"})
    assert got.from_image == "python:3.12-slim"
    path = f"/opt/tool bin:{PREVIEW_ENV['PATH']}"
    env = PREVIEW_ENV | {"APP": "/srv/app", "PATH": path, "GREETING": "not $APP"}
    assert dict(got.env) == env
    assert got.workdir == "/srv/app/sub"
    folder, apt, sub, copy, blank, add, echo = got.steps
    assert (folder, sub) == (
        MakeFolder("line 12: WORKDIR $APP", "/srv/app"),
        MakeFolder("line 16: WORKDIR sub", "/srv/app/sub"),
    )
    assert isinstance(apt, Run)
    assert apt.command == "exec /bin/sh -c 'apt-get update &&     apt-get install -y x'"
    assert (apt.cwd, apt.text.split(":")[0]) == ("/srv/app", "line 13")
    assert dict(apt.env) == env | {"WHO": "us", "NAME": "the us"}
    assert copy == Copy(
        text="line 17: COPY run.sh data/*.txt ./",
        sources=("run.sh", "data/*.txt"),
        inline=(),
        target="/srv/app/sub/",
        mode=0o755,
    )
    assert (blank.sources, blank.target) == (("with blank",), "/a b/")
    assert (add.unpacks, add.target) == (True, "/opt")
    assert echo.command == "exec /bin/echo 'a b' '$APP'"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("FROM other", "second build stage"),
        ("USER agent", "USER names agent"),
        ("USER 1000:1000", "1000:1000"),
        ("EXPOSE 80", "EXPOSE"),
        ("VOLUME /data", "VOLUME"),
        ("HEALTHCHECK CMD true", "HEALTHCHECK"),
        ('SHELL ["/bin/bash", "-c"]', "SHELL"),
        ("STOPSIGNAL 9", "STOPSIGNAL"),
        ("ONBUILD RUN true", "ONBUILD"),
        ("MAINTAINER me", "MAINTAINER"),
        ("NONSENSE x", "NONSENSE"),
        ("ADD https://example.org/x /x", "https://example.org/x"),
        ("ADD git@example.org:a/b /x", "network"),
        ("ADD https://example.org/x.git#main /x", "network"),
        ("COPY --from=builder /x /x", "--from=builder"),
        ("COPY --parents x /x", "--parents"),
        ("COPY --chown=agent x /x", "--chown=agent"),
        ("COPY --chmod=u+x x /x", "--chmod=u+x"),
        ("RUN --mount=type=cache,target=/x true", "--mount"),
        ("RUN --network=host true", "--network"),
        ("RUN <<EOF\n#!/usr/bin/env python3\nEOF", "sh alone"),
    ],
)
def test_what_the_preview_cannot_do_is_found_with_its_line(line, says):
    ((code, message),) = findings(f"FROM x\nRUN true\n{line}\n")
    assert code == "preview_unsupported"
    assert message.startswith("line 3: ")
    assert says in message


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("", 0, "no FROM"),
        ("# nothing\n", 1, "no FROM"),
        ("RUN true\nFROM x", 1, "before FROM"),
        ("FROM", 1, "takes an image"),
        ("FROM a b", 1, "takes an image"),
        ("FROM x\nENV A", 2, "no value"),
        ("FROM x\nENV A=1 B", 2, "NAME=VALUE"),
        ("FROM x\nENV", 2, "takes an argument"),
        ("FROM x\nARG", 2, "takes an argument"),
        ("FROM x\nRUN", 2, "takes an argument"),
        ("FROM x\nWORKDIR", 2, "takes a folder"),
        ("FROM x\nCOPY a", 2, "sources and a target"),
        ("FROM x\nCOPY ['a', 'b", 2, "never closed"),
        ('FROM x\nENV A="b', 2, "never closed"),
        ("FROM x\nWORKDIR /${A", 2, "never closed"),
        ("FROM x\nWORKDIR /${}", 2, "names no variable"),
        ("FROM x\nWORKDIR /${A#x}", 2, "not supported"),
        ("FROM x\nRUN <<EOF\ntrue\n", 2, "never ends"),
        ("# escape=x\nFROM x", 1, "escape character"),
    ],
)
def test_what_is_no_dockerfile_is_found_with_its_line(text, line, says):
    ((code, message),) = findings(text)
    assert code == "invalid_task_config"
    assert message.startswith(f"line {line}: ")
    assert says in message


def test_all_findings_come_at_once_and_refuse_the_build():
    text = "FROM x\nEXPOSE 1\nCOPY a\nVOLUME /v\n"
    assert len(findings(text)) == 3
    with pytest.raises(Refused) as refused:
        plan(text)
    assert [item.file for item in refused.value.items] == ["environment/Dockerfile"] * 3


def test_a_fine_file_has_no_findings():
    assert findings("FROM x\nUSER 0:0\nRUN --network=none true\nCOPY --link . .\n") == []


def test_escapes_and_directives():
    text = "#syntax=x\n# Escape = `\nFROM x\nRUN echo a `\n  b\\\nRUN next\n"
    assert commands(text) == ["exec /bin/sh -c 'echo a   b\\'", "exec /bin/sh -c next"]
    late = "FROM x\n# escape=`\nRUN a \\\n b\n"
    assert commands(late) == ["exec /bin/sh -c 'a  b'"]
    assert commands("\ufefffrom x\nrun\techo\ta b\n") == ["exec /bin/sh -c 'echo\ta b'"]
    assert commands("FROM x\nRUN a \\") == ["exec /bin/sh -c a"]


def test_comments_in_the_middle_are_dropped_and_hashes_in_commands_kept():
    assert commands("FROM x\nRUN a # b \\\n# c\n && d\n") == ["exec /bin/sh -c 'a # b  && d'"]


def test_here_documents():
    text = (
        "FROM x\nRUN <<-EOF\n\techo 1\n\techo $2\n\tEOF\nRUN cat <<'A' > /x\n$y\nA\nRUN echo $((1<<2)) << x\n"
    )
    assert commands(text) == [
        "exec /bin/sh -c 'echo 1\necho $2\n'",
        "exec /bin/sh -c 'cat <<'\"'\"'A'\"'\"' > /x\n$y\nA\n'",
        "exec /bin/sh -c 'echo $((1<<2)) << x'",
    ]
    ((step),) = plan("FROM x\nENV V=1\nCOPY <<a.txt <<\"b\" /d/\n'$V'\na.txt\n$V\nb\n").steps
    assert step.inline == (("a.txt", "'1'\n"), ("b", "$V\n"))
    assert (step.sources, step.target) == ((), "/d/")


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("/x", "/x"),
        ("x", "/w/x"),
        ("x/", "/w/x/"),
        (".", "/w/"),
        ("./", "/w/"),
        ("/", "/"),
        ("../y/.", "/y/"),
    ],
)
def test_targets_of_copies(target, expected):
    assert plan(f"FROM x\nWORKDIR /w\nCOPY a {target}\n").steps[1].target == expected


def test_more_than_one_source_needs_a_folder():
    assert plan("FROM x\nCOPY a b /t\n").steps[0].target == "/t/"


def test_arguments_and_variables_follow_the_reference():
    text = """\
ARG G=global
ARG H=${G}2
FROM x:$H
RUN first
ARG G
ARG L=local
ENV L=env E=$G
ENV E=new F=$E
ENV OLD  value with  blanks
RUN second
"""
    got = plan(text)
    assert got.from_image == "x:global2"
    first, second = got.steps
    assert "G" not in first.env
    assert {name: second.env[name] for name in ("G", "L", "E", "F", "OLD")} == {
        "G": "global",
        "L": "env",
        "E": "new",
        "F": "global",
        "OLD": "value with  blanks",
    }
    assert plan(text, build_args={"G": "given"}).from_image == "x:given2"


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("a$A-b", "aone-b"),
        ("${A}x", "onex"),
        ("$NONE.", "."),
        ("${NONE:-d}", "d"),
        ("${EMPTY:-d}${EMPTY-d}", "d"),
        ("${NONE-$A}", "one"),
        ("${A:+set}${NONE:+set}${EMPTY+set}", "setset"),
        ("${NONE:-${A}}", "one"),
        ("\\$A", "$A"),
        ("'$A\\'", "$A\\"),
        ('"$A \\" \\x"', 'one " \\x'),
        ("\\a", "a"),
        ("$", "$"),
        ("$1", "$1"),
        ("a'b'\"c\"", "abc"),
        ("end\\", "end\\"),
    ],
)
def test_words(word, expected):
    assert expand(word, {"A": "one", "EMPTY": ""}, "\\") == expected


def test_words_in_here_documents_keep_their_quotes():
    assert expand('it\'s "$A" \\$A', {"A": "one"}, "\\", quotes=False) == 'it\'s "one" $A'


def test_splitting():
    assert split_words("a 'b c' \"d ' e\" f\\ g ", "\\") == ["a", "'b c'", '"d \' e"', "f\\ g"]
    with pytest.raises(WordError):
        expand("'x", {}, "\\")
