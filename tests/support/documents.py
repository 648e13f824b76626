"""Hypothesis strategies for task.toml documents: clean ones, and ones with values that somebody must
refuse."""

from __future__ import annotations

import datetime
import itertools
from typing import Any

from hypothesis import strategies as st

Document = dict[str, Any]

_SECONDS = st.one_of(
    st.sampled_from((1, 60, 0.5, 600.0, 604800)), st.floats(0.001, 604_800), st.integers(1, 604_800)
)
_TEXT = st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\0"), max_size=8)
_WORD = st.sampled_from(("a", "main", "db-1", "Build it", "ünï"))
_ENV = st.dictionaries(
    st.sampled_from(("A", "PATH_X", "api_key", "a b", "é")),
    st.one_of(_TEXT, st.sampled_from(("${HOME}", "${X:-y}", "${X}${Y}", "plain"))),
    max_size=3,
)
_USER = st.one_of(st.sampled_from(("root", "agent", "1000")), st.integers(0, 70000))
_HOST = st.sampled_from(
    (
        "example.com", "*.Example.org", "GITHUB.com.", "10.0.0.0/8", "2001:DB8::1", "192.0.2.1",
        "2001:db8::/32", " a.b ", "localhost", "1.2.3.4.5",
    )
)  # fmt: skip
_PATHS = st.sampled_from(("/app/out.txt", "logs", "/logs/artifacts", "C:/logs", "/a/./b", "/"))
_ARTIFACT = st.one_of(
    _PATHS,
    st.fixed_dictionaries(
        {"source": st.sampled_from(("/app", "/data/x", "C:\\logs"))},
        optional={
            "destination": st.sampled_from(("", "out", "a/b", "./x", "manifest.json/x")),
            "exclude": st.lists(_WORD, max_size=2),
            "service": st.sampled_from(("main", "db", " web.1 ")),
        },
    ),
)
_HEADERS = st.dictionaries(
    st.sampled_from(("X-Trace", "Accept")), st.sampled_from(("1", "${A}-${B:-c}", "")), max_size=2
) | st.sampled_from(
    (
        {"Authorization": "Bearer ${TOKEN}"},
        {"X-Api-Key": "${KEY:-}"},
        {"Cookie": "${A}:${B}"},
        {"X-Tokens": "plain"},
    )
)
_MCP = st.one_of(
    st.fixed_dictionaries(
        {"name": _WORD, "url": st.just("http://localhost:8000/mcp")},
        optional={"transport": st.sampled_from(("sse", "http", "streamable-http")), "headers": _HEADERS},
    ),
    st.fixed_dictionaries(
        {"name": _WORD, "transport": st.just("stdio"), "command": st.just("run")},
        optional={"args": st.lists(_WORD, max_size=2)},
    ),
)
_HEALTHCHECK = st.fixed_dictionaries(
    {"command": _WORD},
    optional={
        "interval_sec": _SECONDS,
        "timeout_sec": _SECONDS,
        "start_period_sec": st.one_of(st.just(0), _SECONDS),
        "start_interval_sec": _SECONDS,
        "retries": st.integers(0, 20),
    },
)
_METADATA = st.dictionaries(
    _WORD,
    st.one_of(
        _TEXT,
        st.integers(-5, 5),
        st.floats(allow_nan=False),
        st.booleans(),
        st.just(datetime.date(2026, 1, 2)),
        st.lists(_WORD, max_size=2),
        st.dictionaries(_WORD, _WORD, max_size=2),
    ),
    max_size=3,
)


@st.composite
def _network(draw: st.DrawFn, *, phase: bool) -> Document:
    mode = draw(st.sampled_from((None, "public", "no-network", "allowlist")))
    table: Document = {} if mode is None else {"network_mode": mode}
    if mode == "allowlist" and draw(st.booleans()):
        table["allowed_hosts"] = draw(st.lists(_HOST, max_size=3))
    elif mode is not None and not phase and draw(st.booleans()):
        table["allowed_hosts"] = []
    return table


