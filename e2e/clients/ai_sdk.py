"""Vercel's AI SDK."""

from __future__ import annotations

from e2e.client import Client, Launch, Task
from e2e.script import SCRIPTS

__all__ = ["CLIENT"]

SCRIPT = "ai_sdk_loop.mjs"
NPM = {
    "ai": "7.0.169",
    "@ai-sdk/anthropic": "4.0.102",
    "@ai-sdk/openai": "4.0.114",
    "@ai-sdk/openai-compatible": "3.0.90",
    "zod": "4.6.7",
}


def start(task: Task) -> Launch:
    """Start the script next to a link to node_modules, because Node searches packages only in parent folders."""
    command = 'ln -s "$NPM/node_modules" "$HOME" && exec node "$HOME/$0" "$@"'
    return Launch(
        argv=["sh", "-c", command, SCRIPT, task.api, task.base, task.model, task.prompt],
        environment={"KEY": task.key, "NPM": task.npm},
        files={SCRIPT: (SCRIPTS / SCRIPT).read_text(encoding="utf-8")},
    )


CLIENT = Client(
    name="ai-sdk",
    title="Vercel AI SDK",
    version=NPM["ai"],
    apis=("openai-chat", "anthropic-messages", "openai-responses"),
    start=start,
    npm=NPM,
)
