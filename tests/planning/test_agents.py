from __future__ import annotations

from typing import Any

import pytest

from argo_harbor.model.plan import ModelPlan
from argo_harbor.model.platform import Platform
from tests.planning.support import SITE, calling, places, plan_of, refused, spec


def test_an_agent_without_a_model() -> None:
    agent = plan_of(request=spec("nop")).head.agent
    assert (agent.name, agent.calls_model, agent.model) == ("nop", False, None)


def test_a_model_is_copied_from_the_platform() -> None:
    agent = plan_of(request=calling()).head.agent
    assert agent.calls_model
    assert agent.model == ModelPlan(
        ref="coder",
        base_url="https://llm.example/v1",
        model="coder-1",
        provider="openai",
        secret="llm/key",
        hosts=("llm.example",),
        closed_book=True,
    )


def test_an_agent_that_calls_no_model_opens_no_hosts_for_one() -> None:
    plan = plan_of({"environment": {"network_mode": "no-network"}}, request=calling(agent="oracle"))
    assert plan.head.agent.model is not None
    assert plan.parts[0].rules.agent.mode == "none"


@pytest.mark.parametrize("name", ["acp:some-agent", "acp:some-agent@1.2"])
def test_agents_of_the_acp_registry(name: str) -> None:
    assert plan_of(request=calling(agent=name)).head.agent.name == name


def test_an_unknown_agent() -> None:
    found = refused(request=spec("oracel"))
    assert places(found) == [("invalid_spec", "spec.target.source.name")]
    assert "did you mean oracle?" in found[0].hint


def test_a_model_is_required() -> None:
    found = refused(request=spec("codex"), platform=SITE)
    assert places(found) == [("model_required", "spec.target.source.model.ref")]
    assert "models: browsing, coder" in found[0].hint
    assert "add [models.NAME]" in refused(request=spec("codex"), platform=Platform())[0].hint


def test_an_unknown_model() -> None:
    found = refused(request=calling("codr"), platform=SITE)
    assert places(found) == [("invalid_spec", "spec.target.source.model.ref")]
    assert "did you mean coder?" in found[0].hint


def custom(name: str = "mine", **source: Any) -> Any:
    return spec(target={"source": {"name": name, "import_path": "pkg.mod:Agent", **source}})


def test_an_agent_of_the_runners_image() -> None:
    without = plan_of(request=custom()).head.agent
    assert (without.import_path, without.calls_model) == ("pkg.mod:Agent", False)
    assert plan_of(request=custom(model={"ref": "coder"})).head.agent.calls_model
    assert plan_of(request=custom("oracle", model={"ref": "coder"})).head.agent.calls_model
    assert places(refused(request=custom("{{workflow.name}}"))) == [
        ("invalid_spec", "spec.target.source.name")
    ]


@pytest.mark.parametrize(
    ("kwargs", "place"),
    [
        ({"api_key": "x"}, "api_key"),
        ({"nested": [{"authToken": "x"}]}, "nested[0].authToken"),
        ({"passwords": ["x"]}, "passwords[0]"),
        ({"note": "sk-abcdefghijklmnop1234"}, "note"),
        ({"note": "-----BEGIN KEY"}, "note"),
    ],
)
def test_credentials_in_kwargs_are_refused(kwargs: dict[str, Any], place: str) -> None:
    request = spec(target={"source": {"name": "oracle"}, "agent_kwargs": kwargs})
    assert places(refused(request=request)) == [("invalid_spec", f"spec.target.agent_kwargs.{place}")]


def test_harmless_kwargs_reach_the_plan() -> None:
    kwargs = {"max_tokens": "4096", "token_limit": 5, "api_key": "", "effort": "high"}
    request = spec(target={"source": {"name": "oracle"}, "agent_kwargs": kwargs})
    assert plan_of(request=request).head.agent.kwargs == kwargs


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}])
def test_kwargs_that_cannot_stand_in_a_plan(value: Any) -> None:
    request = spec()
    target = request.spec.target.model_copy(update={"agent_kwargs": {"x": value}})
    request = request.model_copy(update={"spec": request.spec.model_copy(update={"target": target})})
    assert places(refused(request=request)) == [("invalid_spec", "spec.target.agent_kwargs")]
