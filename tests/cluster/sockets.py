"""containerd's shims have their sockets in one fixed folder, whoever's containerd started them."""

from __future__ import annotations

import socket
from pathlib import Path

FOLDER = Path("/run/containerd/s")


def remove_dead() -> None:
    """Remove sockets on which nobody listens, which killed shims leave."""
    for path in dead():
        path.unlink(missing_ok=True)


def dead() -> list[Path]:
    """Sockets on which nobody listens."""
    if not FOLDER.is_dir():
        return []
    return [path for path in sorted(FOLDER.iterdir()) if path.is_socket() and not _answers(path)]


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True
