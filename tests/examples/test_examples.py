"""The example suites stay what they teach: Harbor takes each task, and each feature keeps its task.

That the tasks score what their metadata says is shown where they are run, with real sandboxes.
"""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from harbor.lint.models import COMPOSE_RULES, DEFAULT_RULES
from harbor.lint.task import lint_task
from harbor.models.task.task import Task
from omegaconf import OmegaConf

from argo_harbor.model.base import Model
from argo_harbor.model.platform import Platform
from argo_harbor.model.record import FINAL_ERRORS
from argo_harbor.model.spec import RunSpec
from argo_harbor.model.states import Outcome

pytestmark = pytest.mark.unit

EXAMPLES = Path(__file__).parents[2] / "examples"
SUITES = ("hello-world", "mixed", "allowlist", "compose")


class Example(NamedTuple):
    """One example task: its folder and the content of its task.toml."""

    folder: Path
    config: dict[str, Any]

    @property
    def environment(self) -> dict[str, Any]:
        return self.config.get("environment", {})

    @property
    def verifier(self) -> dict[str, Any]:
        return self.config.get("verifier", {})

    def text(self, path: str) -> str:
        """A file of the task; empty when it has none of that name."""
        file = self.folder / path
        return file.read_text() if file.is_file() else ""

    def expects(self, agent: str) -> dict[str, Any]:
        return self.config["metadata"][f"expect_{agent}"]


def examples(suite: str) -> Iterator[Example]:
    for folder in sorted((EXAMPLES / suite).iterdir()):
        if folder.is_dir():
            yield Example(folder, tomllib.loads((folder / "task.toml").read_text()))


ALL = [(suite, example) for suite in SUITES for example in examples(suite)]
TASKS = [pytest.param(example, id=f"{suite}/{example.folder.name}") for suite, example in ALL]


@pytest.mark.parametrize("example", TASKS)
def test_harbor_takes_the_task(example: Example) -> None:
    assert Task.is_valid_dir(example.folder)
    assert Task(example.folder).name == f"argo-harbor-examples/{example.folder.name}"
    # Harbor asks Docker's own program about compose files, which no test needs.
    rules = set(DEFAULT_RULES) - COMPOSE_RULES
    findings = {finding.rule.value for finding in lint_task(example.folder, selected_rules=rules)}
    assert findings <= {"shared-verifier"}


@pytest.mark.parametrize("example", TASKS)
def test_the_task_says_what_the_agents_without_a_model_get(example: Example) -> None:
    for agent in ("oracle", "nop"):
        expected = example.expects(agent)
        assert Outcome(expected["outcome"]) in (Outcome.SCORED, Outcome.UNSCORED, Outcome.ERRORED)
        if expected["outcome"] == Outcome.SCORED:
            assert set(expected) <= {"outcome", "reward", "rewards"}
            assert expected.get("rewards", expected)["reward"] == expected["reward"]
        else:
            assert set(expected) == {"outcome", "error"}
            assert expected["error"] in FINAL_ERRORS
    assert example.expects("nop").get("reward", 0.0) == 0.0


@pytest.mark.parametrize("example", TASKS)
def test_its_scripts_are_bash_that_can_be_run(example: Example) -> None:
    scripts = sorted(example.folder.rglob("*.sh"))
    assert {"test.sh", "solve.sh"} <= {script.name for script in scripts}
    for script in scripts:
        assert script.read_text().startswith("#!/bin/bash\n")
        assert script.stat().st_mode & 0o111 == 0o111, script
        parsed = subprocess.run(["bash", "-n", script], capture_output=True, text=True, check=False)
        assert (parsed.returncode, parsed.stderr) == (0, ""), script


@pytest.mark.parametrize("suite", SUITES)
def test_the_readme_lists_every_task_with_its_results(suite: str) -> None:
    rows = re.findall(
        r"^\| `([^`]+)` \| .+ \| (.+) \| (.+) \|$", (EXAMPLES / suite / "README.md").read_text(), re.M
    )
    assert rows == [
        (example.folder.name, in_words(example.expects("oracle")), in_words(example.expects("nop")))
        for example in examples(suite)
    ]


def in_words(expected: dict[str, Any]) -> str:
    if expected["outcome"] == Outcome.SCORED:
        return f"scored {expected['reward']}"
    return f"{expected['outcome']}, `{expected['error']}`"


