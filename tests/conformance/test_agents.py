"""The table of built-in agents equals what Harbor's own classes say.

After an update of Harbor, write it anew with

    ARGO_HARBOR_REFRESH=1 pytest -m e2e tests/conformance/test_agents.py

Importing every agent takes many seconds, so the whole comparison carries the marker `e2e`; the quick tests
compare Harbor's version and names.
"""

from __future__ import annotations

import json
import os
from importlib.metadata import version
from pathlib import Path

import pytest

import argo_harbor.model.agents as agents_module
from argo_harbor.model.agents import agent_hint, built_in_agents, find_agent

TABLE = Path(agents_module.__file__).with_name("agents.json")

INSTALL_FROM_THE_HOST = {"terminus-2", "computer-1"}
"""Host-side agents that install something in the sandbox (tmux, a desktop): their classes do not say so."""


def generate() -> dict[str, object]:
    """The table, out of Harbor's agent classes."""
    from harbor.agents.factory import AgentFactory
    from harbor.agents.installed.base import BaseInstalledAgent
    from harbor.models.agent.name import AgentName

    rows = {}
    for name in AgentFactory.registered_names():
        kind = AgentFactory.get_agent_class(AgentName(name))
        installed = issubclass(kind, BaseInstalledAgent)
        rows[name] = {
            # Installed agents without a model connection call their vendor's model all the same.
            "calls_model": installed or kind.MODEL_CONNECTION is not None,
            "host_side": not installed,
            "installs": installed or name in INSTALL_FROM_THE_HOST,
            "setup_timeout_seconds": float(kind.DEFAULT_SETUP_TIMEOUT_SEC),
        }
    return {"harbor": version("harbor"), "agents": rows}


@pytest.mark.e2e
def test_the_table_is_what_harbor_says(monkeypatch: pytest.MonkeyPatch) -> None:
    # Without this, importing the agents tries to download a price list.
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    generated = generate()
    if os.environ.get("ARGO_HARBOR_REFRESH"):
        TABLE.write_text(json.dumps(generated, indent=1, sort_keys=True) + "\n")
    assert json.loads(TABLE.read_text()) == generated


def test_the_table_is_of_this_harbor_and_complete() -> None:
    from harbor.agents.factory import AgentFactory

    assert json.loads(TABLE.read_text())["harbor"] == version("harbor")
    assert [kind.name for kind in built_in_agents()] == AgentFactory.registered_names()


def test_only_oracle_and_nop_call_no_model() -> None:
    assert {kind.name for kind in built_in_agents() if not kind.calls_model} == {"oracle", "nop"}


def test_find_agent() -> None:
    oracle = find_agent("oracle")
    assert oracle is not None
    assert (oracle.host_side, oracle.installs, oracle.setup_timeout_seconds) == (True, False, 360.0)
    acp = find_agent("acp:some-agent@1.2.3")
    assert acp is not None
    assert acp.name == "acp"
    assert find_agent("acp:") is None
    assert find_agent("oracel") is None
    assert agent_hint("oracel").startswith("did you mean oracle? agents: acp, aider, ")
    assert agent_hint("zzzz").startswith("agents: ")
