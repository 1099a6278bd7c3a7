"""Claude Code."""

from __future__ import annotations

from e2e.client import of_agent
from interlingua.agents import AGENTS

__all__ = ["CLIENT"]

CLIENT = of_agent(
    AGENTS["claude"],
    "2.1.325",
    tool="Bash",
    environment={"IS_SANDBOX": "1"},  # as root it skips permissions only where it is told that this is a sandbox
)
