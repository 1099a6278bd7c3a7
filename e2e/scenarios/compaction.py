"""Conversations that do not fit into a context window of 40,960 tokens: the agent summarises them, and goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from msgspec import structs

from e2e.client import Client, Launch, Task
from e2e.clients import CLIENTS
from e2e.plain_servers import SERVERS, WINDOW
from e2e.run import RunSpec
from e2e.scenario import Evidence, Scenario, find_proof_problem, shell_call

__all__ = ["RUNS", "find_problem"]

LARGE_OUTPUTS = 5
SUMMARY_WORDS = {"claude": b"detailed summary", "codex": b"compaction", "codex-built-in": b"compaction"}
"""Text in the requests of each agent that ask for a summary, or have one."""


def _prompt(client: Client, token: str, _: Path) -> str:
    """Return a prompt with commands that print about 6,000 tokens each, and smaller ones between them."""
    commands: list[str] = []
    for number in range(1, LARGE_OUTPUTS + 1):
        commands += [f"seq {number}0000 {number}3500", "echo small", "echo smaller"]
    calls = [*commands, f"printf %s {token} > proof.txt"]
    return f"e2e-{token}: use {', then '.join(shell_call(client, command) for command in calls)}"


def find_problem(evidence: Evidence) -> str:
    if not any(words in one.body for words in SUMMARY_WORDS.values() for one in evidence.exchanges):
        return "no request is about a summary"
    return find_proof_problem(evidence)


def _with_compaction_limit(launch: Launch, _: Task, __: Path) -> Launch:
    """Let Codex compact at a length that its built-in provider would not choose for this model."""
    first, *rest = launch.argv
    return structs.replace(launch, argv=[first, "-c", "model_auto_compact_token_limit=24000", *rest])


def _without_window(launch: Launch, _: Task, __: Path) -> Launch:
    """Let the agent assume its own window, so that the server refuses a prompt."""
    environment = {name: value for name, value in launch.environment.items() if "_MAX_" not in name}
    files = {name: text for name, text in launch.files.items() if name != "config/settings.json"}
    argv = [part for part in launch.argv if part != "--settings" and not part.endswith("/settings.json")]
    return structs.replace(launch, argv=argv, environment=environment, files=files)


def _scenario(name: str, title: str, extend: Callable[[Launch, Task, Path], Launch], error: str = "") -> Scenario:
    return Scenario(
        name=name,
        title=title,
        prompt=_prompt,
        find_problem=find_problem,
        extend=extend,
        context_tokens=WINDOW,
        expected_error=error,
    )


FULL = _scenario("full-window", "window of 40,960 tokens: the agent compacts", lambda launch, _, __: launch)
UNKNOWN = _scenario(
    "unknown-window",
    "the agent does not know the window: “prompt is too long”, and it compacts",
    _without_window,
    "maximum context length",
)
REMOTE = _scenario("remote-compaction", "compaction by the server, over a WebSocket", _with_compaction_limit, "")
VLLM, LLAMA_CPP = SERVERS["vllm"].model, SERVERS["llama.cpp"].model
RUNS = (
    RunSpec(CLIENTS["claude"], "anthropic-messages", VLLM, "vllm", FULL),
    RunSpec(CLIENTS["claude"], "anthropic-messages", VLLM, "vllm", UNKNOWN),
    RunSpec(CLIENTS["codex"], "openai-responses", LLAMA_CPP, "llama.cpp", FULL),
    RunSpec(CLIENTS["codex-built-in"], "openai-responses", VLLM, "vllm", REMOTE),
)
