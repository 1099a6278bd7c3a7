"""Qwen Code."""

from __future__ import annotations

from e2e.client import agent_client
from interlingua.agents import AGENTS

__all__ = ["CLIENT"]

CLIENT = agent_client(AGENTS["qwen"], "0.24.4", tool="run_shell_command")
