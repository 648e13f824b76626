from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import tomli_w
import yaml

from argo_harbor.errors import Finding, Refused, UsageError
from argo_harbor.model.spec import RunSpec
from argo_harbor.settings.specfile import read_spec, spec_of_flags

SPECS = Path(__file__).parents[2] / "examples" / "specs"
PLAIN: dict[str, Any] = {"spec": {"target": {"source": {"name": "oracle"}}}, "execution": {}}


def write(folder: Path, data: Any, name: str = "spec.json") -> Path:
    path = folder / name
    if not isinstance(data, str):
        dump = {".json": json.dumps, ".yaml": yaml.safe_dump, ".toml": tomli_w.dumps}[path.suffix]
        data = dump(data)
    path.write_text(data)
    return path


def refused(folder: Path, data: Any, *overrides: str) -> tuple[Finding, ...]:
    path = write(folder, data)
    with pytest.raises(Refused) as caught:
        read_spec(path, overrides)
    assert caught.value.code == "invalid_spec"
    assert all(item.file == str(path) for item in caught.value.items)
    return caught.value.items


def keys(found: tuple[Finding, ...]) -> list[str]:
    return [item.key for item in found]


def with_target(**target: Any) -> dict[str, Any]:
    return {"spec": {"target": {"source": {"name": "oracle"}, **target}}, "execution": {}}


@pytest.mark.parametrize("suffix", [".json", ".yaml", ".toml"])
def test_three_formats_say_the_same(tmp_path: Path, suffix: str) -> None:
    data = {**PLAIN, "timeout_seconds": 60, "canary": True}
    spec = read_spec(write(tmp_path, data, f"spec{suffix}"))
    assert spec == RunSpec.from_data(data)
    text = (tmp_path / f"spec{suffix}").read_text()
    assert read_spec(write(tmp_path, text, "spec.conf")) == spec


@pytest.mark.parametrize("path", sorted(SPECS.glob("*.*[!d]")), ids=lambda path: path.name)
def test_the_examples_are_valid(path: Path) -> None:
    assert read_spec(path).spec.target.kind == "harbor"


def test_references_to_other_keys_and_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPERIMENT", "nightly")
    data = with_target(
        env={"TEAM": "lit:red"}, n_attempts=3, agent_kwargs={"runs": "${spec.target.n_attempts}"}
    )
    data["spec"]["verifier"] = {"env": {"TEAM": "${spec.target.env.TEAM}"}}
    data["publication"] = {"experiment": "${oc.env:EXPERIMENT}"}
    spec = read_spec(write(tmp_path, data))
    assert spec.spec.verifier.env == {"TEAM": "lit:red"}
    assert spec.spec.target.agent_kwargs == {"runs": 3}
    assert spec.publication.experiment == "nightly"


def test_all_values_still_to_fill_are_listed(tmp_path: Path) -> None:
    data = with_target(n_attempts="???", agent_kwargs={"a": ["x", "???"]})
    data["spec"]["target"]["source"]["model"] = {"ref": "???"}
    found = refused(tmp_path, data)
    assert keys(found) == [
        "spec.target.source.model.ref",
        "spec.target.n_attempts",
        "spec.target.agent_kwargs.a[1]",
    ]
    assert all("still to fill" in item.message for item in found)
    assert keys(refused(tmp_path, data, "spec.target.n_attempts=2", "spec.target.source.model.ref=m")) == [
        "spec.target.agent_kwargs.a[1]"
    ]


def test_a_bare_value_shows_the_fix_and_not_the_value(tmp_path: Path) -> None:
    data = with_target(env={"API_KEY": "hunter2", "N": 5, "OK": "lit:x"})
    data["spec"]["verifier"] = {"env": {"J": "plain:x"}}
    found = refused(tmp_path, data)
    assert keys(found) == ["spec.target.env.API_KEY", "spec.target.env.N", "spec.verifier.env.J"]
    assert "host:API_KEY" in found[0].hint
    assert "lit:VALUE" in found[0].hint
    assert "hunter2" not in str([item.as_json() for item in found])


