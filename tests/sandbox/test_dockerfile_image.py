"""What is not built on this machine although a builder could."""

from __future__ import annotations

import pytest

from argo_harbor.sandbox.dockerfile_image import check_image_dockerfile


def codes(*lines: str) -> list[tuple[str, str]]:
    found = check_image_dockerfile("\n".join(lines) + "\n", file="t/environment/Dockerfile")
    assert all(finding.file == "t/environment/Dockerfile" and finding.hint for finding in found)
    return [(finding.code, finding.message.partition(":")[0]) for finding in found]


def test_everything_that_the_preview_cannot_do_is_fine():
    assert (
        codes(
            "FROM golang AS build",
            "USER builder",
            "RUN --mount=type=cache,target=/var/cache go build",
            "FROM debian",
            "COPY --from=build /x /x",
            "ADD local.tgz /opt",
            "RUN --network=none true && wget https://example.org || true",
            "EXPOSE 80",
            "USER app",
            "RUN id",
            "USER root",
        )
        == []
    )


@pytest.mark.parametrize(
    "line",
    [
        "ADD https://example.org/x /x",
        'ADD ["http://example.org/x", "/x"]',
        "ADD git@example.org:x/y.git /x",
        "RUN --network=host curl example.org",
        "RUN --security=insecure mount",
    ],
)
def test_a_build_has_no_network(line):
    assert codes("FROM debian", line) == [("local_network_unenforceable", "line 2")]


@pytest.mark.parametrize("user", ["app", "1000", "1000:1000"])
def test_a_last_user_other_than_root_is_refused(user):
    assert codes("FROM debian", f"USER {user}", "CMD x") == [("local_user_unsupported", "line 2")]


def test_a_user_known_only_to_the_builder_is_left_to_it():
    assert codes("FROM debian", "ARG WHO=app", "USER $WHO") == []


def test_what_is_no_dockerfile_is_named():
    assert codes("FROM debian", "RUN <<end", "never ends") == [("invalid_task_config", "line 2")]
