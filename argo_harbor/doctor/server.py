"""What the API server itself says: its version, Argo's kinds, the clock, and what this user may do."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from argo_harbor.cluster.client import Cluster
from argo_harbor.cluster.errors import NotFound
from argo_harbor.doctor.result import Result, failed, ok
from argo_harbor.install.rights import Rule, user_rules
from argo_harbor.workflow import names

OLDEST_MINOR = 29
"""Of Kubernetes 1: the first with native sidecars for everybody."""
ARGO_KINDS = ("workflows", "workflowtemplates", "cronworkflows", "workflowtaskresults")
MAX_SKEW_SECONDS = 30.0
"""Budgets of runs are measured on the store's clock in steps far above this."""

_VERSION = re.compile(r"v?(\d+)\.(\d+)")
_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


class Question(NamedTuple):
    """Whether this user may do one thing."""

    verb: str
    group: str
    resource: str
    """With its part behind a slash: `pods/log`."""
    name: str = ""

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}" + (f" {self.name}" if self.name else "")


def kubernetes_version(cluster: Cluster) -> list[Result]:
    said = str(cluster.get("/version").get("gitVersion") or "")
    found = _VERSION.match(said)
    if not found:
        return [failed("kubernetes", f"the API server calls its version {said!r}", "see who answers there")]
    if (int(found[1]), int(found[2])) < (1, OLDEST_MINOR):
        return [
            failed("kubernetes", f"{said} has no native sidecars", f"upgrade to 1.{OLDEST_MINOR} or later")
        ]
    return [ok("kubernetes", said)]


def argo_kinds(cluster: Cluster) -> list[Result]:
    try:
        answer = cluster.get("/apis/argoproj.io/v1alpha1")
    except NotFound:
        return [failed("argo kinds", "there are none", "install Argo Workflows 3.7 or later with its CRDs")]
    known = {str(each.get("name")) for each in answer.get("resources") or ()}
    missing = [kind for kind in ARGO_KINDS if kind not in known]
    if missing:
        cure = "install all CRDs of Argo Workflows 3.7 or later"
        return [failed("argo kinds", f"missing: {', '.join(missing)}", cure)]
    return [ok("argo kinds", ", ".join(ARGO_KINDS))]


def clock(cluster: Cluster) -> list[Result]:
    before = time.time()
    skew = cluster.clock() - (before + time.time()) / 2
    return [skew_result("clock", "the API server's clock", skew)]


def skew_result(name: str, whose: str, skew: float) -> Result:
    """`skew` in seconds, against this machine's clock."""
    shown = f"{whose} is {abs(skew):.0f} s {'ahead' if skew > 0 else 'behind'}"
    if abs(skew) > MAX_SKEW_SECONDS:
        return failed(name, shown, "keep all clocks by NTP: the machine's, the nodes' and the store's")
    return ok(name, f"{whose} differs by less than {MAX_SKEW_SECONDS:.0f} s")


def permissions(cluster: Cluster, store_secret: str) -> list[Result]:
    """Whether this user may do all that submitting and following runs takes."""
    questions = list(_questions(user_rules(store_secret)))
    denied = may_not(cluster, questions)
    if denied:
        shown = ", ".join(map(str, denied[:6])) + (f" and {len(denied) - 6} more" if len(denied) > 6 else "")
        cure = (
            f"have an admin bind you: kubectl -n {cluster.namespace} create rolebinding argo-harbor-USER "
            f"--role {names.USER_ROLE} --user USER"
        )
        return [failed("permissions", f"you may not {shown}", cure)]
    return [ok("permissions", f"you may do all {len(questions)} things that runs take")]


def may_not(cluster: Cluster, questions: Iterable[Question]) -> list[Question]:
    """Which of these the API server would refuse this user. Raises: ClusterError."""
    asked = list(questions)
    with ThreadPoolExecutor(8) as threads:
        answers = threads.map(lambda question: _allowed(cluster, question), asked)
        return [question for question, allowed in zip(asked, answers, strict=True) if not allowed]


def _questions(rules: Iterable[Rule]) -> Iterator[Question]:
    for rule in rules:
        for resource in rule.resources:
            for verb in rule.verbs:
                for name in rule.names or ("",):
                    yield Question(verb, rule.group, resource, name)


def _allowed(cluster: Cluster, question: Question) -> bool:
    resource, _, part = question.resource.partition("/")
    attributes = {
        "namespace": cluster.namespace,
        "verb": question.verb,
        "group": question.group,
        "resource": resource,
        "subresource": part,
        "name": question.name,
    }
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    return bool((cluster.create(_REVIEWS, review).get("status") or {}).get("allowed"))
