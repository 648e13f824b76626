"""Why a build failed, by what BuildKit said: recorded from buildkitd v0.34.2 with
`buildctl build --progress rawjson`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from argo_harbor.model.build import BUILD_ERRORS
from argo_harbor.runner.build_failure import BuildFailure, explain
from argo_harbor.runner.build_progress import Progress, Step

RECORDINGS: dict[str, Any] = json.loads((Path(__file__).parent / "recordings" / "buildkit.json").read_text())
MIRROR = "127.0.0.1:15000"


def explained(name: str, *, mirror: str = MIRROR) -> BuildFailure:
    recorded = RECORDINGS[name]
    progress = Progress()
    for event in recorded["events"]:
        list(progress.feed(event))
    return explain(progress.failed, recorded["said"], reference=recorded["reference"], mirror=mirror)


@pytest.mark.parametrize(
    ("name", "code", "again", "step"),
    [
        ("run_failed", "image_build_failed", False, "Dockerfile:2: RUN echo one;"),
        ("parse_error", "image_build_failed", False, "Dockerfile:2: FOO bar"),
        ("copy_missing", "image_build_failed", False, "Dockerfile:2: COPY nothere /x"),
        ("other_stage_failed", "image_build_failed", False, "Dockerfile:4: RUN sleep 1; echo no; exit 3"),
        ("base_missing", "base_image_not_found", False, "Dockerfile:1: FROM debian:nope"),
        ("pull_refused", "registry_unauthorized", False, "Dockerfile:1: FROM 127.0.0.1:15001/ah/env:abc"),
        ("push_refused", "registry_unauthorized", False, "push"),
        ("pull_unreachable", "registry_unreachable", True, "Dockerfile:1: FROM 127.0.0.1:15009/x:1"),
        ("push_unreachable", "registry_unreachable", True, "push"),
    ],
)
def test_recorded_failures(name: str, code: str, again: bool, step: str) -> None:
    failure = explained(name)
    assert (failure.code, failure.again) == (code, again)
    assert failure.step.startswith(step)
    assert failure.code in BUILD_ERRORS
    assert failure.message


def test_the_last_lines_of_the_failing_instruction_are_there() -> None:
    assert explained("run_failed").message.splitlines()[:2] == ["one", "two"]
    assert explained("run_failed").message.endswith("exit code: 3")
    assert explained("other_stage_failed").message.startswith("no\n")


def test_who_said_no_to_what() -> None:
    pull, push = explained("pull_refused"), explained("push_refused")
    assert (pull.registry, pull.image, pull.pushed) == (
        "127.0.0.1:15001",
        "127.0.0.1:15001/ah/env:abc",
        False,
    )
    assert (push.registry, push.image, push.pushed) == (
        "127.0.0.1:15001",
        "127.0.0.1:15001/ah/env:other",
        True,
    )


@pytest.mark.parametrize(("mirror", "registry"), [("hub.example/x", "hub.example"), ("", "docker.io")])
def test_short_names_are_the_mirrors_to_answer_for(mirror: str, registry: str) -> None:
    failure = explained("base_missing", mirror=mirror)
    assert (failure.registry, failure.image) == (registry, "docker.io/library/debian:nope")


def step(name: str, error: str) -> Step:
    return Step(1, name, "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z", error=error)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (
            "pull access denied, repository does not exist or may require authorization: server message: "
            "insufficient_scope: authorization failed",
            "registry_unauthorized",
        ),
        (
            "failed to authorize: failed to fetch anonymous token: dial tcp: i/o timeout",
            "registry_unreachable",
        ),
        (
            "unexpected status from HEAD request to https://r/v2/x: 503 Service Unavailable",
            "registry_unreachable",
        ),
        ("unexpected status from HEAD request to https://r/v2/x: 403 Forbidden", "registry_unauthorized"),
        ("no match for platform in manifest: not found", "base_image_not_found"),
        ("failed to extract layer: no space left on device", "image_build_failed"),
    ],
)
def test_answers_of_other_registries(error: str, code: str) -> None:
    name = "[stage-1 1/3] FROM ghcr.io/acme/base:1"
    failure = explain([step(name, error)], "", reference="r.example/env:1")
    assert (failure.code, failure.image) == (code, "ghcr.io/acme/base:1")
    assert failure.again == (code == "registry_unreachable")


def test_what_a_command_prints_is_no_refusal() -> None:
    failure = explain(
        [step("[2/2] RUN curl x", "curl: (22) 401 Unauthorized, dial tcp")], "", reference="r/x:1"
    )
    assert (failure.code, failure.again) == ("image_build_failed", False)


def test_an_image_name_that_is_none_is_shown_as_it_is() -> None:
    failure = explain([step("[internal] load metadata for ???", "not found")], "", reference="r/x:1")
    assert (failure.registry, failure.image) == ("", "???")


def test_a_missing_cache_is_no_failure() -> None:
    cache = step("importing cache manifest from r.example/env:cache-1", "r.example/env:cache-1: not found")
    real = step("[2/2] RUN false", "exit code: 1")
    assert explain([cache, real], "", reference="r.example/env:1").step == "[2/2] RUN false"


@pytest.mark.parametrize(
    ("said", "again"),
    [
        (
            "error: listing workers for Build: rpc error: code = Unavailable desc = reading: EOF",
            True,
        ),
        ("error: failed to read dockerfile: open Dockerfile: no such file or directory", False),
        ("", False),
    ],
)
def test_a_daemon_that_is_gone_is_worth_another_try(said: str, again: bool) -> None:
    failure = explain([], said, reference="r/x:1")
    assert (failure.code, failure.again, failure.step) == ("image_build_failed", again, "")
    assert failure.message == (said or "BuildKit gave no reason")
