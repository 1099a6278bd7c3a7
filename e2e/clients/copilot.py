"""GitHub Copilot CLI."""

from __future__ import annotations

from e2e.client import agent_client
from interlingua.agents import AGENTS

__all__ = ["CLIENT"]

CLIENT = agent_client(AGENTS["copilot"], "1.0.102", tool="bash")
