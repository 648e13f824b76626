"""The dry run of a submit: what the cluster would take, and whether what the run names is there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

from argo_harbor.cluster.client import Cluster, Json
from argo_harbor.cluster.errors import ClusterError, Forbidden, Rejected
from argo_harbor.cluster.paths import core
from argo_harbor.cluster.workflows import create_workflow
from argo_harbor.engines.argo_checks import all_images
from argo_harbor.engines.argo_errors import explain
from argo_harbor.engines.argo_secrets import secret_keys
from argo_harbor.engines.argo_submit import Order, choose_name, compile_order, named
from argo_harbor.engines.base import Look
from argo_harbor.model.plan import Amounts, RunPlan, TaskPlan
from argo_harbor.registry.client import Registries
from argo_harbor.registry.errors import RegistryError, Unauthorized
from argo_harbor.registry.reference import DOCKER_HUB, ImageName, parse_image
from argo_harbor.store.credentials import ACCESS_KEY, SECRET_KEY
from argo_harbor.workflow import names

PULL_SECRET_KEY = ".dockerconfigjson"
_AT_ONCE = 8
_SHOWN = 5
_QUANTITY = re.compile(r"([0-9.]+)([A-Za-z]*)")
_UNITS = {"": 1.0, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_UNITS |= {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}
_OVERHEAD = Amounts(cpus=0.5, memory_mb=512, storage_mb=1)
"""About what runner, egress and Argo's own containers ask for beside a sandbox."""


def look(order: Order, cluster: Cluster, registries: Registries) -> list[Look]:
    """Everything that can be known before a trial runs. Raises: Refused; PlatformError without an answer."""
    return [
        _workflow(order, cluster),
        Look("placeholders", "ok", "every value of the request is filled in"),
        Look("variables", "ok", _variables(order)),
        *_secrets(order.plan, cluster),
        *_accounts(cluster),
        Look("profile", "ok", _profile(order.plan)),
        *_model(order.plan),
        *_images(order, registries),
        *_room(order.plan, cluster),
    ]


def _workflow(order: Order, cluster: Cluster) -> Look:
    workflows = compile_order(order)
    _, name = choose_name(order, cluster.namespace, workflows)
    parts = f", {len(workflows) - 1} parts" if len(workflows) > 1 else ""
    try:
        create_workflow(cluster, named(workflows[0], name, order), dry_run=True)
    except Rejected as error:
        return Look("workflow", "failed", error.message)
    except Forbidden as error:
        return Look("workflow", "failed", f"{order.user or 'this user'} may not create it: {error.message}")
    except ClusterError as error:
        raise explain(error, cluster, "try the workflow") from error
    return Look("workflow", "ok", f"the API server takes it{parts}")


def _variables(order: Order) -> str:
    grants = order.plan.head.grants
    kinds = [grant.kind for grant in (*grants.target, *grants.verifier)]
    counted = [
        f"{kinds.count(kind)} {kind}" for kind in ("host", "lit", "runtime", "secret") if kind in kinds
    ]
    return ", ".join(counted) or "none granted"


def _secrets(plan: RunPlan, cluster: Cluster) -> Iterator[Look]:
    head = plan.head
    needed: dict[str, set[str]] = {head.platform.store.secret: {ACCESS_KEY, SECRET_KEY}}
    for grant in (*head.grants.target, *head.grants.verifier):
        if grant.kind == "secret":
            secret, _, key = grant.value.partition("/")
            needed.setdefault(secret, set()).add(key)
    if head.agent.model and head.agent.model.secret:
        secret, _, key = head.agent.model.secret.partition("/")
        needed.setdefault(secret, set()).add(key)
    for image in all_images(plan):
        for _, reference in image.secrets:
            secret, _, key = reference.partition("/")
            needed.setdefault(secret, set()).add(key)
    pull = [*head.platform.secrets.image_pull, head.platform.secrets.registry]
    for secret in filter(None, pull):
        needed.setdefault(secret, set()).add(PULL_SECRET_KEY)
    for secret, keys in needed.items():
        yield _secret(secret, keys, cluster, pull=secret in pull)


def _secret(secret: str, keys: set[str], cluster: Cluster, *, pull: bool) -> Look:
    what = f"{'pull secret' if pull else 'Secret'} {secret}"
    try:
        there = secret_keys(cluster, secret)
    except Forbidden:
        return Look(what, "unknown", "you may not read it; the pods say whether it is there")
    except ClusterError as error:
        raise explain(error, cluster, f"look for the Secret {secret}") from error
    if there is None:
        return Look(what, "failed", f"is not in namespace {cluster.namespace}")
    missing = sorted(keys - there)
    if missing:
        return Look(what, "failed", f"has no key {', '.join(missing)}")
    return Look(what, "ok", f"has {', '.join(sorted(keys))}")


def _accounts(cluster: Cluster) -> Iterator[Look]:
    wanted = (
        names.TRIAL_ACCOUNT,
        names.EXECUTOR_ACCOUNT,
        names.BUILD_ACCOUNT,
        names.NETWORK_ACCOUNT,
        names.MERGE_ACCOUNT,
        names.SHARD_ACCOUNT,
        names.WATCH_ACCOUNT,
    )
    try:
        missing = [
            name for name in wanted if cluster.find(core(cluster.namespace, "serviceaccounts", name)) is None
        ]
    except ClusterError as error:
        yield Look("accounts", "unknown", error.message)
        return
    if missing:
        yield Look("accounts", "failed", f"not installed: {', '.join(missing)}")
    else:
        yield Look("accounts", "ok", f"{len(wanted)} service accounts are there")


