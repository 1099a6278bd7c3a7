"""pydantic-ai."""

from __future__ import annotations

from e2e.client import DEV, Client
from e2e.script import dev_pins, launch_script

__all__ = ["CLIENT"]

PINS = dev_pins("pydantic-ai-slim", "anthropic", "openai")
CLIENT = Client(
    name="pydantic-ai",
    title="pydantic-ai",
    version=PINS["pydantic-ai-slim"],
    apis=("openai-chat", "anthropic-messages", "openai-responses"),
    start=launch_script("python", "pydantic_ai_loop.py"),
    python=PINS,
    venv=DEV,
)
