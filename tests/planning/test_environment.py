from __future__ import annotations

from typing import Any

import pytest

from argo_harbor.model.plan import EnvNeeds, Grant
from argo_harbor.model.spec import RunSpec
from tests.planning.support import part_of, places, plan_of, refused, spec

MCP = {"name": "tools", "url": "https://mcp.example"}


def granting(target: dict[str, str] | None = None, verifier: dict[str, str] | None = None) -> RunSpec:
    return spec(target={"source": {"name": "oracle"}, "env": target or {}}, verifier={"env": verifier or {}})


def config_at(place: str, value: str) -> dict[str, Any]:
    """A task.toml with that value in that place."""
    return {
        "environment": {"environment": {"env": {"X": value}}},
        "headers": {"environment": {"mcp_servers": [{**MCP, "headers": {"X-Team": value}}]}},
        "solution": {"solution": {"env": {"X": value}}},
        "verifier": {"verifier": {"env": {"X": value}}},
        "own": {"verifier": {"environment": {"env": {"X": value}}}},
        "step": {"steps": [{"name": "one", "verifier": {"env": {"X": value}}}]},
        "step own": {"steps": [{"name": "one", "verifier": {"environment": {"env": {"X": value}}}}]},
    }[place]


PLACES = {
    "environment": ("environment.env.X", "target"),
    "headers": ("environment.mcp_servers[0].headers.X-Team", "target"),
    "solution": ("solution.env.X", "target"),
    "verifier": ("verifier.env.X", "verifier"),
    "step": ("steps[0].verifier.env.X", "verifier"),
}


@pytest.mark.parametrize("place", PLACES)
def test_each_map_grants_for_its_own_destination(place: str) -> None:
    key, grantor = PLACES[place]
    config = config_at(place, "${TEAM}")
    other = {"target": "verifier", "verifier": "target"}[grantor]
    found = refused(config, request=granting(**{other: {"TEAM": "lit:a"}}))
    assert places(found) == [("env_not_granted", key)]
    assert f"spec.{grantor}.env" in found[0].hint
    needs = part_of(config, request=granting(**{grantor: {"TEAM": "lit:a"}})).env
    assert needs != EnvNeeds()
    destination = {"headers": "environment", "step": "verifier"}.get(place, place)
    assert getattr(needs, destination) == ("TEAM",)


@pytest.mark.parametrize("place", ["own", "step own"])
def test_the_environment_of_a_separate_verifier_may_read_both_maps(place: str) -> None:
    config = config_at(place, "${TEAM}")
    assert refused(config)[0].code == "env_not_granted"
    assert part_of(config, request=granting(target={"TEAM": "lit:a"})).env == EnvNeeds(environment=("TEAM",))
    assert part_of(config, request=granting(verifier={"TEAM": "lit:a"})).env == EnvNeeds(verifier=("TEAM",))


@pytest.mark.parametrize("place", [*PLACES, "own", "step own"])
def test_an_ungranted_name_with_a_default_is_nobodys_need(place: str) -> None:
    assert part_of(config_at(place, "${TEAM:-red}")).env == EnvNeeds()


@pytest.mark.parametrize("name", ["PATH", "HOME", "LANG"])
@pytest.mark.parametrize("place", [*PLACES, "own", "step own"])
def test_the_runners_own_names_are_refused_unless_granted(place: str, name: str) -> None:
    for value in (f"${{{name}}}", f"${{{name}:-/default}}"):
        found = refused(config_at(place, value))
        assert [finding.code for finding in found] == ["env_not_granted"]
        both = {name: "lit:/granted"}
        assert part_of(config_at(place, value), request=granting(both, both)).env != EnvNeeds()


def test_literals_ask_for_nothing() -> None:
    assert part_of(config_at("environment", "a ${HOME} b")).env == EnvNeeds()
    assert part_of(config_at("environment", "$HOME")).env == EnvNeeds()


def test_only_the_oracle_reads_the_solutions_environment() -> None:
    config = config_at("solution", "${TEAM}")
    assert part_of(config, request=spec("nop")).env == EnvNeeds()
    assert refused(config, request=spec("oracle"))[0].code == "env_not_granted"


def test_a_value_that_a_step_replaces_is_not_read() -> None:
    config: dict[str, Any] = {
        "verifier": {"env": {"X": "${TEAM}"}},
        "steps": [{"name": "one", "verifier": {"env": {"X": "literal"}}}],
    }
    assert part_of(config).env == EnvNeeds()
    config["steps"].append({"name": "two"})
    assert places(refused(config)) == [("env_not_granted", "verifier.env.X")]


def test_every_ungranted_name_is_reported() -> None:
    config = {"environment": {"env": {"A": "${ONE}", "B": "${TWO}"}}, "verifier": {"env": {"C": "${ONE}"}}}
    assert places(refused(config)) == [
        ("env_not_granted", "environment.env.A"),
        ("env_not_granted", "environment.env.B"),
        ("env_not_granted", "verifier.env.C"),
    ]


def test_grants_are_sorted_and_of_four_kinds() -> None:
    request = spec(
        target={
            "source": {"name": "oracle"},
            "env": {"Z": "lit:a:b", "A": "host:MINE", "R": "runtime:POD", "S": "secret:one/key"},
            "env_secrets": {"T": "two/key", "U": "three"},
        },
        verifier={"env_secrets": {"S": "one/key"}},
    )
    grants = plan_of(request=request).head.grants
    assert grants.target == (
        Grant(name="A", kind="host", value="MINE"),
        Grant(name="R", kind="runtime", value="POD"),
        Grant(name="S", kind="secret", value="one/key"),
        Grant(name="T", kind="secret", value="two/key"),
        Grant(name="U", kind="secret", value="three/U"),
        Grant(name="Z", kind="lit", value="a:b"),
    )
    assert grants.verifier == (Grant(name="S", kind="secret", value="one/key"),)


def test_one_name_has_one_value() -> None:
    found = refused(request=granting({"A": "lit:1", "B": "lit:x"}, {"A": "lit:2", "B": "lit:x"}))
    assert places(found) == [("env_conflict", "spec.verifier.env.A")]
    within = spec(target={"source": {"name": "oracle"}, "env": {"A": "lit:1"}, "env_secrets": {"A": "s/k"}})
    assert places(refused(request=within)) == [("env_conflict", "spec.target.env_secrets.A")]


@pytest.mark.parametrize("text", ["host:", "host:MY VAR", "runtime:1A", "secret:UPPER/key", "secret:a/b/c"])
def test_prefixed_values_that_name_nothing(text: str) -> None:
    assert places(refused(request=granting({"A": text}))) == [("invalid_spec", "spec.target.env.A")]


def test_a_name_that_no_variable_has_cannot_be_granted() -> None:
    [finding] = refused({"environment": {"env": {"A": "${MY\nVAR}", "B": "${MY VAR:-default}"}}})
    assert (finding.code, finding.key) == ("env_not_granted", "environment.env.A")
    assert finding.message == "reads 'MY\\nVAR', which is no name of a variable"
    assert "spec.target.env" not in finding.hint
