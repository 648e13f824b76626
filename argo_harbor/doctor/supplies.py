"""Store and registry as pods reach them, with the Secrets that pods get, and the name service."""

from __future__ import annotations

from argo_harbor.cluster.client import Json
from argo_harbor.doctor import pods
from argo_harbor.doctor.result import Result, failed, ok, skipped
from argo_harbor.doctor.server import skew_result
from argo_harbor.doctor.services import question_of
from argo_harbor.doctor.visit import Visit, pod_of
from argo_harbor.model.platform import Platform
from argo_harbor.workflow import names

STORE = "store from pods"
CLOCK = "node clock"
REGISTRY = "registry"
DNS = "dns"


def supplies(visit: Visit, platform: Platform) -> list[Result]:
    """One pod that tries them all. Raises: ClusterError, Stopped."""
    volumes, mounts = _secrets(platform)
    container = pods.probe(platform, "services", question_of(platform, visit.id), volumeMounts=mounts)
    body = pod_of(
        visit, "supplies", [container], volumes=volumes, imagePullSecrets=pods.pull_secrets(platform)
    )
    visit.make("pods", body)
    pod = pods.ended(visit, visit.name("supplies"))
    said = pods.answer(pod)
    if said is None:
        return [
            pods.no_answer(STORE, visit, pod),
            *(skipped(name, "no pod could try it") for name in (REGISTRY, DNS)),
        ]
    return [*_store(said["store"], platform), _registry(said["registry"], platform), _dns(said["dns"])]


def _store(said: Json, platform: Platform) -> list[Result]:
    if said["error"]:
        cure = said.get("hint") or "see [store] in the platform file, and the keys in its Secret"
        return [failed(STORE, said["error"], cure)]
    where = f"{platform.store.endpoint}, bucket {platform.store.bucket}"
    return [
        ok(STORE, f"written, read, listed and deleted at {where}"),
        skew_result(CLOCK, "the store's clock, seen from a node,", said["skew"]),
    ]


def _registry(said: Json, platform: Platform) -> Result:
    if not said["error"]:
        return ok(REGISTRY, f"pushed to and pulled from {platform.registry}")
    secret = said.get("secret")
    cure = (
        f"see the login in the Secret {secret}"
        if secret
        else "see registry and insecure_registries; name a Secret with a login in secrets.registry"
    )
    return failed(REGISTRY, said["error"], cure)


def _dns(error: str) -> Result:
    if error:
        return failed(DNS, error, "see the cluster's DNS: pods of kube-system with k8s-app=kube-dns")
    return ok(DNS, "names of services resolve in pods")


def _secrets(platform: Platform) -> tuple[list[Json], list[Json]]:
    """The Secrets as volumes and mounts. Optional: a pod that waits for one cannot say which is missing."""
    item = {"key": ".dockerconfigjson", "path": "config.json"}
    secret = platform.store.secret
    volumes: list[Json] = [{"name": "store", "secret": {"secretName": secret, "optional": True}}]
    mounts: list[Json] = [{"name": "store", "mountPath": names.STORE_PATH, "readOnly": True}]
    if registry := platform.secrets.registry:
        source = {"secretName": registry, "items": [item], "optional": True}
        volumes.append({"name": "registry", "secret": source})
        mounts.append(
            {"name": "registry", "mountPath": f"{names.REGISTRY_PATH}/{registry}", "readOnly": True}
        )
    return volumes, mounts