@st.composite
def _environments(draw: st.DrawFn) -> Document:
    table = draw(_network(phase=False))
    table |= draw(
        st.fixed_dictionaries(
            {},
            optional={
                "build_timeout_sec": _SECONDS,
                "docker_image": st.sampled_from(
                    ("", "ubuntu:24.04", "r.example:5000/a/b@sha256:" + "0" * 64)
                ),
                "os": st.sampled_from(("linux", "Linux", "WINDOWS")),
                "cpus": st.sampled_from((1, 2.0, 0.5, 1024, 1.25)),
                "gpus": st.integers(0, 64),
                "gpu_types": st.lists(st.sampled_from(("H100", "T4")), max_size=2),
                "tpu": st.fixed_dictionaries(
                    {"type": st.just("v6e"), "topology": st.sampled_from(("2x4", " 2x2x1 "))}
                ),
                "mcp_servers": st.lists(_MCP, max_size=2),
                "env": _ENV,
                "skills_dir": _PATHS,
                "healthcheck": _HEALTHCHECK,
                "workdir": _PATHS,
                "allow_internet": st.booleans(),
            },
        )
    )
    for old, new in (("memory", "memory_mb"), ("storage", "storage_mb")):
        table |= draw(
            st.sampled_from(
                ({}, {}, {new: 2048}, {new: 1}, {old: "2G"}, {old: " 512m "}, {old: "1.5g", new: 1536})
            )
        )
    return table


@st.composite
def _verifiers(draw: st.DrawFn) -> Document:
    table = draw(_network(phase=True))
    table |= draw(
        st.fixed_dictionaries(
            {},
            optional={
                "timeout_sec": _SECONDS,
                "env": _ENV,
                "user": _USER,
                "collect": st.lists(
                    st.fixed_dictionaries(
                        {"command": _WORD},
                        optional={
                            "service": st.sampled_from(("main", " db ")),
                            "timeout_sec": _SECONDS,
                            "user": _USER,
                        },
                    ),
                    max_size=2,
                ),
            },
        )
    )
    mode = draw(st.sampled_from((None, "shared", "separate", "environment", "both")))
    if mode in {"environment", "both"}:
        table["environment"] = draw(_environments())
    if mode in {"shared", "separate"}:
        table["environment_mode"] = mode
    elif mode == "both":
        table["environment_mode"] = "separate"
    return table


@st.composite
def _agents(draw: st.DrawFn) -> Document:
    table = draw(_network(phase=True))
    return table | draw(st.fixed_dictionaries({}, optional={"timeout_sec": _SECONDS, "user": _USER}))


@st.composite
def _steps(draw: st.DrawFn) -> list[Document]:
    names = draw(
        st.lists(st.sampled_from(("one", "two", "Drei", "vier.5", "é", "a b")), unique=True, max_size=3)
    )
    optional = {
        "agent": _agents(),
        "verifier": _verifiers(),
        "min_reward": st.one_of(
            st.sampled_from((1, 0.5, -1.0)), st.dictionaries(_WORD, st.floats(-1, 1), max_size=2)
        ),
        "healthcheck": _HEALTHCHECK,
        "artifacts": st.lists(_ARTIFACT, max_size=2),
    }
    return [draw(st.fixed_dictionaries({"name": st.just(name)}, optional=optional)) for name in names]


def clean_documents() -> st.SearchStrategy[Document]:
    """Documents that Harbor accepts and that break none of our own bounds."""
    task = st.fixed_dictionaries(
        {"name": st.sampled_from(("acme/a", "Acme-1/b.c_d"))},
        optional={
            "version": st.just("1.0"),
            "description": _TEXT,
            "keywords": st.lists(_WORD, max_size=2),
            "authors": st.lists(
                st.fixed_dictionaries({"name": _WORD}, optional={"email": st.just("a@example.com")}),
                max_size=2,
            ),
        },
    )
    return st.fixed_dictionaries(
        {},
        optional={
            "schema_version": st.sampled_from(("1.0", "1.4")),
            "version": st.just("1.1"),
            "task": task,
            "metadata": _METADATA,
            "verifier": _verifiers(),
            "agent": _agents(),
            "environment": _environments(),
            "solution": st.fixed_dictionaries({}, optional={"env": _ENV}),
            "source": _WORD,
            "multi_step_reward_strategy": st.sampled_from(("mean", "final")),
            "steps": _steps(),
            "artifacts": st.lists(_ARTIFACT, max_size=3),
        },
    )


