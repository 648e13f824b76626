"""What a process in the pod can reach."""

from __future__ import annotations

import socket

# A refused connection is dropped without a word, so only time tells.
BLOCKED_AFTER = 0.7


def reaches(host: str, port: int = 443, *, timeout: float = BLOCKED_AFTER) -> bool:
    """Whether a host answers on a new connection."""
    try:
        with socket.create_connection((host, port), timeout=timeout) as connection:
            return talks(connection)
    except (TimeoutError, OSError):
        return False


def talks(connection: socket.socket, *, timeout: float = BLOCKED_AFTER) -> bool:
    """Whether the other side still answers on an open connection."""
    connection.settimeout(timeout)
    try:
        connection.sendall(b"x")
        return connection.recv(1) == b"x"
    except (TimeoutError, OSError):
        return False
