"""Every object that `install` puts into a cluster, in the order in which they can be applied. Pure."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from argo_harbor.cluster import paths
from argo_harbor.install.artifacts import artifact_repository
from argo_harbor.install.rights import ACCOUNT_RULES, EXECUTORS, Rule, user_rules
from argo_harbor.model.platform import Platform
from argo_harbor.version import __version__
from argo_harbor.workflow import names

type Object = dict[str, Any]

MANAGED_LABEL = "app.kubernetes.io/managed-by"
MANAGER = "argo-harbor"
VERSION_LABEL = "app.kubernetes.io/version"
VERSION = re.sub(r"[^A-Za-z0-9._-]", "_", __version__)
"""Of this program, as a label may hold it."""
LABELS = {MANAGED_LABEL: MANAGER, "app.kubernetes.io/part-of": MANAGER, VERSION_LABEL: VERSION}

POD_SECURITY = {
    # Trial pods need NET_ADMIN beside the sandbox, build pods a privileged BuildKit: baseline would refuse
    # both, and still warns of them and of whatever else comes.
    "pod-security.kubernetes.io/enforce": "privileged",
    "pod-security.kubernetes.io/warn": "baseline",
    "pod-security.kubernetes.io/audit": "baseline",
}

_RBAC = "rbac.authorization.k8s.io"


class Kind(NamedTuple):
    """A kind of object, and where the API has it."""

    name: str
    api: str
    plural: str


NAMESPACE = Kind("Namespace", "v1", "namespaces")
KINDS = {
    kind.name: kind
    for kind in (
        NAMESPACE,
        Kind("ServiceAccount", "v1", "serviceaccounts"),
        Kind("Secret", "v1", "secrets"),
        Kind("ConfigMap", "v1", "configmaps"),
        Kind("Role", f"{_RBAC}/v1", "roles"),
        Kind("RoleBinding", f"{_RBAC}/v1", "rolebindings"),
    )
}
"""All kinds that are installed, by name, in the order of applying: what others refer to comes first."""


class StoreCredentials(NamedTuple):
    """Never printed: it has no readable text."""

    access_key: str
    secret_key: str

    def __repr__(self) -> str:
        return "StoreCredentials(…)"


class Settings(NamedTuple):
    """What is installed besides accounts and rights."""

    platform: Platform
    platform_text: str
    """The platform file as it was given, comments and all."""
    profiles: Mapping[str, str]
    """Text of the profile files by name."""
    credentials: StoreCredentials | None = None


def manifests(settings: Settings, *, own_namespace: bool = True) -> list[Object]:
    """All objects. `own_namespace` is false where the namespace was there before: it is then not labelled
    as ours, so that removal leaves it."""
    namespace = settings.platform.namespace
    secret = settings.platform.store.secret
    objects = [_namespace(namespace, own=own_namespace)]
    objects += [_account(namespace, account) for account in ACCOUNT_RULES]
    objects += [_token(namespace, account) for account in EXECUTORS]
    if settings.credentials:
        objects.append(_store_secret(namespace, secret, settings.credentials))
    objects += _configmaps(settings)
    for account, rules in ACCOUNT_RULES.items():
        if rules:
            objects += [_role(namespace, account, rules), _binding(namespace, account)]
    objects.append(_role(namespace, names.USER_ROLE, user_rules(secret)))
    order = list(KINDS)
    return sorted(objects, key=lambda each: order.index(each["kind"]))


def path_of(item: Object) -> str:
    """Where the API has an object."""
    kind = KINDS[item["kind"]]
    metadata = item["metadata"]
    return path(kind, metadata.get("namespace", ""), metadata["name"])


def path(kind: Kind, namespace: str, name: str = "") -> str:
    """Where the API has objects of a kind; `namespace` is empty for a namespace itself."""
    if not namespace:
        return paths.cluster_wide(kind.api, kind.plural, name)
    if kind.api == "v1":
        return paths.core(namespace, kind.plural, name)
    return paths.grouped(kind.api, namespace, kind.plural, name)


def _object(kind: str, namespace: str, name: str, **fields: object) -> Object:
    metadata = {"name": name, "namespace": namespace, "labels": dict(LABELS)}
    return {"apiVersion": KINDS[kind].api, "kind": kind, "metadata": metadata, **fields}


def _namespace(name: str, *, own: bool) -> Object:
    labels = {**(LABELS if own else {}), **POD_SECURITY}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def _account(namespace: str, account: str) -> Object:
    # Pods that need their account's token ask for it themselves.
    return _object("ServiceAccount", namespace, account, automountServiceAccountToken=False)


def _token(namespace: str, account: str) -> Object:
    secret = _object(
        "Secret", namespace, names.token_secret(account), type="kubernetes.io/service-account-token"
    )
    secret["metadata"]["annotations"] = {"kubernetes.io/service-account.name": account}
    return secret


def _store_secret(namespace: str, name: str, credentials: StoreCredentials) -> Object:
    data = {key: base64.b64encode(text.encode()).decode() for key, text in credentials._asdict().items()}
    return _object("Secret", namespace, name, type="Opaque", data=data)


def _configmaps(settings: Settings) -> list[Object]:
    texts = {
        names.PLATFORM_CONFIGMAP: {names.PLATFORM_KEY: settings.platform_text},
        names.PROFILES_CONFIGMAP: {f"{name}.toml": text for name, text in sorted(settings.profiles.items())},
        names.ARTIFACT_CONFIGMAP: {names.ARTIFACT_KEY: artifact_repository(settings.platform.store)},
    }
    namespace = settings.platform.namespace
    return [_object("ConfigMap", namespace, name, data=data) for name, data in texts.items()]


def _role(namespace: str, name: str, rules: Iterable[Rule]) -> Object:
    return _object("Role", namespace, name, rules=[rule.as_object() for rule in rules])


def _binding(namespace: str, account: str) -> Object:
    return _object(
        "RoleBinding",
        namespace,
        account,
        roleRef={"apiGroup": _RBAC, "kind": "Role", "name": account},
        subjects=[{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
    )
