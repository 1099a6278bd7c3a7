"""Registry of the clients, one independent file each."""

from __future__ import annotations

from e2e.client import Client
from e2e.clients import (
    agent_framework,
    ai_sdk,
    claude,
    claude_agent_sdk,
    cline,
    cn,
    codex,
    copilot,
    kimi,
    langchain,
    llm,
    openai_agents,
    opencode,
    openhands,
    pi,
    pydantic_ai,
    qwen,
)

__all__ = ["CLIENTS"]

_AGENTS = (
    claude.CLIENT,
    codex.CLIENT,
    codex.BUILT_IN,
    copilot.CLIENT,
    opencode.CLIENT,
    qwen.CLIENT,
    kimi.CLIENT,
    cline.CLIENT,
    cn.CLIENT,
    pi.CLIENT,
)
_SDKS = (
    ai_sdk.CLIENT,
    claude_agent_sdk.CLIENT,
    pydantic_ai.CLIENT,
    langchain.CLIENT,
    openai_agents.CLIENT,
    llm.CLIENT,
    openhands.CLIENT,
    agent_framework.CLIENT,
)
CLIENTS: dict[str, Client] = {client.name: client for client in (*_AGENTS, *_SDKS)}
