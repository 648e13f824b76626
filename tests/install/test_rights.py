"""Every account may do what its pods do, and nothing else."""

from __future__ import annotations

import pytest

from argo_harbor.install.manifests import Settings, manifests
from argo_harbor.install.rights import ACCOUNT_RULES, EXECUTORS, user_rules
from argo_harbor.model.platform import Platform
from argo_harbor.workflow import names
from argo_harbor.workflow.compile import compile_workflow
from tests.support import plans
from tests.support.workflows import strings

GRANTED = {
    names.TRIAL_ACCOUNT: set(),
    names.BUILD_ACCOUNT: set(),
    names.EXECUTOR_ACCOUNT: {"workflowtaskresults create", "workflowtaskresults patch"},
    names.NETWORK_ACCOUNT: {
        "networkpolicies get",
        "networkpolicies create",
        "networkpolicies patch",
        "pods get",
        "pods create",
        "pods patch",
        "workflowtaskresults create",
        "workflowtaskresults patch",
    },
    names.MERGE_ACCOUNT: {"workflows get", "workflows list", "pods list", "events list"},
    names.SHARD_ACCOUNT: {"workflows create", "workflows get", "workflows list", "workflows patch"},
    names.WATCH_ACCOUNT: {"workflows list", "pods list", "pods patch"},
}


def granted(account: str) -> set[str]:
    return {
        f"{resource} {verb}"
        for rule in ACCOUNT_RULES[account]
        for resource in rule.resources
        for verb in rule.verbs
    }


@pytest.mark.parametrize("account", sorted(GRANTED))
def test_an_account_may_do_just_this(account: str) -> None:
    assert granted(account) == GRANTED[account]


def test_there_is_no_other_account() -> None:
    assert set(ACCOUNT_RULES) == set(GRANTED)


def test_nothing_is_granted_by_wildcard_and_no_pod_reads_secrets() -> None:
    for rules in (*ACCOUNT_RULES.values(), user_rules("argo-harbor-store")):
        for rule in rules:
            assert "*" not in (rule.group, *rule.resources, *rule.verbs, *rule.names)
    assert not any("secrets" in rule.resources for rules in ACCOUNT_RULES.values() for rule in rules)


def test_people_read_the_secret_of_the_store_and_no_other() -> None:
    reading = [
        rule for rule in user_rules("own-store") if "secrets" in rule.resources and "get" in rule.verbs
    ]
    assert [rule.names for rule in reading] == [("own-store",)]


def test_every_account_of_a_compiled_workflow_is_installed() -> None:
    compiled = [
        text for document in compile_workflow(plans.example_plan("mixed")) for text in strings(document)
    ]
    # Of the pod that a step creates it stands in that step's manifest.
    lines = {line for text in compiled for line in text.splitlines()}
    used = {
        account
        for account in ACCOUNT_RULES
        if account in lines or f"  serviceAccountName: {account}" in lines
    }
    assert used >= {
        names.TRIAL_ACCOUNT,
        names.BUILD_ACCOUNT,
        names.EXECUTOR_ACCOUNT,
        names.NETWORK_ACCOUNT,
        names.MERGE_ACCOUNT,
        names.WATCH_ACCOUNT,
    }
    installed = manifests(Settings(Platform(), "", {}))
    accounts = {item["metadata"]["name"] for item in installed if item["kind"] == "ServiceAccount"}
    assert accounts == set(ACCOUNT_RULES)
    secrets = {item["metadata"]["name"] for item in installed if item["kind"] == "Secret"}
    assert secrets == {names.token_secret(account) for account in EXECUTORS}
