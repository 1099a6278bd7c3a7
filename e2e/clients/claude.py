"""Claude Code."""

from __future__ import annotations

from e2e.client import agent_client
from interlingua.agents import AGENTS

__all__ = ["CLIENT"]

CLIENT = agent_client(
    AGENTS["claude"],
    "2.1.325",
    tool="Bash",
    image_tool="Read file_path",
    environment={"IS_SANDBOX": "1"},  # as root, Claude Code skips permissions only in a sandbox
)
