"""The S3 server and the two registries: on the bridge, where pods and this machine reach them alike."""

from __future__ import annotations

import socket

from minio import Minio

from tests.cluster import addresses, processes
from tests.cluster.state import State

PROGRAMS = ("registry-private", "registry", "store")
START_SECONDS = 30.0
BUCKET = "argo-harbor"
REGION = "us-east-1"

PRIVATE_USER = "harbor"
PRIVATE_PASSWORD = "only-for-tests"
_HTPASSWD = f"{PRIVATE_USER}:$2b$05$argoharbortestcluster.pgtee3MbHMSqfT/Z574IfnGiW8cs0Ha\n"
"""The registry knows passwords by their bcrypt hash only; this is the hash of the one above."""


def start_registries(state: State) -> None:
    """Start the open registry and the one that asks for a password.

    Raises:
        ClusterError: one ended, or took too long.
    """
    passwords = state.configure("htpasswd", _HTPASSWD)
    _start_registry(state, "registry", port=addresses.REGISTRY_PORT)
    _start_registry(
        state,
        "registry-private",
        port=addresses.PRIVATE_REGISTRY_PORT,
        auth=f"auth:\n  htpasswd:\n    realm: argo-harbor-test\n    path: {passwords}\n",
    )
    for name, port in (
        ("registry", addresses.REGISTRY_PORT),
        ("registry-private", addresses.PRIVATE_REGISTRY_PORT),
    ):
        _wait(state, name, port)


def start_store(state: State) -> None:
    """Start the S3 server and make the bucket.

    Raises:
        ClusterError: it ended, or took too long.
    """
    record = state.load()
    folder = state.data / "store"
    folder.mkdir(exist_ok=True)
    address = f"{addresses.GATEWAY}:{addresses.STORE_PORT}"
    processes.start(
        state,
        "store",
        [
            state.programs / "versitygw",
            "--quiet",
            "--keep-alive",
            "--port",
            address,
            "--region",
            REGION,
            "posix",
            folder,
        ],
        environment={
            "ROOT_ACCESS_KEY": record.store_access_key,
            "ROOT_SECRET_KEY": record.store_secret_key,
        },
    )
    _wait(state, "store", addresses.STORE_PORT)
    client = Minio(
        address,
        access_key=record.store_access_key,
        secret_key=record.store_secret_key,
        secure=False,
        region=REGION,
    )
    if not client.bucket_exists(BUCKET):
        client.make_bucket(BUCKET)


def _start_registry(state: State, name: str, *, port: int, auth: str = "") -> None:
    config = state.configure(
        f"{name}.yaml",
        f"""version: 0.1
log:
  level: warn
  accesslog:
    disabled: true
storage:
  filesystem:
    rootdirectory: {state.data / name}
  delete:
    enabled: true
http:
  addr: {addresses.GATEWAY}:{port}
{auth}""",
    )
    environment = {"OTEL_TRACES_EXPORTER": "none"}
    processes.start(state, name, [state.programs / "registry", "serve", config], environment=environment)


def _wait(state: State, name: str, port: int) -> None:
    processes.wait_until(state, lambda: _listens(port), what=name, seconds=START_SECONDS, needs=(name,))


def _listens(port: int) -> bool:
    try:
        socket.create_connection((addresses.GATEWAY, port), timeout=1).close()
    except OSError:
        return False
    return True
