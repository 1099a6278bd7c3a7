"""Fuzz test with malformed requests: each one is accepted, or rejected with the path of the error."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from interlingua.errors import BadRequest
from interlingua.translation.request_translation import prepare_request
from tests.support.budget import examples
from tests.support.request_forms import CHAT, MESSAGES, RESPONSES, WIRES
from tests.translation.test_recorded_requests import COMPLETE_REQUESTS, OPTIONS, REQUESTS

ODD_VALUES: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1.5,
    10**30,
    "",
    "two",
    " ",
    [],
    [[]],
    [0],
    [None],
    [""],
    {},
    {"a": []},
)
UPSTREAMS = {CHAT: ("any", "moonshot", "openrouter"), MESSAGES: ("any",), RESPONSES: ("any",)}
FULL_REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "all of messages": (
        MESSAGES,
        {
            "model": "m",
            "max_tokens": 5,
            "system": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}],
            "tools": [
                {"name": "ping", "input_schema": {"type": "object", "properties": {}}, "defer_loading": True},
                {"type": "bash_20250124", "name": "bash"},
            ],
            "tool_choice": {"type": "tool", "name": "ping"},
            "thinking": {"type": "enabled", "budget_tokens": 5000},
            "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": {}}},
            "metadata": {"user_id": '{"session_id":1}'},
            "stop_sequences": ["a"],
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aa"}},
                        {
                            "type": "document",
                            "title": "x",
                            "source": {"type": "text", "media_type": "text/plain", "data": "d"},
                        },
                        {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "q"}]}},
                        {
                            "type": "search_result",
                            "content": [{"type": "text", "text": "q"}],
                            "title": "t",
                            "source": "s",
                        },
                    ],
                },
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "t", "signature": "s"},
                        {"type": "redacted_thinking", "data": "d"},
                        {"type": "text", "text": "x", "citations": [{"a": 1}]},
                        {"type": "tool_use", "id": "t1", "name": "ping", "input": {}},
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "tool_result",
                            "tool_use_id": "t1",
                            "is_error": True,
                            "content": [
                                {"type": "tool_reference", "tool_name": "ping"},
                                {"type": "image", "source": {"type": "url", "url": "http://x"}},
                            ],
                        }
                    ],
                },
            ],
        },
    ),
    "all of chat": (
        CHAT,
        {
            "model": "m",
            "n": 1,
            "functions": [{"name": "f"}],
            "function_call": {"name": "f"},
            "tools": [
                {
                    "type": "custom",
                    "custom": {
                        "name": "c",
                        "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": "x"}},
                    },
                }
            ],
            "chat_template_kwargs": {"enable_thinking": True},
            "thinking": {"type": "enabled", "budget_tokens": 3},
            "reasoning": {"effort": "low"},
            "stop": ["a"],
            "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {}}},
            "messages": [
                {"role": "system", "content": "s"},
                {
                    "role": "user",
                    "content": [
                        {"type": "image_url", "image_url": {"url": "data:,x", "detail": "low"}},
                        {"type": "file", "file": {"file_id": "q"}},
                    ],
                },
                {
                    "role": "assistant",
                    "content": None,
                    "reasoning_details": [
                        {"type": "reasoning.text", "text": "t", "signature": "s"},
                        {"type": "reasoning.encrypted", "data": "x"},
                    ],
                    "tool_calls": [{"id": "a", "type": "custom", "custom": {"name": "c", "input": "q"}}],
                },
                {
                    "role": "tool",
                    "tool_call_id": "a",
                    "content": [{"type": "text", "text": "t", "cache_control": {"type": "e"}}],
                },
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "[image from tool call a]"},
                        {"type": "image_url", "image_url": {"url": "http://a"}},
                    ],
                },
                {"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}},
                {"role": "function", "name": "f", "content": "x"},
            ],
        },
    ),
    "all of responses": (
        RESPONSES,
        {
            "model": "m",
            "instructions": "i",
            "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}]},
            "reasoning": {"effort": "low", "summary": "auto"},
            "text": {"verbosity": "low", "format": {"type": "json_schema", "name": "a", "schema": {}}},
            "tools": [
                {"type": "namespace", "name": "ns", "tools": [{"type": "function", "name": "f", "parameters": {}}]},
                {"type": "custom", "name": "c", "format": {"type": "grammar", "syntax": "lark", "definition": "q"}},
                {"type": "tool_search", "execution": "client"},
            ],
            "input": [
                {
                    "type": "message",
                    "role": "user",
                    "content": [
                        {"type": "input_image", "image_url": "data:,x"},
                        {"type": "input_file", "file_id": "x"},
                    ],
                },
                {"type": "reasoning", "summary": [{"type": "summary_text", "text": "t"}], "encrypted_content": "q"},
                {"type": "function_call", "call_id": "1", "name": "f", "namespace": "ns", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "1", "output": [{"type": "input_text", "text": "q"}]},
                {"type": "additional_tools", "role": "developer", "tools": [{"type": "function", "name": "z"}]},
                {"type": "tool_search_call", "execution": "client", "call_id": "s", "arguments": {}},
                {
                    "type": "tool_search_output",
                    "execution": "client",
                    "call_id": "s",
                    "tools": [{"type": "function", "name": "y", "parameters": {}}],
                },
                {"type": "agent_message", "content": [{"type": "input_text", "text": "x"}]},
                {"type": "local_shell_call", "call_id": "l", "action": {}},
                {"type": "local_shell_call_output", "id": "l", "output": "ok"},
                {"type": "custom_tool_call", "call_id": "2", "name": "c", "input": "x"},
                {"type": "custom_tool_call_output", "call_id": "2", "output": "ok"},
            ],
        },
    ),
}
MAX_BODY_CHARS = 60_000
"""Larger recorded bodies are skipped, because many rounds with them take too long."""

FUZZED_REQUESTS = FULL_REQUESTS | {
    name: REQUESTS[name] for name in COMPLETE_REQUESTS if len(json.dumps(REQUESTS[name][1])) < MAX_BODY_CHARS
}


def mutable_entries(value: Any) -> list[tuple[Any, Any]]:
    """Return each container with each of its keys, at every depth."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return [(value, key) for key in keys] + [entry for key in keys for entry in mutable_entries(value[key])]


