"""Cline."""

from __future__ import annotations

from e2e.client import agent_client
from interlingua.agents import AGENTS

__all__ = ["CLIENT"]

CLIENT = agent_client(AGENTS["cline"], "3.0.65", tool="run_commands", param="commands")