def instructions(example: Example, path: str) -> set[str]:
    return set(re.findall(r"^([A-Z]+) ", example.text(path), re.M))


def links_made(example: Example) -> set[str]:
    return set(re.findall(r"^\s*ln -s (\S+)", example.text("solution/solve.sh"), re.M))


def ends_in(agent: str, **expected: object) -> Callable[[Example], bool]:
    return lambda example: example.expects(agent) == expected


def steps(example: Example) -> list[dict[str, Any]]:
    return example.config.get("steps", [])


FEATURES: dict[str, Callable[[Example], bool]] = {
    "passing oracle": ends_in("oracle", outcome="scored", reward=1.0),
    "failing oracle": ends_in("oracle", outcome="scored", reward=0.0),
    "reward.txt": lambda task: "/logs/verifier/reward.txt" in task.text("tests/test.sh"),
    "reward.json with several keys": lambda task: (
        "/logs/verifier/reward.json" in task.text("tests/test.sh")
        and len(task.expects("oracle").get("rewards", {})) > 1
    ),
    "three steps with min_reward, set-up, files, healthcheck, variables and artifacts": lambda task: (
        len(steps(task)) == 3
        and any("min_reward" in step for step in steps(task))
        and any("healthcheck" in step for step in steps(task))
        and any("env" in step.get("verifier", {}) for step in steps(task))
        and any("artifacts" in step for step in steps(task))
        and any(task.folder.glob("steps/*/workdir/setup.sh"))
        and any(task.folder.glob("steps/*/workdir/*.csv"))
    ),
    "tests shared by steps": lambda task: bool(steps(task)) and (task.folder / "tests").is_dir(),
    "steps that stop below min_reward, final reward": lambda task: (
        task.config.get("multi_step_reward_strategy") == "final" and task.expects("oracle")["reward"] == 0.5
    ),
    "separate verifier in the agent's image, file artifact": lambda task: (
        task.verifier.get("environment_mode") == "separate"
        and not (task.folder / "tests/Dockerfile").exists()
        and "environment" not in task.verifier
        and isinstance(task.config["artifacts"][0], str)
    ),
    "separate verifier in an image that brings the tests, folder artifact": lambda task: (
        "environment" in task.verifier
        and {"COPY", "RUN"} <= instructions(task, "tests/Dockerfile")
        and "exclude" in task.config["artifacts"][0]
    ),
    "healthcheck": lambda task: "healthcheck" in task.environment,
    "variables by template in all three tables": lambda task: all(
        any(re.fullmatch(r"\$\{\w+:-.+\}", value) for value in table.get("env", {}).values())
        for table in (task.environment, task.verifier, task.config.get("solution", {}))
    ),
    "no network": lambda task: task.environment.get("network_mode") == "no-network",
    "links among artifacts": lambda task: (
        links_made(task) >= {"report.txt", "/etc/passwd", "../../etc/passwd", "/nowhere/at/all", "."}
        and "/logs/artifacts" in task.text("solution/solve.sh")
        and task.config["artifacts"][0]["source"] == "/app/out"
    ),
    "Dockerfile instructions": lambda task: (
        instructions(task, "environment/Dockerfile")
        >= {"FROM", "RUN", "COPY", "WORKDIR", "ENV", "ARG", "LABEL", "CMD"}
    ),
    "prebuilt image with files": lambda task: (
        "docker_image" in task.environment
        and not (task.folder / "environment/Dockerfile").exists()
        and any((task.folder / "environment").iterdir())
    ),
    "server left running": lambda task: (
        bool(re.search(r"^nohup .*server.* &$", task.text("solution/solve.sh"), re.M))
        and ends_in("oracle", outcome="scored", reward=1.0)(task)
    ),
    "forged reward": lambda task: (
        bool(re.search(r"^nohup .*reward\.txt.* &$", task.text("solution/solve.sh"), re.M))
        and ends_in("oracle", outcome="unscored", error="reward_tampered")(task)
        and ends_in("nop", outcome="scored", reward=0.0)(task)
    ),
    "no reward written": ends_in("oracle", outcome="unscored", error="reward_missing"),
    "reward that is no number": lambda task: (
        "echo nan" in task.text("tests/test.sh")
        and ends_in("oracle", outcome="unscored", error="reward_invalid")(task)
    ),
    "verifier that hangs with a stubborn child": lambda task: (
        task.verifier.get("timeout_sec") == 3.0
        and "trap '' TERM" in task.text("tests/test.sh")
        and ends_in("oracle", outcome="errored", error="verifier_timeout")(task)
    ),
    "silent task.toml": lambda task: set(task.config) == {"task", "metadata"},
    "resources in task.toml": lambda task: {"cpus", "memory_mb", "storage_mb"} <= set(task.environment),
}


