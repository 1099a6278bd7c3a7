"""pydantic-ai."""

from __future__ import annotations

from e2e.client import DEV, Client
from e2e.script import by_script, dev_pins

__all__ = ["CLIENT"]

PINS = dev_pins("pydantic-ai-slim", "anthropic", "openai")
CLIENT = Client(
    name="pydantic-ai",
    title="pydantic-ai",
    version=PINS["pydantic-ai-slim"],
    apis=("openai-chat", "anthropic-messages", "openai-responses"),
    start=by_script("python", "pydantic_ai_loop.py"),
    python=PINS,
    venv=DEV,
)
