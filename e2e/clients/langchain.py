"""LangChain."""

from __future__ import annotations

from e2e.client import DEV, Client
from e2e.script import dev_pins, launch_script

__all__ = ["CLIENT"]

PINS = dev_pins("langchain", "langchain-anthropic", "langchain-openai")
CLIENT = Client(
    name="langchain",
    title="LangChain",
    version=PINS["langchain"],
    apis=("openai-chat", "anthropic-messages", "openai-responses"),
    start=launch_script("python", "langchain_loop.py"),
    python=PINS,
    venv=DEV,
)