@pytest.mark.parametrize("feature", FEATURES)
def test_the_mixed_suite_has_a_task_for(feature: str) -> None:
    assert any(FEATURES[feature](example) for example in examples("mixed"))


def test_hello_world_is_one_task_with_every_part_of_one() -> None:
    (example,) = examples("hello-world")
    for part in ("instruction.md", "environment/Dockerfile", "solution/solve.sh", "tests/test.sh"):
        assert example.text(part)


def test_the_allowlist_suite_has_a_list_for_the_agent_and_none_for_the_verifier() -> None:
    for example in examples("allowlist"):
        agent = example.config["agent"] if "network_mode" in example.config["agent"] else example.environment
        verifier = example.verifier.get("environment", example.verifier)
        assert agent["network_mode"] == "allowlist"
        assert agent["allowed_hosts"]
        assert verifier["network_mode"] == "no-network"


def test_the_compose_suite_has_a_task_for_each_kind_of_service() -> None:
    texts = [example.text("environment/docker-compose.yaml") for example in examples("compose")]
    for wanted in (
        "healthcheck:",
        "service_completed_successfully",
        "environment:",
        "mem_limit:",
        "\nvolumes:",
    ):
        assert any(wanted in text for text in texts), wanted
    others = [example for suite, example in ALL if suite != "compose"]
    assert not any(example.text("environment/docker-compose.yaml") for example in others)


def test_tasks_of_other_suites_name_no_host_and_no_list() -> None:
    for suite, example in ALL:
        if suite != "allowlist":
            assert example.environment.get("network_mode", "public") in ("public", "no-network")


def test_the_platform_file_has_every_key() -> None:
    data = tomllib.loads((EXAMPLES / "platform.toml").read_text())
    platform = Platform.from_json(json.dumps(data))
    assert set(data) == keys_of(Platform) - {"built_in"}
    for name, value in platform:
        if isinstance(value, Model):
            assert set(data[name]) == keys_of(type(value)), name
    coder = platform.models["coder"]
    assert set(data["models"]["coder"]) == keys_of(type(coder))
    assert coder.closed_book
    assert set(platform.groups) == {"python", "debian", "node"}


def keys_of(model: type[Model]) -> set[str]:
    return {field.alias or name for name, field in model.model_fields.items()}


def test_the_platform_file_names_placeholder_hosts_only() -> None:
    text = (EXAMPLES / "platform.toml").read_text()
    hosts = re.findall(r"\b(?:[a-z0-9-]+\.)+(?:com|org|net|io|dev|ai)\b", text)
    assert hosts
    assert {host for host in hosts if not host.endswith("example.com")} == set()


def test_the_request_files_are_read() -> None:
    specs = EXAMPLES / "specs"
    oracle = RunSpec.from_json(json.dumps(tomllib.loads((specs / "oracle.toml").read_text())))
    assert oracle == RunSpec.for_agent("oracle")

    resolved = OmegaConf.to_container(OmegaConf.load(specs / "retries-and-canary.yaml"), resolve=True)
    canary = RunSpec.from_json(json.dumps(resolved))
    assert (canary.spec.target.n_attempts, canary.spec.target.max_retries, canary.canary_size) == (3, 1, 5)
    assert canary.spec.verifier.env == canary.spec.target.env == {"GREETING": "lit:good morning"}

    codex = RunSpec.from_json((specs / "codex.json").read_text())
    platform = Platform.from_json(json.dumps(tomllib.loads((EXAMPLES / "platform.toml").read_text())))
    model = codex.spec.target.source.model
    assert model is not None
    assert codex.spec.target.env_secrets["OPENAI_API_KEY"] == platform.models[model.ref].secret
    assert codex.spec.target.agent_kwargs
