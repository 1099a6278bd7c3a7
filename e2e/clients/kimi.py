"""Kimi Code."""

from __future__ import annotations

from e2e.client import of_agent
from interlingua.agents import AGENTS

__all__ = ["CLIENT"]

CLIENT = of_agent(AGENTS["kimi"], "2.1.0", tool="Bash")
