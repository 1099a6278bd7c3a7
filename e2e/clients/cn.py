"""Continue CLI."""

from __future__ import annotations

from e2e.client import agent_client
from interlingua.agents import AGENTS

__all__ = ["CLIENT"]

CLIENT = agent_client(AGENTS["cn"], "1.5.47", tool="Bash")
