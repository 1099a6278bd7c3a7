"""Configuration of coding agents for a gateway: one module per agent.

Used by `interlingua run`, the end-to-end tests and the guides. The modules do no I/O and start no processes.
"""

from __future__ import annotations

from interlingua.agents import claude, cline, cn, codex, copilot, kimi, opencode, pi, qwen
from interlingua.agents.base import DEFAULT_CONTEXT_TOKENS, Agent, AgentSetup, AgentTarget
from interlingua.agents.shell_command import format_shell_command

__all__ = ["AGENTS", "DEFAULT_CONTEXT_TOKENS", "Agent", "AgentSetup", "AgentTarget", "format_shell_command"]

AGENTS: dict[str, Agent] = {
    agent.name: agent
    for agent in (
        claude.AGENT,
        codex.AGENT,
        copilot.AGENT,
        opencode.AGENT,
        qwen.AGENT,
        kimi.AGENT,
        cline.AGENT,
        cn.AGENT,
        pi.AGENT,
    )
}
