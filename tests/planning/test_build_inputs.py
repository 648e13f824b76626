"""Where the values of builds come from."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from argo_harbor.model.build import BuildInputs
from argo_harbor.model.platform import Platform
from argo_harbor.planning.build_inputs import merged_inputs
from argo_harbor.planning.report import Report
from tests.planning.support import OPEN, places, plan_of, refused, spec


def site(**build: dict[str, str]) -> Platform:
    return Platform.from_data({"build": build})


def test_the_requests_values_come_after_the_platforms() -> None:
    platform = site(args={"A": "site", "B": "site"}, secrets={"x": "site/key", "y": "site/key"})
    asked = BuildInputs(args={"B": "mine", "C": "mine"}, secrets={"y": "mine/key"})
    found = merged_inputs(platform, asked, Report())
    assert found.args == {"A": "site", "B": "mine", "C": "mine"}
    assert found.secrets == {"x": "site/key", "y": "mine/key"}


@pytest.mark.parametrize("prefix", ["host", "lit", "runtime", "secret"])
def test_an_argument_takes_no_prefix(prefix: str) -> None:
    report = Report()
    value = {"TOKEN": f"{prefix}:NAME"}
    merged_inputs(site(args=value), BuildInputs(args=value), report)
    assert places(tuple(report.findings)) == [
        ("invalid_platform", "build.args.TOKEN"),
        ("invalid_spec", "execution.build.args.TOKEN"),
    ]
    assert all("--build-secret" in finding.hint for finding in report.findings)


def test_a_run_with_such_a_value_is_refused() -> None:
    request = spec()
    build = BuildInputs(args={"TOKEN": "host:NAME"})
    request = request.model_copy(update={"execution": request.execution.model_copy(update={"build": build})})
    assert places(refused(request=request)) == [("invalid_spec", "execution.build.args.TOKEN")]


def test_the_platforms_values_reach_a_plan() -> None:
    made = plan_of(profile=OPEN, platform=site(args={"MIRROR": "http://mirror.example"}))
    assert made.head.platform.build.args == {"MIRROR": "http://mirror.example"}
    assert made.parts[0].images.agent.arguments == ()


@pytest.mark.parametrize(
    "data",
    [
        {"args": {"no name": "x"}},
        {"args": {"{{x}}": "x"}},
        {"secrets": {"../id": "a/b"}},
        {"secrets": {"id": "a/{{b}}"}},
        {"secrets": {"id": "A/b"}},
        {"secrets": {"id": "only-a-name"}},
    ],
)
def test_names_are_plain(data: dict[str, dict[str, str]]) -> None:
    with pytest.raises(ValidationError):
        BuildInputs.from_data(data)