def corrupt(body: Any, rng: random.Random) -> None:
    """Make one to three changes. Each entry of the body, at any depth, has the same probability."""
    for _ in range(rng.randint(1, 3)):
        container, key = rng.choice(mutable_entries(body))
        match rng.randrange(4):
            case 0 if isinstance(container, dict) and len(body) > 1:
                del container[key]
            case 1:
                container[key] = json.loads(json.dumps(rng.choice(mutable_entries(body))[0]))
            case 2 if isinstance(container, list):
                container.append(json.loads(json.dumps(container[key])))
            case _:
                container[key] = json.loads(json.dumps(rng.choice(ODD_VALUES)))


def fuzz(name: str, rounds: int) -> None:
    wire, body = FUZZED_REQUESTS[name]
    rng = random.Random(name)
    rejected: list[BadRequest] = []
    for _ in range(rounds):
        corrupted = json.loads(json.dumps(body))
        corrupt(corrupted, rng)
        target = rng.choice([*WIRES])
        upstream = rng.choice(UPSTREAMS[target])
        try:
            prepare_request(corrupted, wire, target, upstream=upstream, options=OPTIONS, strict=rng.random() < 0.1)
        except BadRequest as error:
            rejected.append(error)
        except Exception as error:
            raise AssertionError(f"{wire} → {target}, {upstream}: {json.dumps(corrupted)[:3000]}") from error
    assert all(error.path for error in rejected)


@pytest.mark.one_row_in(4)
@pytest.mark.sampled
@pytest.mark.parametrize("name", FUZZED_REQUESTS)
def test_malformed_request_is_accepted_or_rejected_with_path(name: str) -> None:
    fuzz(name, examples(1500, quick=300) if name in FULL_REQUESTS else examples(100))
