"""pi."""

from __future__ import annotations

from e2e.client import of_agent
from interlingua.agents import AGENTS

__all__ = ["CLIENT"]

CLIENT = of_agent(AGENTS["pi"], "0.73.1", tool="bash")