@pytest.mark.parametrize(
    "text", ["${oc.env:MINE}", "lit:${oc.env:MINE}", "${oc.env:MINE,default}", "${oc.env: MINE }"]
)
@pytest.mark.parametrize("table", ["env", "env_secrets"])
def test_variables_never_flow_into_an_env_map(tmp_path: Path, text: str, table: str) -> None:
    found = refused(tmp_path, with_target(**{table: {"A": text}}))
    assert keys(found) == [f"spec.target.{table}.A"]
    assert "host:MINE" in found[0].hint


@pytest.mark.parametrize(
    "name", ["API_KEY", "MY_SECRET", "GH_TOKEN", "DB_PASSWORD", "AWS_CREDENTIALS", "AUTH_HEADER", "$X"]
)
@pytest.mark.parametrize("key", ["agent_kwargs", "reward_key"])
def test_credentials_never_flow_into_the_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, key: str
) -> None:
    monkeypatch.setenv(name.strip("$"), "hunter2")
    text = f"prefix ${{oc.env:{name}}}"
    data = with_target(agent_kwargs={"x": text}) if key == "agent_kwargs" else with_target()
    if key == "reward_key":
        data["spec"]["reward_key"] = text
    found = refused(tmp_path, data)
    assert len(found) == 1
    assert "credential" in found[0].message
    assert "hunter2" not in str(found)


@pytest.mark.parametrize("text", ["${oc.${spec.kind}:API_KEY}", "${spec.${x}.y}"])
def test_a_computed_reference_is_refused(tmp_path: Path, text: str) -> None:
    found = refused(tmp_path, with_target(agent_kwargs={"x": text}))
    assert "reference in the name of another" in found[0].message


@pytest.mark.parametrize(
    "text", ["${nowhere.at.all}", "${oc.env:NOT_SET_ANYWHERE}", "${oc.nothing:x}", "${a"]
)
def test_a_reference_that_leads_nowhere(tmp_path: Path, text: str) -> None:
    (found,) = refused(tmp_path, with_target(agent_kwargs={"x": text}))
    assert found.key in ("spec.target.agent_kwargs.x", "")


def test_unknown_keys_have_the_nearest(tmp_path: Path) -> None:
    data = with_target(n_atempts=2)
    data["spec"]["verifier"] = {"enviroment": {}}
    data["excution"] = data.pop("execution")
    found = {item.key: item for item in refused(tmp_path, data)}
    assert set(found) == {"spec.target.n_atempts", "spec.verifier.enviroment", "excution", "execution"}
    assert found["spec.target.n_atempts"].hint.startswith("did you mean n_attempts?")
    assert found["excution"].hint.startswith("did you mean execution?")
    assert "an empty table takes every default" in found["execution"].hint


def test_wrong_values_have_their_key(tmp_path: Path) -> None:
    data = with_target(n_attempts="2", max_retries=11, env={"1A": "lit:x"})
    data["canary"] = "yes"
    data["execution"] = {"sandbox": {"cpus": 0}}
    data["deployment"] = {"image": "m:1", "command": ["a", 5]}
    assert keys(refused(tmp_path, data)) == [
        "spec.target.env.1A",
        "spec.target.n_attempts",
        "spec.target.max_retries",
        "execution.sandbox.cpus",
        "deployment.command[1]",
        "canary",
    ]


def test_overrides(tmp_path: Path) -> None:
    path = write(tmp_path, PLAIN)
    spec = read_spec(
        path,
        [
            "spec.target.n_attempts=3",
            "canary=true",
            "execution.sandbox.profile=mine",
            "spec.target.env.A=lit: b: c",
            "spec.target.agent_kwargs={effort: high}",
            "spec.target.agent_kwargs.started=2020-01-01",
            "spec.reward_key='7'",
            "timeout_seconds=null",
        ],
    )
    target = spec.spec.target
    assert (target.n_attempts, spec.canary, spec.execution.sandbox.profile) == (3, True, "mine")
    assert target.env == {"A": "lit: b: c"}
    assert target.agent_kwargs == {"effort": "high", "started": "2020-01-01"}
    assert (spec.spec.reward_key, spec.timeout_seconds) == ("7", None)
    assert read_spec(path, ["spec.reward_key=[a"]).spec.reward_key == "[a"


