"""The built-in agents of Harbor: which exist, and what planning must know of each.

`agents.json` is generated from Harbor's own agent classes and compared with them by
`tests/conformance/test_agents.py`, so that planning needs no Harbor.
"""

from __future__ import annotations

import difflib
import json
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

_ACP = re.compile(r"acp:[A-Za-z0-9._-]+(@[A-Za-z0-9._-]+)?")
"""An agent of the ACP registry, run by the built-in `acp`."""


class AgentKind(NamedTuple):
    """One built-in agent."""

    name: str
    calls_model: bool
    host_side: bool
    """True when the agent runs in the runner and only sends commands to the sandbox."""
    installs: bool
    """True when setup installs something in the sandbox, which needs the profile's setup hosts."""
    setup_timeout_seconds: float
    """Harbor's default for its setup."""


def built_in_agents() -> tuple[AgentKind, ...]:
    """All of them, by name."""
    return tuple(_table().values())


def find_agent(name: str) -> AgentKind | None:
    """The agent of that name, or of the form `acp:AGENT[@VERSION]`; None when Harbor has none."""
    return _table().get("acp" if _ACP.fullmatch(name) else name)


def agent_hint(name: str) -> str:
    """What a user who wrote an unknown name may have meant."""
    near = difflib.get_close_matches(name, _table(), n=1)
    meant = f"did you mean {near[0]}? " if near else ""
    return f"{meant}agents: {', '.join(_table())}"


@cache
def _table() -> dict[str, AgentKind]:
    data = json.loads((Path(__file__).parent / "agents.json").read_bytes())
    return {name: AgentKind(name=name, **row) for name, row in sorted(data["agents"].items())}
