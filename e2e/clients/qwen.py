"""Qwen Code."""

from __future__ import annotations

from e2e.client import of_agent
from interlingua.agents import AGENTS

__all__ = ["CLIENT"]

CLIENT = of_agent(AGENTS["qwen"], "0.24.4", tool="run_shell_command")
