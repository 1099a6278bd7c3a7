"""The MCP server with many tools, in the configuration of a client."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from msgspec import structs

from e2e import mcp_server
from e2e.client import Launch, Task

__all__ = ["SERVER_NAME", "add_to_claude", "add_to_codex"]

SERVER_NAME = "registers"
PROGRAM = str(Path(mcp_server.__file__).resolve())


def add_to_claude(launch: Launch, task: Task, work: Path) -> Launch:
    """Add the server to the launch of Claude Code."""
    name = "mcp.json"
    server = {"command": sys.executable, "args": [PROGRAM, str(work)]}
    files = {**launch.files, name: json.dumps({"mcpServers": {SERVER_NAME: server}})}
    first, *rest = launch.argv
    argv = [first, "--strict-mcp-config", f"--mcp-config={task.home}/{name}", *rest]
    return structs.replace(launch, argv=argv, files=files)


def add_to_codex(launch: Launch, _: Task, work: Path) -> Launch:
    """Add the server to the launch of Codex, and let the model search for tools.

    Codex decides by its catalogue whether a model can search. If it can, all tools of MCP servers are deferred.
    """
    config = {"command": sys.executable, "args": [PROGRAM, str(work)]}
    options = [f"mcp_servers.{SERVER_NAME}.{name}={json.dumps(value)}" for name, value in config.items()]
    first, *rest = launch.argv
    argv = [first, *(argument for option in options for argument in ("-c", option)), *rest]
    return structs.replace(launch, argv=argv, files={name: _with_search(text) for name, text in launch.files.items()})


def _with_search(catalogue: str) -> str:
    models = json.loads(catalogue)["models"]
    return json.dumps({"models": [{**model, "supports_search_tool": True} for model in models]})
