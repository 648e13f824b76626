"""The build step: BuildKit's daemon gets settings and no credentials, its client credentials."""

from __future__ import annotations

from typing import Any

import pytest
import tomli
import yaml

from argo_harbor.errors import Refused
from argo_harbor.model.platform import Platform
from argo_harbor.workflow import names, network
from argo_harbor.workflow.build import build_template, entry_name
from argo_harbor.workflow.buildkit import daemon_config
from argo_harbor.workflow.checks import check_plan
from argo_harbor.workflow.compile import compile_workflow
from argo_harbor.workflow.pods import WHOLE
from tests.support.plans import built, run_plan, task_plan


def template(**platform: Any) -> dict[str, Any]:
    plan = run_plan([task_plan(0, image=built("a"))], platform=Platform.from_data(platform))
    return dict(build_template(plan, WHOLE))


def daemon(found: dict[str, Any]) -> dict[str, Any]:
    [one] = [
        each for each in yaml.safe_load(found["podSpecPatch"])["initContainers"] if "restartPolicy" in each
    ]
    return dict(one)


def test_the_daemon_learns_of_mirror_and_plain_registries() -> None:
    platform = Platform(
        base_image_mirror="mirror.tools.svc:5000/hub",
        insecure_registries=("registry.tools.svc:5000", "mirror.tools.svc:5000"),
    )
    assert tomli.loads(daemon_config(platform)) == {
        "registry": {
            "registry.tools.svc:5000": {"http": True},
            "mirror.tools.svc:5000": {"http": True},
            "docker.io": {"mirrors": ["mirror.tools.svc:5000/hub"]},
        }
    }


def test_the_daemon_writes_its_settings_before_it_starts() -> None:
    found = daemon(template(insecure_registries=["registry.tools.svc:5000"]))
    [variable] = found["env"]
    assert tomli.loads(variable["value"])["registry"].keys() == {"registry.tools.svc:5000"}
    shell, flag, script = found["command"]
    assert (shell, flag) == ("sh", "-c")
    assert script.startswith(
        f'printf %s "${variable["name"]}" > /tmp/buildkitd.toml && exec buildkitd --config'
    )


def test_a_hub_that_is_mirrored_under_the_registry_itself_is_one_table_each() -> None:
    platform = Platform(insecure_registries=("a:1", "a:1"), base_image_mirror="a:1")
    assert len(tomli.loads(daemon_config(platform))["registry"]) == 2


def test_each_secret_is_a_folder_of_the_runner_and_may_be_missing() -> None:
    found = template(secrets={"registry": "push", "image_pull": ["pull", "push"]})
    secrets = {each["name"]: each["secret"] for each in found["volumes"] if "secret" in each}
    assert [each["secretName"] for each in secrets.values()] == ["push", "pull"]
    assert all(each["optional"] for each in secrets.values())
    paths = {each["name"]: each["mountPath"] for each in found["container"]["volumeMounts"]}
    assert [paths[name] for name in secrets] == [f"{names.REGISTRY_PATH}/push", f"{names.REGISTRY_PATH}/pull"]
    assert not secrets.keys() & {each["name"] for each in daemon(found)["volumeMounts"]}


def test_the_fence_lets_builds_reach_a_mirror_inside_the_cluster() -> None:
    platform = Platform(base_image_mirror="10.1.2.3:5000", insecure_registries=("10.1.2.3:5000", "10.1.2.4"))
    plan = run_plan([task_plan(0, image=built("a"))], platform=platform)
    rules = yaml.safe_load(network.build_template(network.Ground.of(plan))["resource"]["manifest"])["spec"][
        "egress"
    ]
    inner = [
        (rule["to"][0]["ipBlock"]["cidr"], rule["ports"][0]["port"]) for rule in rules if "ports" in rule
    ]
    assert inner == [("10.1.2.3/32", 5000), ("10.1.2.4/32", 80)]


def test_a_mirror_that_names_no_host_is_refused() -> None:
    with pytest.raises(Refused, match="base_image_mirror"):
        check_plan(run_plan([task_plan(0)], platform=Platform(base_image_mirror="-/hub")))


TOKEN = (("token", "builds/token"),)


def test_builds_of_a_run_that_mount_secrets_have_a_template_of_their_own() -> None:
    with_secret = built("b").model_copy(update={"secrets": TOKEN})
    parts = [task_plan(0, image=built("a")), task_plan(1, image=with_secret), task_plan(2, image=with_secret)]
    [workflow] = compile_workflow(run_plan(parts))
    templates = {each["name"]: each for each in workflow["spec"]["templates"]}
    called = [each["template"] for each in templates["main"]["dag"]["tasks"]]
    assert [name for name in called if names.is_build(name)] == ["build", "build-with-secrets-0"]
    assert "build-secret-0" in str(templates["build-with-secrets-0"]["container"])
    assert "build-secret-0" not in str(templates["build"]) + str(templates["main"])


def test_a_run_has_no_more_build_templates_than_it_calls() -> None:
    with_secret = built("b").model_copy(update={"secrets": TOKEN})
    parts = [task_plan(0, image=built("a")), task_plan(1, image=with_secret)]
    [workflow] = compile_workflow(run_plan(parts), present=[built("a").key])
    found = [each["name"] for each in workflow["spec"]["templates"] if names.is_build(each["name"])]
    assert found == ["build-with-secrets-0"]


def test_names_of_entries() -> None:
    taken: set[str] = set()
    assert entry_name("fix", "agent", "a" * 64, taken) == "build-fix"
    assert entry_name("fix", "service-my_db.1", "b" * 64, taken) == "build-fix-service-my-db-1"
    assert entry_name("fix", "service-my-db-1", "c" * 64, taken) == "build-fix-service-my-db-1-cccccccc"
    assert entry_name("x" * 60, "verifier", "d" * 64, taken) == f"build-{'x' * 48}-verifier-dddddddd"
