"""Web search that the client leaves to the server, with a scripted SearXNG."""

from __future__ import annotations

from pathlib import Path

from e2e.client import Client
from e2e.clients import CLIENTS
from e2e.run import RunSpec
from e2e.scenario import Evidence, Scenario, find_proof_problem, shell_call
from e2e.search_server import found_text

__all__ = ["RUNS"]

CALLS = {
    "claude": "ToolSearch query='select:WebSearch', then WebSearch query='{words}'",
    "codex": "web_search query='{words}'",
    "codex-built-in": "web_search query='{words}'",
}
"""Calls of each client. Claude Code defers its own search tool."""


def _prompt(client: Client, token: str, _: Path) -> str:
    search = CALLS[client.name].format(words=_words(token))
    return f"Use {search}, then {shell_call(client, f'printf %s {token} > proof.txt')}"


def _words(token: str) -> str:
    return f"news of {token}"


def find_problem(evidence: Evidence) -> str:
    found = found_text(_words(evidence.token)).encode()
    if not any(found in one.body for one in evidence.exchanges):
        return "no request has the excerpt that the search has found"
    return find_proof_problem(evidence)


SCENARIO = Scenario(
    name="web-search",
    title="web search with SearXNG",
    prompt=_prompt,
    find_problem=find_problem,
    settings={"INTERLINGUA_WEB_SEARCH__ENGINE": "searxng", "INTERLINGUA_WEB_SEARCH__URL": "{search}"},
)
RUNS = (
    *(
        RunSpec(CLIENTS[name], CLIENTS[name].apis[0], model, scenario=SCENARIO)
        for name in CALLS
        for model in ("demo/kimi_k2", "demo/harmony")
    ),
)
