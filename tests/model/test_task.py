"""What the task models accept, convert and refuse beyond what Harbor does; conformance has its own tests."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from argo_harbor.model.task import MCPServerConfig, TaskConfig, TpuSpec
from argo_harbor.model.task_env import Variable, requested_in_header, requested_variable
from argo_harbor.model.task_network import normalize_host


def config(**tables: Any) -> TaskConfig:
    return TaskConfig.model_validate(tables)


def test_an_empty_task_has_harbors_defaults() -> None:
    task = config()
    assert task.schema_version == "1.4"
    assert task.environment.network_mode == "public"
    assert task.environment.build_timeout_sec == 600
    assert task.agent.timeout_sec is None
    assert task.verifier.timeout_sec == 600
    assert task.verifier_mode() == "shared"
    assert task.verifier_environment() is None


@pytest.mark.parametrize(
    ("table", "key", "bad", "good"),
    [
        ("environment", "cpus", [0, -1, 1024.5, True, "2", float("nan")], [0.1, 1, 1024]),
        ("environment", "memory_mb", [0, 2**24 + 1, True, 2048.0, "2048"], [1, 2**24]),
        ("environment", "storage_mb", [0, -5, False], [1, 2**24]),
        ("environment", "gpus", [-1, 65, True], [0, 64]),
        ("environment", "build_timeout_sec", [0, -1, 604801, float("inf"), True], [0.5, 604800]),
        ("agent", "timeout_sec", [0, -1, 604801, True, "60"], [1, 604800.0]),
        ("verifier", "timeout_sec", [0, 604801, float("nan")], [1]),
        ("environment", "docker_image", ["a b", "$(x)", "{{=x}}", "a\n"], ["a:1", "r:5000/a@sha256:00"]),
        ("environment", "env", [{"": "x"}, {"A=B": "x"}, {"A": "\0"}, {"A": 1}], [{"A": "x"}]),
    ],
)
def test_values_outside_their_bounds_are_refused(
    table: str, key: str, bad: list[object], good: list[object]
) -> None:
    for value in good:
        config(**{table: {key: value}})
    for value in bad:
        with pytest.raises(ValidationError):
            config(**{table: {key: value}})


def test_whole_cpus_are_whole_numbers() -> None:
    assert repr(config(environment={"cpus": 2.0}).environment.cpus) == "2"
    assert repr(config(environment={"cpus": 0.5}).environment.cpus) == "0.5"


@pytest.mark.parametrize(
    ("table", "megabytes"),
    [
        ({"memory": "2G"}, 2048),
        ({"memory": "512m"}, 512),
        ({"memory": "2048K"}, 2),
        ({"memory": "1.5G"}, 1536),
    ],
)
def test_old_sizes_become_megabytes(table: dict[str, object], megabytes: int) -> None:
    assert config(environment=table).environment.memory_mb == megabytes


@pytest.mark.parametrize("size", ["2Gi", "2", "", "G", "infG", "nanG", "-1G", "100K", 4, None])
def test_a_size_that_is_none_is_refused(size: object) -> None:
    with pytest.raises(ValidationError):
        config(environment={"storage": size})


def test_two_different_sizes_are_refused() -> None:
    with pytest.raises(ValidationError, match="2048 MB, but memory_mb is 1024"):
        config(environment={"memory": "2G", "memory_mb": 1024})


@pytest.mark.parametrize(
    ("table", "mode"),
    [
        ({"allow_internet": True}, "public"),
        ({"allow_internet": False}, "no-network"),
        ({"allow_internet": True, "network_mode": "no-network"}, "no-network"),
        ({"allow_internet": False, "network_mode": "allowlist", "allowed_hosts": ["a.b"]}, "allowlist"),
    ],
)
def test_allow_internet_becomes_a_network_mode(table: dict[str, object], mode: str) -> None:
    environment = config(environment=table).environment
    assert environment.network_mode == mode
    assert environment.allow_internet is None


def test_the_old_version_key_gives_way_to_the_new_one() -> None:
    assert config(version="1.0").schema_version == "1.0"
    assert config(version="1.0", schema_version="1.1").schema_version == "1.1"


def test_a_step_inherits_how_it_is_graded() -> None:
    task = config(
        verifier={"environment_mode": "separate"},
        environment={"cpus": 3},
        steps=[
            {"name": "inherits"},
            {"name": "shares", "verifier": {"environment_mode": "shared"}},
            {"name": "own", "verifier": {"environment": {"cpus": 2}}},
        ],
    )
    assert task.steps is not None
    inherits, shares, own = task.steps
    assert [task.verifier_mode(step) for step in task.steps] == ["separate", "shared", "separate"]
    assert task.verifier_environment(inherits) == task.environment
    assert task.verifier_environment(shares) is None
    assert task.verifier_environment(own) == own.verifier.environment
    assert task.verifier_environment() == task.environment


def test_a_verifier_table_means_a_separate_verifier() -> None:
    task = config(verifier={"environment": {"memory_mb": 512}})
    assert task.verifier_mode() == "separate"
    with pytest.raises(ValidationError, match="contradicts"):
        config(verifier={"environment": {}, "environment_mode": "shared"})


@pytest.mark.parametrize("name", ["", " ", ".", "..", "a/b", "a.", "NUL", "com1.txt", "a\0b", "é" * 128])
def test_step_names_must_be_folders_everywhere(name: str) -> None:
    with pytest.raises(ValidationError):
        config(steps=[{"name": name}])


def test_steps_differ_by_more_than_case_and_form() -> None:
    for other in ("Bau", "bau", "BAU"):
        with pytest.raises(ValidationError, match="second step"):
            config(steps=[{"name": "bau"}, {"name": other}])
    with pytest.raises(ValidationError, match="second step"):
        config(steps=[{"name": "\u00e9"}, {"name": "e\u0301"}])


@pytest.mark.parametrize(
    "entry",
    [
        "../x",
        "/a/../b",
        {"source": "/a", "destination": "../b"},
        {"source": "/a", "destination": "/b"},
        {"source": "/a", "destination": "."},
        {"source": "/a", "destination": "a\\b"},
        {"source": "/a", "destination": "./manifest.json"},
        {"source": "relative", "service": "db"},
        {"source": "/a", "service": "-x"},
        {"source": "a\0b"},
        {},
        7,
    ],
)
def test_artifacts_that_could_escape_are_refused(entry: object) -> None:
    with pytest.raises(ValidationError):
        config(artifacts=[entry])
    with pytest.raises(ValidationError):
        config(steps=[{"name": "a", "artifacts": [entry]}])


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("Example.COM.", "example.com"),
        ("*.example.com", "*.example.com"),
        ("2001:DB8:0:0::1", "2001:db8::1"),
        ("10.0.0.0/8", "10.0.0.0/8"),
    ],
)
def test_hosts_have_one_spelling(host: str, expected: str) -> None:
    assert normalize_host(host) == expected


@pytest.mark.parametrize(
    "host",
    ["", ".", "http://a.b", "a.b:443", "a/b", "*", "a.*.b", "*.", "*.10.0.0.1", "[::1]", "fe80::1%eth0",
     "10.0.0.1/8", "a_b", "-a", "a..b", "a\n.b", "1::/130%x"],
)  # fmt: skip
def test_what_is_no_host_is_refused(host: str) -> None:
    with pytest.raises(ValueError, match=r"host|wildcard"):
        normalize_host(host)


def test_hosts_need_an_allowlist() -> None:
    for table in ({"allowed_hosts": ["a.b"]}, {"network_mode": "public", "allowed_hosts": ["a.b"]}):
        with pytest.raises(ValidationError, match="allowlist"):
            config(environment=table)
        with pytest.raises(ValidationError, match="allowlist"):
            config(agent=table)
    with pytest.raises(ValidationError, match="allowlist"):
        config(agent={"allowed_hosts": []})


@pytest.mark.parametrize(
    "server",
    [
        {"name": "a"},
        {"name": "a", "transport": "stdio"},
        {"name": "a", "transport": "stdio", "command": "x", "headers": {"X": "y"}},
        {"name": "a", "url": "u", "headers": {"Authorization": "Bearer abc"}},
        {"name": "a", "url": "u", "headers": {"X-Api-Key": "${KEY:-default}"}},
        {"name": "a", "url": "u", "headers": {"X": "${MY_SECRET:-default}"}},
        {"name": "a", "url": "u", "headers": {"X": "${broken"}},
        {"name": "a", "url": "u", "headers": {"X": "a\r\nb"}},
        {"name": "a", "url": "u", "headers": {"X Y": "a"}},
        {"name": "a", "url": "u", "transport": "carrier-pigeon"},
    ],
)
def test_broken_mcp_servers_are_refused(server: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        MCPServerConfig.model_validate(server)


def test_mcp_headers_may_name_credentials() -> None:
    server = {"name": "a", "url": "u", "transport": "http", "headers": {"Authorization": "Bearer ${TOKEN}"}}
    assert MCPServerConfig.model_validate(server).transport == "streamable-http"


def test_tpu_topologies() -> None:
    assert TpuSpec(type="v6e", topology=" 2x4 ").topology == "2x4"
    for topology in ("4", "2x", "x2", "0x4", "2x4x", "axb", ""):
        with pytest.raises(ValidationError):
            TpuSpec(type="v6e", topology=topology)


def test_package_names_do_not_climb() -> None:
    for name in ("a", "a/b/c", "a/..", "a/b..c", "/b", "a/b\n", "-a/b"):
        with pytest.raises(ValidationError):
            config(task={"name": name})


def test_variables_are_read_as_harbor_reads_them() -> None:
    assert requested_variable("${A}") == Variable("A", None)
    assert requested_variable("${A:-b c}") == Variable("A", "b c")
    assert requested_variable("x${A}") is None
    assert requested_in_header("Bearer ${A}:${B:-c}") == [Variable("A", None), Variable("B", "c")]


def test_a_least_reward_is_a_number_or_a_table() -> None:
    task = config(steps=[{"name": "a", "min_reward": 0}, {"name": "b", "min_reward": {"x": 0.5}}])
    assert [step.min_reward for step in task.steps or ()] == [0, {"x": 0.5}]


def test_names_of_variables_are_checked_in_every_map() -> None:
    for tables in ({"solution": {"env": {"": "x"}}}, {"verifier": {"env": {"": "x"}}}):
        with pytest.raises(ValidationError, match="name of a variable"):
            config(**tables)


def test_services_lose_white_space_around_them() -> None:
    task = config(
        artifacts=[{"source": "/a", "service": " db "}],
        verifier={"collect": [{"command": "x", "service": " web "}]},
    )
    (artifact,) = task.artifacts
    assert not isinstance(artifact, str)
    assert artifact.service == "db"
    assert task.verifier.collect[0].service == "web"
