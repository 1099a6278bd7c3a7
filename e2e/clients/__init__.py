"""The clients that are run, one file each; they do not know each other."""

from __future__ import annotations

from e2e.client import Client
from e2e.clients import claude, codex, kimi, opencode, pi, qwen

__all__ = ["CLIENTS"]

_AGENTS = (claude.CLIENT, codex.CLIENT, opencode.CLIENT, qwen.CLIENT, kimi.CLIENT, pi.CLIENT)
CLIENTS: dict[str, Client] = {client.name: client for client in _AGENTS}
