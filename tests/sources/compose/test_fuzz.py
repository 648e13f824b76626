"""Whatever a compose file holds, reading it ends with services or with findings, never in any other way."""

from __future__ import annotations

from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from argo_harbor.model.task import TaskConfig
from argo_harbor.model.taskset import ImageSource
from argo_harbor.sources.compose.keys import OF_MAIN, OF_SERVICES, REASONS
from argo_harbor.sources.compose.read import read_compose

TEXT = st.sampled_from(
    ["", "a", "8000", "8000:80/udp", "a:/b", "/c", "./d:/e", "${A}", "${A:-b}", "$", "$$A", "${", "A=${B}",
     "A", "1m", "512m", "CMD", "main", "db", "linux/amd64", "no", "'", "\0", "CMD-SHELL", "../x",
     "service_healthy", "1000:1000", "environment", ".", "harbor-logs:/x", "é\n{{x}}"]
)  # fmt: skip
LEAF = st.one_of(TEXT, st.none(), st.booleans(), st.integers(-1, 70_000), st.floats(allow_nan=False))
KEYS = st.sampled_from(
    [*sorted(OF_SERVICES | OF_MAIN), *sorted(REASONS)[:6], "context", "dockerfile", "args", "target",
     "test", "interval", "retries", "resources", "limits", "cpus", "memory", "type", "source", "size",
     "condition", "db", "main", "unknown", "x-note", "replicas", "disable"]
)  # fmt: skip
ANYTHING = st.recursive(
    LEAF, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=12
)
SERVICE = st.dictionaries(st.sampled_from(sorted(OF_SERVICES)), ANYTHING, max_size=5)
NAMES = st.sampled_from(["main", "db", "web", "Bad_Name", "a.b"])
FILE = st.fixed_dictionaries(
    {},
    optional={
        "services": st.dictionaries(NAMES, SERVICE, max_size=4) | ANYTHING,
        "volumes": ANYTHING,
        "networks": ANYTHING,
        "version": ANYTHING,
        "other": ANYTHING,
    },
)


def read(data: bytes, toml: dict[str, Any] | None = None) -> None:
    compose, main = read_compose(
        data,
        TaskConfig.model_validate(toml or {}),
        folder="environment",
        paths=frozenset({"environment/Dockerfile", "environment/db/Dockerfile"}),
        describe=lambda build: ImageSource(kind="dockerfile", context=build.context),
    )
    for finding in compose.findings:
        assert finding.code in ("invalid_compose_file", "env_not_granted")
        assert finding.message
        assert finding.hint
    if not compose.findings:
        assert all(service.name for service in compose.services)
        assert main is None or main


@settings(max_examples=150)
@given(FILE)
def test_any_data_is_read_or_refused(data: dict[str, Any]) -> None:
    read(yaml.safe_dump(data, allow_unicode=True).encode())


@settings(max_examples=100)
@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    read(data)
