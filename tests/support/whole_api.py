"""The API server in the test's own process with more of a cluster around it, for what installs and examines
clusters: kinds, namespaces, reviews of rights, and a place for what controllers and kubelets would do.
"""

from __future__ import annotations

import copy
import re
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.support.api_server import ApiServer, Json

_COLLECTION = re.compile(r"(/api/v1|/apis/[^/]+/[^/]+)(/namespaces/(?P<namespace>[^/]+))?/(?P<plural>[a-z]+)")
_KINDS = {
    "v1": ["namespaces", "pods", "secrets", "configmaps", "serviceaccounts", "services", "events", "nodes"],
    "rbac.authorization.k8s.io/v1": ["roles", "rolebindings"],
    "networking.k8s.io/v1": ["networkpolicies", "servicecidrs"],
    "discovery.k8s.io/v1": ["endpointslices"],
    "argoproj.io/v1alpha1": ["workflows", "workflowtemplates", "cronworkflows", "workflowtaskresults"],
}
_CLUSTER_WIDE = ("namespaces", "nodes", "servicecidrs")


@dataclass
class WholeApi(ApiServer):
    """Beside what every API server of the tests has: how this one behaves."""

    refusals: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Status and message by ``METHOD path prefix``; the longest prefix counts."""
    may: Callable[[Json], bool] = lambda attributes: True
    """Answers SelfSubjectAccessReviews, by their ``resourceAttributes``."""
    admit: Callable[[Json], None] = lambda created: None
    """Called with each stored object: fills in what a controller or a kubelet would."""
    version: str = "v1.34.4"
    kinds: dict[str, list[str]] = field(default_factory=lambda: copy.deepcopy(_KINDS))
    queries: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    """Method with path, and query, of every request."""
    lock: threading.RLock = field(default_factory=threading.RLock)

    def hold(self, path: str, **content: Any) -> Json:
        """Put an object there as it is, with its name and namespace."""
        parts = path.split("/")
        content.setdefault("metadata", {})
        if "namespaces" in parts[:-2]:
            content["metadata"].setdefault("namespace", parts[parts.index("namespaces") + 1])
        return self.put(path, content)

    def names(self, collection: str) -> set[str]:
        """Names of what lies directly in a collection."""
        with self.lock:
            return {path.rpartition("/")[2] for path in self.objects if path.rpartition("/")[0] == collection}

    def kubeconfig(self, folder: Path, *, namespace: str = "argo-harbor") -> Path:
        return self.write_kubeconfig(folder / "kubeconfig", namespace=namespace)

    def _handle(
        self, method: str, path: str, query: dict[str, str], body: Json | None
    ) -> tuple[int, Json | str]:
        with self.lock:
            self.queries.append((f"{method} {path}", query))
            prefixes = [each for each in self.refusals if f"{method} {path}".startswith(each)]
            if prefixes:
                status, message = self.refusals[max(prefixes, key=len)]
                return status, {"reason": "Refused", "message": message}
            if path.endswith("/selfsubjectaccessreviews"):
                assert body is not None
                return 201, {"status": {"allowed": self.may(body["spec"]["resourceAttributes"])}}
            found = self._discovery(path)
            if found is not None:
                return 200, found
            match method:
                case "GET" if path in self.objects:
                    return 200, self.objects[path]
                case "GET" if _COLLECTION.fullmatch(path):
                    return 200, self._listed(path, query)
                case "DELETE" if path in self.objects:
                    return 200, self._removed(path)
                case "POST":
                    return self._posted(path, query, body or {})
                case "PATCH":
                    return self._applied(path, query, body or {})
        return 404, {"reason": "NotFound", "message": f"{path} not found"}

    def _discovery(self, path: str) -> Json | None:
        if path == "/version":
            return {"gitVersion": self.version}
        if path == "/apis":
            groups = [kind for kind in self.kinds if kind != "v1"]
            return {"groups": [{"preferredVersion": {"groupVersion": group}} for group in groups]}
        group = path.removeprefix("/api/" if path == "/api/v1" else "/apis/")
        if group not in self.kinds:
            return None
        return {
            "resources": [
                {"name": name, "namespaced": name not in _CLUSTER_WIDE, "verbs": ["list", "delete"]}
                for name in self.kinds[group]
            ]
        }

    def _listed(self, path: str, query: dict[str, str]) -> Json:
        answer = self._list(path, query)
        key, _, value = query.get("fieldSelector", "").partition("=")
        if key:
            assert key == "involvedObject.name", f"the server in the test knows no field {key}"
            answer["items"] = [
                item for item in answer["items"] if (item.get("involvedObject") or {}).get("name") == value
            ]
        return answer

    def _removed(self, path: str) -> Json:
        """A namespace takes everything in it along."""
        gone = self.objects.pop(path)
        root, _, name = path.rpartition("/")
        if root == "/api/v1/namespaces":
            for inside in [each for each in self.objects if f"/namespaces/{name}/" in each]:
                del self.objects[inside]
        return gone

    def _posted(self, path: str, query: dict[str, str], body: Json) -> tuple[int, Json]:
        generated = f"{body['metadata'].get('generateName', '')}{uuid.uuid4().hex[:5]}"
        name = body["metadata"].setdefault("name", generated)
        where = f"{path}/{name}"
        if where in self.objects:
            return 409, {"reason": "AlreadyExists", "message": f"{where} exists"}
        return self._stored(where, body, query, 201)

    def _applied(self, path: str, query: dict[str, str], body: Json) -> tuple[int, Json]:
        found = self.objects.get(path)
        if found is not None:
            labels = {**(found["metadata"].get("labels") or {}), **(body["metadata"].get("labels") or {})}
            body = {**found, **body, "metadata": {**found["metadata"], **body["metadata"], "labels": labels}}
        return self._stored(path, body, query, 200)

    def _stored(self, path: str, body: Json, query: dict[str, str], status: int) -> tuple[int, Json]:
        collection = _COLLECTION.fullmatch(path.rpartition("/")[0])
        namespace = collection["namespace"] if collection else None
        if namespace and f"/api/v1/namespaces/{namespace}" not in self.objects:
            return 404, {"reason": "NotFound", "message": f'namespaces "{namespace}" not found'}
        stored = copy.deepcopy(body)
        stored["metadata"].setdefault("uid", str(uuid.uuid4()))
        stored["metadata"].setdefault("creationTimestamp", datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
        if stored.get("type") == "kubernetes.io/service-account-token":
            stored["data"] = {"token": "dG9rZW4="}
        if "dryRun" not in query:
            self.objects[path] = stored
            self.admit(stored)
        return status, stored
