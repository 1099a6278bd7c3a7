"""Requests that no client means: bodies with something wrong in them are understood or refused with a place, and
nothing else."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from interlingua.errors import BadRequest
from interlingua.translation.request_translation import prepare_request
from tests.support.request_forms import CHAT, MESSAGES, RESPONSES, WIRES
from tests.translation.test_recorded_requests import OPTIONS, REQUESTS, WHOLE

ODD: tuple[Any, ...] = (None, True, 0, -1, 1.5, 10**30, "", "two", " ", [], [[]], [0], [None], [""], {}, {"a": []})
UPSTREAMS = {CHAT: ("any", "moonshot", "openrouter"), MESSAGES: ("any",), RESPONSES: ("any",)}
EVERYTHING: dict[str, tuple[str, dict[str, Any]]] = {
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
LARGEST = 60_000
"""Bodies with more characters take too long to be tried often."""

TRIED = EVERYTHING | {name: REQUESTS[name] for name in WHOLE if len(json.dumps(REQUESTS[name][1])) < LARGEST}


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every container with a key that can be changed in it."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return [(value, key) for key in keys] + [place for key in keys for place in places(value[key])]


def spoil(body: Any, chance: random.Random) -> None:
    """One to three changes anywhere, deep inside as often as at the top."""
    for _ in range(chance.randint(1, 3)):
        container, key = chance.choice(places(body))
        match chance.randrange(4):
            case 0 if isinstance(container, dict) and len(body) > 1:
                del container[key]
            case 1:
                container[key] = json.loads(json.dumps(chance.choice(places(body))[0]))
            case 2 if isinstance(container, list):
                container.append(json.loads(json.dumps(container[key])))
            case _:
                container[key] = json.loads(json.dumps(chance.choice(ODD)))


def try_all(name: str, rounds: int) -> None:
    wire, body = TRIED[name]
    chance = random.Random(name)
    refused: list[BadRequest] = []
    for _ in range(rounds):
        spoiled = json.loads(json.dumps(body))
        spoil(spoiled, chance)
        target = chance.choice([*WIRES])
        upstream = chance.choice(UPSTREAMS[target])
        try:
            prepare_request(spoiled, wire, target, upstream=upstream, options=OPTIONS, strict=chance.random() < 0.1)
        except BadRequest as error:
            refused.append(error)
        except Exception as error:
            raise AssertionError(f"{wire} → {target}, {upstream}: {json.dumps(spoiled)[:3000]}") from error
    assert all(error.path for error in refused)


@pytest.mark.parametrize("name", TRIED)
def test_a_spoiled_request_is_understood_or_refused(name: str) -> None:
    try_all(name, 1500 if name in EVERYTHING else 100)
