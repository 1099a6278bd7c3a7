"""Features of the gateways: some are tried by the benchmark, others are read in the package of the pinned release.

A fact says how it was established. "not found" means that the feature was looked for and not found, which does not
prove that it is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bench.peers.contenders import CHAT, CHECK, FAILURES, MESSAGES, RESPONSES, Running, Servers
from bench.peers.probes import ask, check_reply, count_argument_events, counts_tokens, opens_websocket
from bench.traffic import PATHS

__all__ = ["FEATURES", "GATEWAYS", "TRIED", "Fact", "feature_table", "try_features"]

GATEWAYS = {
    "ours": "Interlingua",
    "LiteLLM": "LiteLLM",
    "claude-code-router": "claude-code-router",
    "agentic-api": "agentic-api",
    "sglang-router": "sglang-router",
    "smg": "smg",
}
"""Columns of the table, and their titles."""
SOURCES = {
    "t": "tried by `bench.peers`, with one request and an upstream that offers only Chat Completions over HTTP",
    "h": "`--help` of the release",
    "r": "README in the package",
    "s": "source or program in the package",
    "d": "documentation in the project's repository",
    "n": "README of claude-code-router 3.1.1, which needs a package that the registry does not have",
}
NOT_FOUND = "not found"
MIN_ARGUMENT_EVENTS = 5
"""Arguments count as streamed if the client receives them in at least this many events. The upstream sends ten."""


@dataclass(frozen=True)
class Fact:
    """Feature of a gateway, and how it was established: keys of `SOURCES`, or "" if it was not found."""

    text: str
    sources: str = ""

    def __str__(self) -> str:
        return f"{self.text} <sup>{','.join(self.sources)}</sup>" if self.sources else self.text


MISSING = Fact(NOT_FOUND)


# ── tried ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _call_for(wire: str, scripts: str, server: Running) -> str:
    script = f"{scripts}-{CHECK}"
    reply = ask(server.process.port, PATHS[wire], wire, server.ask(script))
    return check_reply(reply, wire) if reply.status == 200 else f"HTTP {reply.status}"


def _chat_client(server: Running) -> str:
    return _call_for(CHAT, "structured", server)


def _messages_client(server: Running) -> str:
    return _call_for(MESSAGES, "structured", server)


def _responses_client(server: Running) -> str:
    return _call_for(RESPONSES, "structured", server)


def _native_text(server: Running) -> str:
    """Try Messages if there is no Chat Completions, as in claude-code-router."""
    reason = _call_for(CHAT, "native", server)
    return _call_for(MESSAGES, "native", server) if reason == "HTTP 404" else reason


def _streamed_arguments(server: Running) -> str:
    """Try all APIs; the most events count."""
    model = server.ask(f"structured-{CHECK}")
    replies = {wire: ask(server.process.port, PATHS[wire], wire, model) for wire in PATHS}
    events = max(count_argument_events(reply, wire) for wire, reply in replies.items())
    return "" if events >= MIN_ARGUMENT_EVENTS else f"in {events} events"


def _token_count(server: Running) -> str:
    return counts_tokens(server.process.port, server.ask(f"structured-{CHECK}"))


def _websocket(server: Running) -> str:
    return opens_websocket(server.process.port)


CHAT_CLIENT, MESSAGES_CLIENT = "clients of Chat Completions", "clients of Messages"
RESPONSES_CLIENT = "clients of Responses"
NATIVE_TEXT = "calls that the model writes as text (Kimi K2)"
TOKEN_COUNT = "`/v1/messages/count_tokens`"
TRIED: dict[str, Callable[[Running], str]] = {
    CHAT_CLIENT: _chat_client,
    MESSAGES_CLIENT: _messages_client,
    RESPONSES_CLIENT: _responses_client,
    NATIVE_TEXT: _native_text,
    "arguments streamed as they arrive": _streamed_arguments,
    TOKEN_COUNT: _token_count,
    "WebSocket at `/v1/responses`": _websocket,
}
"""Functions that return "" if the feature works, and otherwise what happens instead."""


def try_features(servers: Servers) -> dict[str, dict[str, str]]:
    """Try each feature in each gateway that runs. Returns the outcome by title and gateway."""
    running = {name: server for name, server in servers.running.items() if name in GATEWAYS}
    return {
        title: {name: _outcome(attempt, server) for name, server in running.items()} for title, attempt in TRIED.items()
    }


def _outcome(attempt: Callable[[Running], str], server: Running) -> str:
    try:
        reason = attempt(server)
    except FAILURES:
        return "no answer"
    return f"no: {reason}" if reason else "yes"


# ── table ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def feature_table(tried: Mapping[str, Mapping[str, str]]) -> str:
    """Return the table of features, and how each fact was established."""
    lines = [f"| | {' | '.join(GATEWAYS.values())} |", "|---" * (len(GATEWAYS) + 1) + "|"]
    for title, outcomes in tried.items():
        lines.append(_line(title, [_tried_cell(title, name, outcomes.get(name)) for name in GATEWAYS]))
    for title, known in FEATURES.items():
        lines.append(_line(title, [str(known.get(name, MISSING)) for name in GATEWAYS]))
    legend = "; ".join(f"<sup>{key}</sup> {text}" for key, text in SOURCES.items())
    return "\n".join(lines) + f"\n\nHow each fact was established: {legend}. “{NOT_FOUND}” is not a proof of absence."


def _tried_cell(title: str, gateway: str, outcome: str | None) -> str:
    tried = str(Fact(outcome, "t")) if outcome else "did not run"
    note = NOTES.get((title, gateway))
    return f"{tried}; {note}" if note and outcome != "yes" else tried


def _line(title: str, cells: list[str]) -> str:
    return f"| {title} | {' | '.join(cell.replace('|', '/') for cell in cells)} |"


# ── read in packages and documentation ──────────────────────────────────────────────────────────────────────────────

FEATURES: dict[str, dict[str, Fact]] = {
    "APIs of upstreams": {
        "ours": Fact("Chat Completions, Messages, Responses", "d"),
        "LiteLLM": Fact("over 100 providers, in their own APIs", "r"),
        "claude-code-router": Fact("Chat Completions; with transformers Messages, Gemini, Vertex and others", "r"),
        "agentic-api": Fact("the API of the client: Chat Completions, Messages, Responses", "d"),
        "sglang-router": Fact("SGLang over HTTP and gRPC; OpenAI-compatible providers", "r"),
        "smg": Fact("SGLang, vLLM, TensorRT-LLM, TokenSpeed over HTTP, gRPC, ZMQ; OpenAI; Anthropic", "h"),
    },
    "dialects of models' own text": {
        "ours": Fact("some sixty model families, and your own as YAML", "d"),
        "sglang-router": Fact("12 parsers, for gRPC workers", "rh"),
        "smg": Fact("48 parsers (`--tool-call-parser`)", "h"),
    },
    "correction of wrong tool calls": {
        "ours": Fact("of arguments, ids, indexes and stop reasons, while they stream", "d"),
        "claude-code-router": Fact("of arguments, not streamed (`enhancetool`)", "r"),
    },
    "embeddings, audio and others": {
        "ours": Fact("no", "d"),
        "LiteLLM": Fact("embeddings, images, audio, batches, rerank and more", "r"),
        "agentic-api": Fact("`/v1/completions`", "d"),
        "sglang-router": Fact("embeddings, rerank, classify, tokenize", "r"),
        "smg": Fact("embeddings, rerank, transcriptions, realtime", "s"),
    },
    "state (`previous_response_id`)": {
        "ours": Fact("SQLite, PostgreSQL", "d"),
        "LiteLLM": Fact("from the logs in its database", "s"),
        "agentic-api": Fact("SQLite, PostgreSQL", "h"),
        "sglang-router": Fact("memory, Oracle, PostgreSQL, Redis", "h"),
        "smg": Fact("memory, Oracle, PostgreSQL, Redis", "h"),
    },
    "tools that the gateway runs": {
        "ours": Fact("web search, fetching of pages, tool search; no MCP", "d"),
        "LiteLLM": Fact("MCP", "r"),
        "agentic-api": Fact("web search, MCP, code interpreter", "d"),
        "sglang-router": Fact("MCP", "h"),
        "smg": Fact("MCP", "h"),
    },
    "retries": {
        "ours": Fact("with a retry budget", "d"),
        "LiteLLM": Fact("yes", "r"),
        "sglang-router": Fact("yes", "h"),
        "smg": Fact("yes", "h"),
    },
    "fallback to another model": {
        "ours": Fact("yes", "d"),
        "LiteLLM": Fact("yes", "r"),
        "claude-code-router": Fact("per scenario", "s"),
    },
    "circuit breaker": {
        "ours": Fact("per upstream and model", "d"),
        "LiteLLM": Fact("cooldown of deployments", "s"),
        "sglang-router": Fact("per worker", "h"),
        "smg": Fact("per worker", "h"),
    },
    "load balancing over replicas of a model": {
        "ours": Fact("no", "d"),
        "LiteLLM": Fact("several strategies", "s"),
        "sglang-router": Fact("cache-aware, power of two and others", "h"),
        "smg": Fact("cache-aware, least load, prefix hash and others", "h"),
    },
    "prefill and decode on different workers; Kubernetes discovery": {
        "ours": Fact("no", "d"),
        "sglang-router": Fact("yes", "h"),
        "smg": Fact("yes", "h"),
    },
    "several cores": {
        "ours": Fact("`workers`: processes", "d"),
        "LiteLLM": Fact("`--num_workers`: processes", "h"),
        "agentic-api": Fact("threads", "s"),
        "sglang-router": Fact("threads", "s"),
        "smg": Fact("threads", "s"),
    },
    "authentication of clients": {
        "ours": Fact("keys", "d"),
        "LiteLLM": Fact("virtual keys, SSO", "rs"),
        "claude-code-router": Fact("one key; in 3.1.1 several", "rn"),
        "agentic-api": Fact("OIDC tokens", "h"),
        "sglang-router": Fact("one key; for administration keys and JWT", "h"),
        "smg": Fact("keys per tenant; for administration keys and JWT", "h"),
    },
    "limits per client": {
        "ours": Fact("concurrent requests, requests and tokens per minute; no budgets", "d"),
        "LiteLLM": Fact("requests and tokens per minute, budgets, spend", "s"),
        "sglang-router": Fact("concurrent requests with a queue, of all clients together", "h"),
        "smg": Fact("requests and tokens per tenant; concurrent requests; priorities", "h"),
    },
    "metrics and traces": {
        "ours": Fact("Prometheus, OpenTelemetry", "d"),
        "LiteLLM": Fact("Prometheus, OpenTelemetry and many services", "s"),
        "agentic-api": Fact("OpenTelemetry", "d"),
        "sglang-router": Fact("Prometheus, OpenTelemetry", "h"),
        "smg": Fact("Prometheus, OpenTelemetry", "h"),
    },
    "record of complete exchanges": {
        "ours": Fact("`capture`: files, with redaction; cassettes for tests", "d"),
        "LiteLLM": Fact("in its database", "s"),
        "claude-code-router": Fact("log files; in 3.1.1 a database", "rn"),
    },
    "web UI": {
        "ours": Fact("inspector of exchanges (`serve --inspect`); no administration", "d"),
        "LiteLLM": Fact("yes", "r"),
        "claude-code-router": Fact("yes", "r"),
    },
    "starts coding agents": {
        "ours": Fact("`interlingua run`: nine agents", "d"),
        "claude-code-router": Fact("`ccr code`: Claude Code; in 3.1.1 six agents", "rn"),
        "agentic-api": Fact("`agentic run`: Claude Code, Codex", "h"),
    },
    "language": {
        "ours": Fact("Python", "d"),
        "LiteLLM": Fact("Python", "s"),
        "claude-code-router": Fact("TypeScript", "r"),
        "agentic-api": Fact("Rust", "r"),
        "sglang-router": Fact("Rust", "r"),
        "smg": Fact("Rust", "r"),
    },
    "licence": {
        "ours": Fact("MIT", "d"),
        "LiteLLM": Fact("MIT; `litellm-enterprise`, which the proxy requires, has its own", "s"),
        "claude-code-router": Fact("MIT", "r"),
        "agentic-api": Fact("Apache-2.0", "s"),
        "sglang-router": Fact("Apache-2.0", "r"),
        "smg": Fact("Apache-2.0", "r"),
    },
}
NOTES: dict[tuple[str, str], Fact] = {
    (NATIVE_TEXT, "sglang-router"): Fact("yes with gRPC workers", "r"),
    (NATIVE_TEXT, "smg"): Fact("also with `--tool-call-parser kimik2`", "t"),
    (MESSAGES_CLIENT, "agentic-api"): Fact("forwarded to the upstream's own", "d"),
    (MESSAGES_CLIENT, "smg"): Fact("forwarded to the upstream's own", "s"),
    (RESPONSES_CLIENT, "agentic-api"): Fact("forwarded to the upstream's own, with state and tools", "d"),
    (RESPONSES_CLIENT, "sglang-router"): Fact("forwarded to the upstream's own", "s"),
    (RESPONSES_CLIENT, "smg"): Fact("forwarded to the upstream's own", "s"),
    (TOKEN_COUNT, "LiteLLM"): Fact("asks an upstream of type `openai`; with other types its own count", "s"),
    (TOKEN_COUNT, "agentic-api"): Fact("forwarded to the upstream's own", "d"),
}
"""Facts that no attempt shows, by title and gateway."""
