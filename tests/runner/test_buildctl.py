"""BuildKit's client: its command line, its ends, being stopped. The client here is a script."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from argo_harbor.runner.buildctl import BuildRequest, command, image_digest, run


def request(tmp_path: Path, **changes: object) -> BuildRequest:
    return BuildRequest(
        context=tmp_path / "environment",
        dockerfile=tmp_path / "environment" / "Dockerfile",
        reference="registry.example/env:1",
        cache="registry.example/env:cache-1",
        use_cache=False,
        plain_http=False,
        own_frontend=False,
        metadata=tmp_path / "metadata.json",
    )._replace(**changes)  # type: ignore[arg-type]  # tests name the fields


def script(tmp_path: Path, text: str) -> str:
    path = tmp_path / "buildctl"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_the_command_line(tmp_path: Path) -> None:
    found = command(request(tmp_path))
    assert found[:3] == ["/opt/buildkit/buildctl", "--addr", "unix:///run/buildkit/buildkitd.sock"]
    pairs = set(itertools.pairwise(found))
    assert ("--progress", "rawjson") in pairs
    assert ("--output", "type=image,name=registry.example/env:1,push=true") in pairs
    assert ("--local", f"context={tmp_path}/environment") in pairs
    assert ("--frontend", "dockerfile.v0") in pairs
    assert ("--opt", "cmdline=built-in") in pairs
    assert "--import-cache" not in found
    [export] = [value for flag, value in pairs if flag == "--export-cache"]
    assert export.startswith("type=registry,ref=registry.example/env:cache-1,mode=max")
    assert "ignore-error=true" in export
    assert "insecure" not in " ".join(found)


def test_a_plain_registry_an_old_cache_and_a_frontend_of_the_tasks_own(tmp_path: Path) -> None:
    found = command(request(tmp_path, plain_http=True, use_cache=True, own_frontend=True))
    assert sum(value.endswith(",registry.insecure=true") for value in found) == 3
    assert "type=registry,ref=registry.example/env:cache-1,registry.insecure=true" in found
    assert "cmdline=built-in" not in found


@pytest.mark.parametrize(
    ("text", "digest"),
    [('{"containerimage.digest": "sha256:ab"}', "sha256:ab"), ("{}", ""), ("[]", ""), ("x", ""), (None, "")],
)
def test_the_digest_of_what_was_pushed(tmp_path: Path, text: str | None, digest: str) -> None:
    file = tmp_path / "metadata.json"
    if text is not None:
        file.write_text(text)
    assert image_digest(file) == digest


def test_events_and_other_words_are_told_apart(tmp_path: Path) -> None:
    program = script(
        tmp_path,
        """printf '{"vertexes":[{"name":"a"}]}\\n{"vert' >&2
printf 'exes":[{"name":"b"}]}\\n' >&2
printf 'Dockerfile:2\\nerror: \\033[31mfailed\\n[1]\\nlast' >&2
exit 1""",
    )
    events: list[Mapping[str, object]] = []
    ended = run([program], {}, on_event=events.append, stop=lambda: False)
    assert events == [{"vertexes": [{"name": "a"}]}, {"vertexes": [{"name": "b"}]}]
    assert ended.status == 1
    assert ended.said.splitlines() == ["Dockerfile:2", "error:  [31mfailed", "[1]", "last"]


def test_the_client_sees_only_what_it_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARGO_HARBOR_SECRET_OF_THE_POD", "s3cret")
    program = script(tmp_path, "export -p >&2")
    ended = run([program], {"DOCKER_CONFIG": "/x"}, on_event=lambda event: None, stop=lambda: False)
    assert "DOCKER_CONFIG" in ended.said
    assert "s3cret" not in ended.said


def test_a_client_that_is_told_to_stop_may_cancel_its_build(tmp_path: Path) -> None:
    told = tmp_path / "told"
    program = script(
        tmp_path, f"trap 'echo yes > {told}; exit 3' TERM; echo '{{}}' >&2; while :; do sleep 0.05; done"
    )
    events: list[Mapping[str, object]] = []
    ended = run([program], {"PATH": "/usr/bin:/bin"}, on_event=events.append, stop=lambda: bool(events))
    assert told.read_text() == "yes\n"
    assert ended.status == 3


def test_a_client_that_will_not_end_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("argo_harbor.runner.buildctl._STOP_SECONDS", 0.2)
    program = script(tmp_path, "trap '' TERM; echo '{}' >&2; while :; do sleep 0.05; done")
    events: list[Mapping[str, object]] = []
    began = time.monotonic()
    ended = run([program], {"PATH": "/usr/bin:/bin"}, on_event=events.append, stop=lambda: bool(events))
    assert ended.status == -9
    assert time.monotonic() - began < 10


def test_an_error_while_it_runs_ends_the_client_too(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    program = script(
        tmp_path, f"trap 'echo > {gone}; exit' TERM; echo '{{}}' >&2; while :; do sleep 0.05; done"
    )

    def fail(event: Mapping[str, object]) -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        run([program], {"PATH": "/usr/bin:/bin"}, on_event=fail, stop=lambda: False)
    assert gone.exists()
