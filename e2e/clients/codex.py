"""Codex."""

from __future__ import annotations

from e2e.client import agent_client
from interlingua.agents import AGENTS

__all__ = ["CLIENT"]

CLIENT = agent_client(AGENTS["codex"], "0.166.0", tool="exec_command", param="cmd", image_tool="view_image path")
