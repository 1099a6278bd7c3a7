"""Microsoft's Agent Framework."""

from __future__ import annotations

from e2e.client import Client
from e2e.script import launch_script, pins

__all__ = ["CLIENT"]

PINS = pins("agent-framework")
CLIENT = Client(
    name="agent-framework",
    title="Microsoft Agent Framework",
    version=PINS["agent-framework-core"],
    apis=("openai-responses", "openai-chat", "anthropic-messages"),
    start=launch_script("python", "agent_framework_loop.py"),
    python=PINS,
    venv="agent-framework",
)
