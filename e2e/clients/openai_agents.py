"""OpenAI's Agents SDK."""

from __future__ import annotations

from e2e.client import DEV, Client
from e2e.script import dev_pins, launch_script

__all__ = ["CLIENT"]

PINS = dev_pins("openai-agents", "openai")
CLIENT = Client(
    name="openai-agents",
    title="OpenAI Agents SDK",
    version=PINS["openai-agents"],
    apis=("openai-chat", "openai-responses"),
    start=launch_script("python", "openai_agents_loop.py"),
    python=PINS,
    venv=DEV,
)
