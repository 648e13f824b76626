"""Images that the registry has already are left out of a run."""

from __future__ import annotations

import base64
import json

import pytest

from argo_harbor.engines.argo import ArgoEngine
from argo_harbor.engines.argo_checks import all_images, look_up
from argo_harbor.registry.reference import parse_image
from tests.engines.argo_bench import ArgoBench, install
from tests.support.registry_double import Registry

DIGEST = f"sha256:{'0' * 64}"


def put_image(registry: Registry, argo: ArgoBench) -> str:
    """Let the registry have the suite's only image; returns its key."""
    image = argo.plan().parts[0].images.agent
    name = parse_image(image.reference)
    registry.manifests[f"{name.repository}:{name.version}"] = DIGEST
    return image.key


def there(argo: ArgoBench, **environ: str) -> set[str]:
    """Keys of the images that a user with these variables sees in the registry."""
    plan = argo.plan()
    return {key for key, found in look_up(all_images(plan), plan.head.platform, environ).items() if found}


def test_a_second_run_builds_nothing(argo: ArgoBench) -> None:
    registry = Registry()
    with registry.running() as address:
        install(argo.api, registry=address)
        first, _ = argo.submit()
        put_image(registry, argo)
        second, _ = argo.submit()
    templates = [
        {template["name"] for template in argo.api.workflow(run)["spec"]["templates"]}
        for run in (first, second)
    ]
    assert "build" in templates[0]
    assert templates[1] == templates[0] - {"build", "network-build"}


def test_the_users_own_login_is_used(argo: ArgoBench) -> None:
    registry = Registry(login=("me", "secret"))
    with registry.running() as address:
        install(argo.api, registry=address)
        key = put_image(registry, argo)
        assert there(argo) == set()
        auth = base64.b64encode(b"me:secret").decode()
        (argo.folder / "config.json").write_text(json.dumps({"auths": {address: {"auth": auth}}}))
        assert there(argo, DOCKER_CONFIG=str(argo.folder)) == {key}
        (argo.folder / "config.json").write_text("no json")
        assert there(argo, DOCKER_CONFIG=str(argo.folder)) == set()


def test_a_registry_that_cannot_be_asked_leaves_the_builds_in(argo: ArgoBench) -> None:
    run_id, _ = argo.submit()
    assert any(template["name"] == "build" for template in argo.api.workflow(run_id)["spec"]["templates"])


def test_credentials_of_the_store(argo: ArgoBench, monkeypatch: pytest.MonkeyPatch) -> None:
    from argo_harbor.cluster.connect import connect
    from argo_harbor.errors import PlatformError
    from tests.support.api_server import Trouble

    engine = ArgoEngine(connect(), argo.engine.site, environ={})
    assert engine.store.name == "http://127.0.0.1:9/argo-harbor/argo-harbor"
    argo.api.troubles = [Trouble("GET", "/secrets/", 403, "Forbidden", times=5)]
    with pytest.raises(PlatformError) as none:
        _ = ArgoEngine(connect(), argo.engine.site, environ={}).store
    assert none.value.code == "platform_not_configured"
    assert "right to read the Secret argo-harbor-store" in none.value.hint
    own = {"ARGO_HARBOR_STORE_ACCESS_KEY": "a", "ARGO_HARBOR_STORE_SECRET_KEY": "b"}
    assert ArgoEngine(connect(), argo.engine.site, environ=own).store.name.startswith("http://127.0.0.1:9")
