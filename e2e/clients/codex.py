"""Codex."""

from __future__ import annotations

from e2e.client import of_agent
from interlingua.agents import AGENTS

__all__ = ["CLIENT"]

CLIENT = of_agent(AGENTS["codex"], "0.166.0", tool="exec_command", param="cmd")
