"""Who asks, as the API server sees it: runs are labelled with it, and `--mine` finds them by it."""

from __future__ import annotations

from argo_harbor.cluster.client import Cluster
from argo_harbor.cluster.errors import NotFound
from argo_harbor.cluster.paths import cluster_wide

_GROUPS = ("authentication.k8s.io/v1", "authentication.k8s.io/v1beta1")


def user_name(cluster: Cluster) -> str:
    """Name of the user behind the credentials; empty where the API server does not tell users who they are.

    Raises: ClusterError.
    """
    for group in _GROUPS:
        review = {"apiVersion": group, "kind": "SelfSubjectReview"}
        try:
            answer = cluster.create(cluster_wide(group, "selfsubjectreviews"), review)
        except NotFound:
            continue
        user = ((answer.get("status") or {}).get("userInfo") or {}).get("username")
        return user if isinstance(user, str) else ""
    return ""
