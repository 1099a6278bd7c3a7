"""Forty tools of an MCP server, which the model has to search for before it can call one."""

from __future__ import annotations

from pathlib import Path

from e2e.client import Client, Launch, Task
from e2e.clients import CLIENTS
from e2e.mcp_server import NAMES, PARAM, register_file, tool_name
from e2e.run import RunSpec
from e2e.scenario import Evidence, Scenario, find_proof_problem, shell_call
from e2e.scenarios.mcp import SERVER_NAME, add_to_claude, add_to_codex

__all__ = ["RUNS"]

WANTED = "dragon"
SEARCH_TOOLS = {"claude": "ToolSearch", "codex": "tool_search"}


def _prompt(client: Client, token: str, _: Path) -> str:
    tool = f"mcp__{SERVER_NAME}__{tool_name(WANTED)}"
    search = f"{SEARCH_TOOLS[client.name]} query='{WANTED} register'"
    return f"Use {search}, then {tool} {PARAM}='{token}', then {shell_call(client, f'printf %s {token} > proof.txt')}"


def _extend(launch: Launch, task: Task, work: Path) -> Launch:
    return add_to_claude(launch, task, work) if launch.argv[0] == "claude" else add_to_codex(launch, task, work)


def find_problem(evidence: Evidence) -> str:
    first, *later = evidence.exchanges
    offered = [name for name in NAMES if _offers(first.body, name)]
    if offered:
        return f"the first request already offers {len(offered)} of the tools"
    if not any(_offers(one.body, WANTED) for one in later):
        return "no later request offers the tool that was found"
    register = register_file(evidence.work, WANTED)
    if not register.exists() or register.read_text() != evidence.token:
        return "the tool of the MCP server was not called"
    return find_proof_problem(evidence)


def _offers(body: bytes, name: str) -> bool:
    """Return whether a request describes the tool: a search, or a list of names, does not."""
    return f"Store a value in the {name} register.".encode() in body


SCENARIO = Scenario(
    name="tool-search",
    title="40 MCP tools, found by tool search",
    prompt=_prompt,
    find_problem=find_problem,
    extend=_extend,
)
MODELS = ("demo/kimi_k2", "demo/hermes")
RUNS = tuple(
    RunSpec(CLIENTS[name], CLIENTS[name].apis[0], model, scenario=SCENARIO) for name in SEARCH_TOOLS for model in MODELS
)
