"""MCP server with many tools, over standard input and output: `python mcp_server.py FOLDER`.

Forty tools store a value in a register of their own, which is a file in the folder. One more returns a large result,
which ends with a text of the caller.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

__all__ = ["LARGE_PARAM", "LARGE_TOOL", "NAMES", "PARAM", "register_file", "tool_name"]

NAMES = (
    *("anchor", "basket", "candle", "desert", "engine", "falcon", "garden", "hammer", "island", "jacket"),
    *("kettle", "ladder", "magnet", "needle", "orange", "pencil", "quartz", "ribbon", "saddle", "tunnel"),
    *("umbrella", "valley", "window", "yellow", "zipper", "arrow", "bridge", "castle", "dragon", "ember"),
    *("forest", "glacier", "harbor", "igloo", "jungle", "kitten", "lantern", "meadow", "nectar", "oyster"),
)
PARAM = "stored_value"
"""Parameter of these tools. No tool of a client has it."""
LARGE_TOOL, LARGE_PARAM = "describe_registers", "closing_words"
LARGE_RESULT_LINES = 2600
LARGE_RESULT_SECONDS = 0.05
"""Time between two large results: Claude Code keeps each in a file with the millisecond in its name."""


def tool_name(name: str) -> str:
    return f"store_{name}"


def register_file(folder: Path, name: str) -> Path:
    return folder / f"register-{name}.txt"


def _list_tools() -> list[dict[str, Any]]:
    tools = [_tool(tool_name(name), f"Store a value in the {name} register.", PARAM) for name in NAMES]
    return [*tools, _tool(LARGE_TOOL, "Describe all registers at length.", LARGE_PARAM)]


def _tool(name: str, description: str, param: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {param: {"type": "string"}}, "required": [param]}
    return {"name": name, "description": description, "inputSchema": schema}


def _call_tool(folder: Path, params: dict[str, Any]) -> dict[str, Any]:
    name, arguments = str(params.get("name")), params.get("arguments") or {}
    if name == LARGE_TOOL:
        time.sleep(LARGE_RESULT_SECONDS)
        lines = [f"register {number}: {NAMES[number % len(NAMES)]}" for number in range(LARGE_RESULT_LINES)]
        return _text_result("\n".join([*lines, str(arguments.get(LARGE_PARAM))]))
    register = name.removeprefix("store_")
    register_file(folder, register).write_text(str(arguments.get(PARAM)), encoding="utf-8")
    return _text_result(f"stored in the {register} register")


def _text_result(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


def _answer(folder: Path, method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "initialize":
            server = {"name": "registers", "version": "1"}
            return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": server}
        case "tools/list":
            return {"tools": _list_tools()}
        case "tools/call":
            return _call_tool(folder, params)
    return {}


def main(folder: Path) -> None:
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            result = _answer(folder, request["method"], request.get("params") or {})
            print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
