"""Two subagents at the same time, whose first call is the same tool, with a large result."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import msgspec

from e2e.client import Client, Launch, Task
from e2e.clients import CLIENTS
from e2e.mcp_server import LARGE_PARAM, LARGE_TOOL
from e2e.run import RunSpec
from e2e.scenario import Evidence, Scenario, find_proof_problem, shell_call
from e2e.scenarios.mcp import SERVER_NAME, add_to_claude

__all__ = ["RUNS", "find_problem"]

MARKS = ("first", "second")


def _prompt(client: Client, token: str, _: Path) -> str:
    tool = f"mcp__{SERVER_NAME}__{LARGE_TOOL}"
    agents = " and ".join(
        f"Agent description='{mark}' run_in_background=false prompt='Use {tool} {LARGE_PARAM}=\"{mark}-{token}\"'"
        for mark in MARKS
    )
    return f"Use {agents}, then {shell_call(client, f'printf %s {token} > proof.txt')}"


def _extend(launch: Launch, task: Task, work: Path) -> Launch:
    environment = {**launch.environment, "ENABLE_TOOL_SEARCH": "false"}
    return msgspec.structs.replace(add_to_claude(launch, task, work), environment=environment)


def find_problem(evidence: Evidence) -> str:
    calls_by_id: dict[str, set[bytes]] = defaultdict(set)
    for one in evidence.exchanges:
        for block in _blocks(one.body):
            if block.get("type") == "tool_use":
                calls_by_id[block["id"]].add(msgspec.json.encode([block["name"], block["input"]]))
    shared = [id for id, calls in calls_by_id.items() if len(calls) > 1]
    if shared:
        return f"two calls of the session have the id {shared[0]}"
    results = [path.read_text(errors="replace") for path in evidence.home.rglob("tool-results/*")]
    for mark in MARKS:
        if sum(f"{mark}-{evidence.token}" in text for text in results) != 1:
            return f"the large result of the {mark} subagent is not kept"
    return find_proof_problem(evidence)


def _blocks(body: bytes) -> list[dict[str, Any]]:
    messages = msgspec.json.decode(body).get("messages", [])
    contents = [message["content"] for message in messages if isinstance(message["content"], list)]
    return [block for content in contents for block in content]


SCENARIO = Scenario(
    name="subagents",
    title="two subagents with large results",
    prompt=_prompt,
    find_problem=find_problem,
    extend=_extend,
)
RUNS = tuple(
    RunSpec(CLIENTS["claude"], "anthropic-messages", model, server, SCENARIO)
    for model, server in (("demo/kimi_k2", ""), ("llama3.1:8b", "ollama"))
)
"""Kimi numbers its calls in each conversation, and Ollama's ids of replies repeat."""
