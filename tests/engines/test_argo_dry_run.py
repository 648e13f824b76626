from __future__ import annotations

from dataclasses import replace

import pytest

from argo_harbor.engines.argo_dry_run import quantity
from argo_harbor.engines.base import Look, SubmitOptions
from argo_harbor.errors import PlatformError
from argo_harbor.model.plan import ServicePlan
from argo_harbor.model.spec import RunSpec
from tests.engines.argo_bench import CORE, ArgoBench, install
from tests.support.api_server import Trouble
from tests.support.registry_double import Registry


def looked(argo: ArgoBench, **spec: object) -> dict[str, Look]:
    request = spec.pop("request", None)
    planned = argo.plan(request=request) if request else argo.plan()
    found = argo.engine.dry_run(planned, argo.taskset, options=SubmitOptions(environ={"MY_KEY": "x"}))
    return {look.what: look for look in found}


def test_nothing_is_created_and_everything_is_looked_at(argo: ArgoBench) -> None:
    before = dict(argo.api.objects)
    found = looked(argo)
    assert argo.api.objects == before
    assert not argo.store.root.exists()
    states = {what: look.state for what, look in found.items()}
    assert states == {
        "workflow": "ok",
        "placeholders": "ok",
        "variables": "ok",
        "Secret argo-harbor-store": "ok",
        "accounts": "ok",
        "profile": "ok",
        "model": "ok",
        "built images": "ok",
        "image debian:bookworm-slim": "unknown",
        "quota": "ok",
    }


def test_what_the_api_server_would_refuse(argo: ArgoBench) -> None:
    argo.api.troubles = [Trouble("POST", "/workflows", 422, "Invalid", "spec.templates: too many")]
    assert looked(argo)["workflow"] == Look("workflow", "failed", "spec.templates: too many")
    argo.api.troubles = [Trouble("POST", "/workflows", 403, "Forbidden", "may not create")]
    assert looked(argo)["workflow"] == Look(
        "workflow", "failed", "somebody may not create it: may not create"
    )
    argo.api.troubles = [Trouble("POST", "/workflows", 500, "InternalError")]
    with pytest.raises(PlatformError):
        looked(argo)


def test_secrets_and_their_keys(argo: ArgoBench) -> None:
    install(argo.api, platform='[secrets]\nimage_pull = ["pull", "gone"]')
    env = {"A": "secret:mine/a", "B": "secret:mine/b", "C": "host:MY_KEY", "D": "lit:x"}
    request = RunSpec.from_data(
        {"spec": {"target": {"source": {"name": "oracle"}, "env": env}}, "execution": {}}
    )
    argo.api.put(f"{CORE}/secrets/mine", {"data": {"a": ""}})
    argo.api.put(f"{CORE}/secrets/pull", {"data": {".dockerconfigjson": ""}})
    found = looked(argo, request=request)
    assert found["variables"].detail == "1 host, 1 lit, 2 secret"
    assert found["Secret mine"] == Look("Secret mine", "failed", "has no key b")
    assert found["pull secret pull"].state == "ok"
    assert found["pull secret gone"] == Look("pull secret gone", "failed", "is not in namespace argo-harbor")
    argo.api.troubles = [Trouble("GET", "/secrets/", 403, "Forbidden", times=10)]
    assert looked(argo)["Secret argo-harbor-store"].state == "unknown"


def test_accounts_that_are_not_installed(argo: ArgoBench) -> None:
    del argo.api.objects[f"{CORE}/serviceaccounts/argo-harbor-merge"]
    assert looked(argo)["accounts"] == Look("accounts", "failed", "not installed: argo-harbor-merge")
    argo.api.troubles = [Trouble("GET", "/serviceaccounts", 403, "Forbidden", "no", times=10)]
    assert looked(argo)["accounts"] == Look("accounts", "unknown", "no")


def test_room_for_the_largest_pod(argo: ArgoBench) -> None:
    quota = {"status": {"hard": {"requests.cpu": "500m", "requests.memory": "100Gi"}}}
    argo.api.put(f"{CORE}/resourcequotas/small", quota)
    limits = {"spec": {"limits": [{"type": "Container", "max": {"memory": "64Mi"}}, {"type": "Pod"}]}}
    argo.api.put(f"{CORE}/limitranges/tight", limits)
    planned = argo.engine.dry_run(argo.plan(), argo.taskset, options=SubmitOptions())
    assert [look.detail for look in planned if look.what == "quota"] == [
        "small allows cpu 500m, less than the largest pod asks for",
        "tight allows a container memory 64Mi, less than the largest asks for",
    ]


def test_services_count_among_what_a_pod_asks_for(argo: ArgoBench) -> None:
    quota = {"status": {"hard": {"requests.cpu": "4"}}}
    argo.api.put(f"{CORE}/resourcequotas/small", quota)
    alone = argo.plan()
    [part] = alone.parts
    asked = part.resources.agent.model_copy(
        update={"request": part.resources.agent.request.model_copy(update={"cpus": 3.5})}
    )
    beside = ServicePlan(name="db", image=part.images.agent, resources=asked)
    together = replace(alone, parts=(part.model_copy(update={"services": (beside,)}),))
    for made, state in ((alone, "ok"), (together, "failed")):
        looks = argo.engine.dry_run(made, argo.taskset, options=SubmitOptions())
        assert [look.state for look in looks if look.what == "quota"] == [state]


@pytest.mark.parametrize(
    ("text", "number"), [("2", 2), ("500m", 0.5), ("1Gi", 2**30), ("1.5k", 1500), ("x", 0), ("3Q", 0)]
)
def test_quantities(text: str, number: float) -> None:
    assert quantity(text) == number


def test_images_are_looked_up_where_builds_fetch_them(argo: ArgoBench) -> None:
    registry = Registry()
    with registry.running() as address:
        install(argo.api, registry=address)
        missing = looked(argo)["image debian:bookworm-slim"]
        assert (missing.state, missing.detail) == ("failed", "is not in its registry")
        registry.manifests["mirror/library/debian:bookworm-slim"] = f"sha256:{'0' * 64}"
        assert looked(argo)["base images"].detail == "1 of 1 were looked up and are there"
        registry.login = ("me", "secret")
        assert looked(argo)["image debian:bookworm-slim"].state == "warning"
