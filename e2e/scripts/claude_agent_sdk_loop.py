"""A streaming tool loop of the Claude Agent SDK: `KEY=… python claude_agent_sdk_loop.py API BASE MODEL PROMPT`.

The tool is a function of this process. The SDK offers it to Claude Code, which the SDK includes and starts.
"""

import asyncio
import os
import subprocess
import sys
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, create_sdk_mcp_server, query, tool


@tool("bash", "Run a shell command.", {"command": str})
async def bash(args: dict[str, Any]) -> dict[str, Any]:
    done = subprocess.run(["bash", "-c", args["command"]], capture_output=True, text=True, timeout=60)
    return {"content": [{"type": "text", "text": done.stdout + done.stderr}]}


async def main(_: str, base: str, model: str, prompt: str) -> None:
    options = ClaudeAgentOptions(
        model=model,
        env={
            "ANTHROPIC_BASE_URL": base,
            "ANTHROPIC_AUTH_TOKEN": os.environ["KEY"],
            "ANTHROPIC_DEFAULT_HAIKU_MODEL": model,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        },
        mcp_servers={"shell": create_sdk_mcp_server("shell", tools=[bash])},
        allowed_tools=["mcp__shell__bash"],
        tools=[],
        include_partial_messages=True,
    )
    async for message in query(prompt=prompt, options=options):
        if isinstance(message, ResultMessage):
            print(message.result)


asyncio.run(main(*sys.argv[1:]))
