"""The Claude Agent SDK, which includes Claude Code."""

from __future__ import annotations

from e2e.client import Client
from e2e.script import launch_script, pins

__all__ = ["CLIENT"]

PINS = pins("claude-agent-sdk")
CLIENT = Client(
    name="claude-agent-sdk",
    title="Claude Agent SDK",
    version=PINS["claude-agent-sdk"],
    apis=("anthropic-messages",),
    start=launch_script("python", "claude_agent_sdk_loop.py"),
    tool="mcp__shell__bash",
    python=PINS,
    venv="claude-agent-sdk",
)
