"""Codex: with a provider of its own, and with its built-in provider, which uses a WebSocket."""

from __future__ import annotations

import json

from e2e.client import Client, Launch, Task, agent_client
from interlingua.agents import AGENTS

__all__ = ["BUILT_IN", "CLIENT"]

CLIENT = agent_client(AGENTS["codex"], "0.166.0", tool="exec_command", param="cmd", image_tool="view_image path")


def _start_built_in(task: Task) -> Launch:
    """Return the launch of Codex as its users have it, with only the URL of OpenAI replaced."""
    config = {"openai_base_url": f"{task.base}/v1", "model": task.model}
    return Launch(
        argv=[
            "codex",
            *(argument for name, value in config.items() for argument in ("-c", f"{name}={json.dumps(value)}")),
            *("exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"),
            task.prompt,
        ],
        environment={"CODEX_API_KEY": task.key},
    )


BUILT_IN = Client(
    name="codex-built-in",
    title="Codex, built-in provider",
    version=CLIENT.version,
    apis=("openai-responses",),
    start=_start_built_in,
    tool=CLIENT.tool,
    param=CLIENT.param,
    npm=CLIENT.npm,
)
