"""Where the cluster keeps everything, and what it has to put back when it goes.

One folder holds all of it: data, logs, sockets, certificates. What lies elsewhere on the machine by nature
(kernel settings, a context in the user's kubeconfig) is written down here *before* it is changed.
"""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import asdict, dataclass, field
from pathlib import Path

FOLDER_VARIABLE = "ARGO_HARBOR_CLUSTER"
DEFAULT_FOLDER = Path("/var/lib/argo-harbor-cluster")


@dataclass
class Record:
    """What the machine was like before, and the cluster's own credentials."""

    sysctls: dict[str, str] = field(default_factory=dict)
    """Kernel settings by key, with their values before the first change."""
    tables: list[str] = field(default_factory=list)
    """nftables tables, such as `ip filter`, that were there before."""
    created: list[str] = field(default_factory=list)
    """Folders outside of ours that programs make in fixed places, and that were absent before."""
    user_kubeconfig: str = ""
    """The file that got our context; empty when none did."""
    earlier_context: str = ""
    store_access_key: str = ""
    store_secret_key: str = ""


class State:
    """The folder; paths in it are attributes, so that no other module spells one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pki = folder / "pki"
        self.config = folder / "config"
        self.logs = folder / "logs"
        self.pids = folder / "pids"
        self.programs = folder / "programs"
        """Links to the finished programs, all in one place."""
        self.data = folder / "data"
        self.kubeconfig = folder / "kubeconfig"
        self.platform = folder / "platform.toml"
        self.containerd_socket = folder / "containerd.sock"
        self._record_file = folder / "record.json"
        self._ready_file = folder / "ready"

    @classmethod
    def here(cls) -> State:
        """The folder that ``ARGO_HARBOR_CLUSTER`` names, else the usual one."""
        return cls(Path(os.environ.get(FOLDER_VARIABLE) or DEFAULT_FOLDER))

    @property
    def exists(self) -> bool:
        return self._record_file.exists()

    @property
    def ready(self) -> bool:
        """Whether an ``up`` has reached its end."""
        return self._ready_file.exists()

    def mark_ready(self) -> None:
        self._ready_file.touch()

    def make(self) -> None:
        """Create the folders and, the first time, an empty record."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o755)
        for folder in (self.config, self.logs, self.pids, self.programs, self.data):
            folder.mkdir(exist_ok=True)
        self.pki.mkdir(exist_ok=True, mode=0o700)
        if not self.exists:
            self.save(
                Record(
                    store_access_key=f"test-{secrets.token_hex(4)}",
                    store_secret_key=secrets.token_urlsafe(24),
                )
            )

    def configure(self, name: str, text: str) -> Path:
        """Write a program's settings and return the file; untouched if it says the same, since some programs
        end when their file is written."""
        file = self.config / name
        if not file.exists() or file.read_text() != text:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return file

    def load(self) -> Record:
        """The record; an empty one when there is none."""
        if not self.exists:
            return Record()
        return Record(**json.loads(self._record_file.read_text()))

    def save(self, record: Record) -> None:
        draft = self._record_file.with_suffix(".draft")
        draft.touch(mode=0o600)
        draft.write_text(json.dumps(asdict(record), indent=2))
        draft.replace(self._record_file)
