"""opencode."""

from __future__ import annotations

from e2e.client import agent_client
from interlingua.agents import AGENTS

__all__ = ["CLIENT"]

CLIENT = agent_client(AGENTS["opencode"], "1.18.33", tool="bash")