def _profile(plan: RunPlan) -> str:
    profile, limits = plan.head.profile, plan.head.limits
    return f"{profile.name}: {limits.cap} trials at once, {limits.timeout_seconds} s for the run"


def _model(plan: RunPlan) -> Iterator[Look]:
    model = plan.head.agent.model
    if model is not None:
        book = ", closed book" if model.closed_book else ""
        yield Look("model", "ok", f"{model.ref}: {model.model} at {', '.join(model.hosts)}{book}")
    else:
        yield Look("model", "ok", f"{plan.head.agent.name} calls none")


def _images(order: Order, registries: Registries) -> Iterator[Look]:
    images = list(all_images(order.plan))
    built = {image.key for image in images if image.key}
    if built:
        there = len(built & set(order.present))
        yield Look("built images", "ok", f"{there} of {len(built)} are in the registry, the others are built")
    ready = {image.reference for image in images if not image.key}
    wanted = ready | {base for image in images if image.key not in order.present for base in image.bases}
    if not wanted:
        return
    mirror = order.plan.head.platform.base_image_mirror
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = dict(
            zip(
                sorted(wanted),
                pool.map(
                    lambda reference: _look_up(reference, "" if reference in ready else mirror, registries),
                    sorted(wanted),
                ),
                strict=True,
            )
        )
    yield from _told(found)


def _look_up(reference: str, mirror: str, registries: Registries) -> Look:
    what = f"image {reference}"
    if reference == "scratch":
        return Look(what, "ok", "is nothing")
    try:
        digest = registries.digest(_behind(parse_image(reference), mirror))
    except ValueError:
        # An ARG in FROM has its value only while it is built.
        return Look(what, "unknown", "is no plain reference")
    except Unauthorized as error:
        return Look(what, "warning", str(error))
    except RegistryError as error:
        return Look(what, "unknown", f"cannot be asked for from here: {str(error).partition(': HTTP')[0]}")
    return Look(what, "ok", "is there") if digest else Look(what, "failed", "is not in its registry")


def _behind(image: ImageName, mirror: str) -> ImageName:
    """Where builds fetch it from: a mirror stands in for Docker Hub alone."""
    if not mirror or image.registry != DOCKER_HUB:
        return image
    host, _, folder = mirror.partition("/")
    repository = f"{folder}/{image.repository}" if folder else image.repository
    return ImageName(host, repository, image.version)


def _told(found: Mapping[str, Look]) -> Iterator[Look]:
    good = [look for look in found.values() if look.state == "ok"]
    if good:
        yield Look("base images", "ok", f"{len(good)} of {len(found)} were looked up and are there")
    rest = [look for look in found.values() if look.state != "ok"]
    yield from rest[:_SHOWN]
    if len(rest) > _SHOWN:
        yield Look("base images", "unknown", f"and {len(rest) - _SHOWN} more")


def _room(plan: RunPlan, cluster: Cluster) -> Iterator[Look]:
    """Quotas and limits of the namespace against the largest pod."""
    largest = {
        "cpu": max(sum(each.cpus for each in _asked(part)) for part in plan.parts) + _OVERHEAD.cpus,
        "memory": float(
            max(sum(each.memory_mb for each in _asked(part)) for part in plan.parts) + _OVERHEAD.memory_mb
        )
        * 2**20,
    }
    try:
        quotas = list(cluster.list(core(cluster.namespace, "resourcequotas")))
        limits = list(cluster.list(core(cluster.namespace, "limitranges")))
    except ClusterError as error:
        yield Look("quota", "unknown", error.message)
        return
    tight = [*_over_quota(quotas, largest), *_over_limits(limits, largest)]
    for line in tight:
        yield Look("quota", "failed", line)
    if not tight:
        what = f"{len(quotas)} quotas and {len(limits)} limit ranges leave room for the largest pod"
        yield Look("quota", "ok", what if quotas or limits else "the namespace has none")


def _asked(part: TaskPlan) -> Iterator[Amounts]:
    """What the sandbox of a task and the services beside it ask for."""
    yield part.resources.agent.request
    for service in part.services:
        yield service.resources.request


def _over_quota(quotas: list[Json], largest: Mapping[str, float]) -> Iterator[str]:
    for quota in quotas:
        hard = (quota.get("status") or {}).get("hard") or (quota.get("spec") or {}).get("hard") or {}
        for resource, needed in largest.items():
            allowed = hard.get(f"requests.{resource}", hard.get(resource))
            if allowed is not None and quantity(str(allowed)) < needed:
                yield f"{_name(quota)} allows {resource} {allowed}, less than the largest pod asks for"


def _over_limits(ranges: list[Json], largest: Mapping[str, float]) -> Iterator[str]:
    for each in ranges:
        for limit in (each.get("spec") or {}).get("limits") or ():
            for resource, needed in largest.items():
                most = (limit.get("max") or {}).get(resource)
                if most is not None and quantity(str(most)) < needed:
                    kind = str(limit.get("type", "")).lower()
                    yield f"{_name(each)} allows a {kind} {resource} {most}, less than the largest asks for"


def _name(thing: Json) -> str:
    return str((thing.get("metadata") or {}).get("name", ""))


def quantity(text: str) -> float:
    """A Kubernetes quantity as a number; 0 for one in a unit that no quota of ours uses."""
    found = _QUANTITY.fullmatch(text)
    if found is None:
        return 0.0
    return float(found[1]) * _UNITS.get(found[2], 0.0)
