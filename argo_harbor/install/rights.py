"""Who may do what: the rules of every account and of the people who submit runs.

One table, so that the tests can ask an API server about every line of it and about everything beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from argo_harbor.workflow import names

CORE = ""
ARGO = "argoproj.io"
NETWORKING = "networking.k8s.io"


class Rule(NamedTuple):
    """Some verbs on some kinds of one API group."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()
    """Only objects of these names; all if empty."""

    def as_object(self) -> dict[str, object]:
        rule: dict[str, object] = {
            "apiGroups": [self.group],
            "resources": list(self.resources),
            "verbs": list(self.verbs),
        }
        return {**rule, "resourceNames": list(self.names)} if self.names else rule


_RESULTS = Rule(ARGO, ("workflowtaskresults",), ("create", "patch"))

ACCOUNT_RULES: Mapping[str, tuple[Rule, ...]] = {
    # Nothing of a trial or build talks to the API server but Argo's own containers, by the executor's token.
    names.TRIAL_ACCOUNT: (),
    names.BUILD_ACCOUNT: (),
    names.EXECUTOR_ACCOUNT: (_RESULTS,),
    # The pods that create a run's NetworkPolicies and its watch do so with their executor's token.
    names.NETWORK_ACCOUNT: (
        Rule(NETWORKING, ("networkpolicies",), ("get", "create", "patch")),
        Rule(CORE, ("pods",), ("get", "create", "patch")),
        _RESULTS,
    ),
    # Only to say why trials are missing.
    names.MERGE_ACCOUNT: (
        Rule(ARGO, ("workflows",), ("get", "list")),
        Rule(CORE, ("pods", "events"), ("list",)),
    ),
    # Creates a part of a run, looks how it is, and stops it with the run.
    names.SHARD_ACCOUNT: (Rule(ARGO, ("workflows",), ("create", "get", "list", "patch")),),
    # Looks for pods that wait in vain, and ends them.
    names.WATCH_ACCOUNT: (
        Rule(ARGO, ("workflows",), ("list",)),
        Rule(CORE, ("pods",), ("list", "patch")),
    ),
}
"""Rules by account; an account without rules gets no Role."""

EXECUTORS = (names.EXECUTOR_ACCOUNT, names.NETWORK_ACCOUNT)
"""Accounts whose token Argo mounts into its own containers, from a Secret that must exist."""


def user_rules(store_secret: str) -> tuple[Rule, ...]:
    """What submitting, following, cancelling and downloading runs takes.

    Submitting puts `host:` values into a Secret of the run's own, whose name cannot be known before: hence
    the rights to write Secrets. Who may create Workflows may use every Secret of the namespace anyway, by
    mounting it: the namespace is the border, not the Secret.
    """
    return (
        Rule(ARGO, ("workflows",), ("create", "get", "list", "watch", "patch", "delete")),
        Rule(ARGO, ("workflowtemplates", "cronworkflows"), ("create", "get", "list", "patch", "delete")),
        Rule(CORE, ("pods",), ("get", "list", "watch")),
        Rule(CORE, ("pods/log",), ("get",)),
        Rule(CORE, ("events", "resourcequotas", "limitranges"), ("list",)),
        Rule(
            CORE,
            ("configmaps",),
            ("get",),
            (names.PLATFORM_CONFIGMAP, names.PROFILES_CONFIGMAP, names.ARTIFACT_CONFIGMAP),
        ),
        Rule(CORE, ("serviceaccounts",), ("get",), tuple(ACCOUNT_RULES)),
        Rule(CORE, ("secrets",), ("get",), (store_secret,)),
        Rule(CORE, ("secrets",), ("create", "patch", "delete")),
    )
