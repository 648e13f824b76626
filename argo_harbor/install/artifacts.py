"""Argo's artifact repository: the platform's store once more, in the words of Argo's own configuration.

Only the small copies that Argo's UI shows go there; everything that counts is written by the runner.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from argo_harbor.model.platform import StoreSettings
from argo_harbor.workflow.emit import to_yaml

_FOLDER = "argo"
_REST = "{{workflow.namespace}}/{{workflow.name}}/{{pod.name}}"


def artifact_repository(store: StoreSettings) -> str:
    """The value of a key of Argo's artifact repository ConfigMap, for an S3 store with an endpoint."""
    url = urlsplit(store.endpoint)
    prefix = store.prefix.strip("/")
    return to_yaml(
        {
            "s3": {
                "endpoint": url.netloc,
                "insecure": url.scheme == "http",
                "bucket": store.bucket,
                "keyFormat": "/".join(filter(None, (_FOLDER, prefix, _REST))),
                "accessKeySecret": {"name": store.secret, "key": "access_key"},
                "secretKeySecret": {"name": store.secret, "key": "secret_key"},
            }
        }
    )