_ODD_VALUES = st.sampled_from(
    (
        True, False, 0, -1, 1, 2.5, 1e9, float("inf"), float("nan"), 2**70, "", "x", "1", "2G", "nanG",
        "infG", "-1G", "main", "a/b", "../x", "/x/../y", "a\\b", "..", "NUL", "con.txt", "x.", "\u0000",
        "line\nbreak", "*.1.2.3.4", "10.0.0.1/8", "http://x", "*", "fe80::1%eth0", "http", "stdio",
        "allowlist", "no-network", "shared", "separate", "WINDOWS", [], ["x"], ["*"], ["a:1"], [1], [{}],
        [{"source": "../x"}], [{"name": "a"}], [{"name": "A"}, {"name": "a"}], {}, {"A": 1}, {"A": "x"}, {"":
        "x"}, {"A=B": "x"}, {"Authorization": "Bearer x"}, {"X": "${bad"}, {"X-Api-Key": "${A:-b}"}, {"a b":
        "x"}, {"reward": "x"}, {"command": "x"}, {"name": "acme/x\n"}, {"docker_image": "a b"},
        datetime.date(2026, 1, 2),
    )
)  # fmt: skip

_KEYS = st.sampled_from(
    (
        "version", "schema_version", "task", "task.name", "task.version", "task.authors", "metadata",
        "verifier", "verifier.timeout_sec", "verifier.env", "verifier.user", "verifier.environment_mode",
        "verifier.environment", "verifier.environment.memory", "verifier.environment.allow_internet",
        "verifier.collect", "verifier.allowed_hosts", "verifier.network_mode", "agent", "agent.timeout_sec",
        "agent.user", "agent.allowed_hosts", "agent.network_mode", "environment", "environment.network_mode",
        "environment.allowed_hosts", "environment.build_timeout_sec", "environment.docker_image",
        "environment.os", "environment.cpus", "environment.memory_mb", "environment.memory",
        "environment.storage_mb", "environment.storage", "environment.gpus", "environment.gpu_types",
        "environment.tpu", "environment.tpu.topology", "environment.mcp_servers",
        "environment.mcp_servers.0.transport", "environment.mcp_servers.0.headers",
        "environment.mcp_servers.0.url", "environment.env", "environment.healthcheck",
        "environment.healthcheck.retries", "environment.healthcheck.timeout_sec", "environment.workdir",
        "environment.allow_internet", "solution", "solution.env", "source", "multi_step_reward_strategy",
        "steps", "steps.0.name", "steps.0.min_reward", "steps.0.verifier",
        "steps.0.verifier.environment_mode", "steps.0.artifacts", "artifacts", "artifacts.0.source",
        "artifacts.0.destination", "artifacts.0.service",
    )
)  # fmt: skip


@st.composite
def odd_documents(draw: st.DrawFn) -> Document:
    """Documents with one or two values that may be wrong in type, range or form."""
    document = draw(clean_documents())
    for _ in range(draw(st.sampled_from((1, 1, 1, 2)))):
        _put(document, draw(_KEYS).split("."), draw(_ODD_VALUES))
    return document


def _put(table: Any, path: list[str], value: object) -> None:
    for part, following in itertools.pairwise(path):
        if isinstance(table, list):
            if not table or not isinstance(table[0], dict):
                table[:] = [{}]
            table = table[0]
        elif isinstance(table, dict):
            table = table.setdefault(part, [] if following == "0" else {})
        else:
            return
    if isinstance(table, dict):
        table[path[-1]] = value
