"""How coding agents are pointed at a gateway: one file each, for `interlingua run`, for end-to-end tests and guides.

Nothing here reads, writes or starts anything.
"""

from __future__ import annotations

from interlingua.agents import claude, codex, kimi, opencode, pi, qwen
from interlingua.agents.base import CONTEXT, Agent, Setup, Target
from interlingua.agents.shell_command import by_hand

__all__ = ["AGENTS", "CONTEXT", "Agent", "Setup", "Target", "by_hand"]

AGENTS: dict[str, Agent] = {
    agent.name: agent for agent in (claude.AGENT, codex.AGENT, opencode.AGENT, qwen.AGENT, kimi.AGENT, pi.AGENT)
}
