"""LangChain."""

from __future__ import annotations

from e2e.client import DEV, Client
from e2e.script import by_script, dev_pins

__all__ = ["CLIENT"]

PINS = dev_pins("langchain", "langchain-anthropic", "langchain-openai")
CLIENT = Client(
    name="langchain",
    title="LangChain",
    version=PINS["langchain"],
    apis=("openai-chat", "anthropic-messages", "openai-responses"),
    start=by_script("python", "langchain_loop.py"),
    python=PINS,
    venv=DEV,
)
