"""Scenario of an end-to-end run: what the client is asked to do, and what must have happened then.

Most runs have the task of `PARALLEL_CALLS`: the prompt makes the model send two calls in one reply, each of which
writes one half, and after their results a third call that joins the halves. So the proof file exists only if the client
ran both calls, sent their results back, and understood the next turn. The gateway's captures show that the two calls
came in one reply. A client that can read images first reads one, also with models that see none.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct

from e2e.client import Client, Launch, Task
from e2e.gateway import Exchange
from interlingua.agents.base import DEFAULT_CONTEXT_TOKENS

__all__ = ["PARALLEL_CALLS", "PROOF", "Evidence", "Scenario", "find_proof_problem", "shell_call"]

PROOF = "proof.txt"
IMAGE = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==")
"""PNG of one pixel."""


class Evidence(Struct, frozen=True):
    """Files and captures that a run has left behind."""

    token: str
    """Random text of the run. It is in the prompt."""
    work: Path
    """Working directory of the client."""
    home: Path
    exchanges: list[Exchange]
    """Exchanges of the run, in order."""


class Scenario(Struct, frozen=True, kw_only=True):
    name: str = ""
    """Name on the command line; empty for the task of most runs."""
    title: str = ""
    """The behaviour that it shows, for the table."""
    prompt: Callable[[Client, str, Path], str]
    """Returns the prompt for a client, in the language of the demo model: with the token, and the working directory."""
    find_problem: Callable[[Evidence], str]
    """Returns the reason why the run failed; "": it succeeded."""
    prepare: Callable[[Path], None] = lambda _: None
    """Writes files into the working directory."""
    extend: Callable[[Launch, Task, Path], Launch] = lambda launch, _, __: launch
    """Changes the launch of the client."""
    context_tokens: int = DEFAULT_CONTEXT_TOKENS
    """Context window that the agent is configured with."""
    settings: Mapping[str, str] = {}
    """Settings of the gateway, as environment variables. `{search}` in a value is the URL of the search server."""
    expected_error: str = ""
    """Part of the message of errors that belong to the scenario."""


def shell_call(client: Client, command: str) -> str:
    """Return a call of the client's shell tool in the prompt language."""
    return f"{client.tool} {client.param}='{command}'"


def find_proof_problem(evidence: Evidence) -> str:
    """Return why the proof file does not have the token; "": it has."""
    proof = evidence.work / PROOF
    if not proof.exists():
        return f"{PROOF} is missing"
    text = proof.read_text(errors="replace").strip()
    return "" if text == evidence.token else f"{PROOF} is {text[:80]!r} instead of {evidence.token!r}"


def _prompt(client: Client, token: str, work: Path) -> str:
    middle = len(token) // 2
    halves = (("a", token[:middle]), ("b", token[middle:]))
    written = " and ".join(shell_call(client, f"printf %s {half} > {name}.txt") for name, half in halves)
    look = f"{client.image_tool}='{work / 'dot.png'}', then " if client.image_tool else ""
    # The token itself is in the prompt too, so that the exchanges of the run can be found.
    return f"e2e-{token}: use {look}{written}, then {shell_call(client, f'cat a.txt b.txt > {PROOF}')}"


def _write_image(work: Path) -> None:
    (work / "dot.png").write_bytes(IMAGE)


def _find_problem(evidence: Evidence) -> str:
    exchanges = evidence.exchanges
    several = next((at for at, one in enumerate(exchanges) if one.calls >= 2), None)
    if several is None:
        return "no reply had two calls"
    if not any(one.calls for one in exchanges[several + 1 :]):
        return "no later reply had a call"
    return find_proof_problem(evidence)


PARALLEL_CALLS = Scenario(
    prompt=_prompt,
    find_problem=_find_problem,
    prepare=_write_image,
)
