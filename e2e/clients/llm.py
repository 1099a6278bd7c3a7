"""Simon Willison's llm, with its plugin for Anthropic's API."""

from __future__ import annotations

from e2e.client import Client
from e2e.script import launch_script, pins

__all__ = ["CLIENT"]

PINS = pins("llm")
CLIENT = Client(
    name="llm",
    title="llm",
    version=PINS["llm"],
    apis=("openai-chat", "anthropic-messages", "openai-responses"),
    start=launch_script("bash", "llm_loop.sh"),
    python=PINS,
    venv="llm",
)