@pytest.mark.parametrize("override", ["novalue", "=5", "spec..x=1", "spec.target.source.name.x=1"])
def test_overrides_that_are_none(tmp_path: Path, override: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_spec(write(tmp_path, PLAIN), [override])
    assert caught.value.code == "unknown_flag_value"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.json", "{"),
        ("x.yaml", "a: [\n"),
        ("x.toml", "a ="),
        ("x.json", "[1]"),
        ("x.yaml", "just text"),
        ("x", ""),
        ("x.json", '{"a":' * 100_000),
        ("x.json", '{"a":' + "[" * 5000 + "]" * 5000 + "}"),
        ("x.yaml", "2020-01-01: {5: x}\nexecution: {}"),
    ],
)
def test_broken_files(tmp_path: Path, name: str, text: str) -> None:
    with pytest.raises(Refused) as caught:
        read_spec(write(tmp_path, text, name))
    assert caught.value.code == "invalid_spec"


def test_flags_stand_for_a_request() -> None:
    spec = spec_of_flags(
        agent="nop", profile="closed", cpus=2.0, canary=3, overrides=["spec.target.n_attempts=4"]
    )
    assert spec.spec.target.source.name == "nop"
    assert spec.execution.sandbox.model_dump(exclude_none=True) == {"profile": "closed", "cpus": 2.0}
    assert (spec.canary_size, spec.spec.target.n_attempts) == (3, 4)
    assert spec_of_flags(agent="oracle") == RunSpec.for_agent("oracle")
    with pytest.raises(Refused) as caught:
        spec_of_flags(agent="nop", memory_mb=0)
    assert [item.key for item in caught.value.items] == ["execution.sandbox.memory_mb"]


HUGE = f"0x{'F' * 6000}"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("spec.yaml", f"spec: {{target: {{source: {{name: oracle}}, n_attempts: {HUGE}}}}}\nexecution: {{}}"),
        ("spec.toml", f'[spec.target]\nn_attempts = {HUGE}\nsource = {{name = "oracle"}}\n[execution]'),
    ],
)
def test_a_number_of_more_digits_than_python_writes(tmp_path: Path, name: str, text: str) -> None:
    with pytest.raises(Refused, match="thousands of digits") as caught:
        read_spec(write(tmp_path, text, name))
    assert caught.value.code == "invalid_spec"


def test_half_a_character_is_said_without_the_text_around_it(tmp_path: Path) -> None:
    [finding] = refused(tmp_path, with_target(env={"A": "lit:secret\ud800"}))
    assert finding.message == "holds half a character, such as \\ud800"
    assert finding.hint


def test_deeply_nested_text_without_a_suffix(tmp_path: Path) -> None:
    path = write(tmp_path, f"a = {'[' * 5000}{']' * 5000}", "request")
    with pytest.raises(Refused) as caught:
        read_spec(path)
    assert caught.value.code == "invalid_spec"


@pytest.mark.parametrize("value", ["1" * 5000, "[" * 5000])
def test_an_override_that_yaml_cannot_read_is_a_text(value: str) -> None:
    with pytest.raises(Refused) as caught:
        spec_of_flags(agent="oracle", overrides=[f"spec.target.n_attempts={value}"])
    assert [item.key for item in caught.value.items] == ["spec.target.n_attempts"]


def test_an_override_that_holds_itself() -> None:
    with pytest.raises(Refused, match="nested too deeply") as caught:
        spec_of_flags(agent="oracle", overrides=["spec.target.agent_kwargs={a: &a [*a]}"])
    assert [item.file for item in caught.value.items] == [""]
