"""Captured exchanges for the inspector's page: an agent's session that goes wrong, and replies hard to show."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from interlingua.captures.capture_format import CapturedExchange, encode_capture
from interlingua.tokens.estimator import estimate_tokens
from tests.support.captured_exchanges import capture_exchange, chat_chunk, chat_stream, failed_attempt

__all__ = [
    "HOSTILE_TEXT",
    "PNG",
    "agent_session",
    "agent_turn",
    "hostile_exchange",
    "kimi_call",
    "long_exchange",
    "section",
    "write_captures",
    "write_scenes",
]

HOSTILE_TEXT = (
    '<script>window.hacked = 1</script><img src=x onerror="window.hacked = 2">'
    '<a href="javascript:window.hacked = 3">x</a>'
    "</pre></script><!-- \u202e\u0000 ${window.hacked} {{window.hacked}}"
)
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
SESSION_ID = "a7f74645-2f4b-47d4-ae9f-b297c437e48b"
TOOLS: list[dict[str, Any]] = [
    {
        "name": "read_file",
        "description": "Read a file of the working directory.",
        "input_schema": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}},
            "required": ["path"],
        },
    },
    {
        "name": "run",
        "description": "Run a shell command and return its output.",
        "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
    },
    {
        "name": "task",
        "description": "Start a subagent for a part of the work.",
        "input_schema": {"type": "object", "properties": {"prompt": {"type": "string"}}, "required": ["prompt"]},
    },
]
SYSTEM = (
    "You are a coding agent in a terminal. Work step by step, use the tools, and answer briefly.\n"
    "Today is 2026-03-04. The time is {time}.\n"
    "Working directory: /home/dev/shop. Branch: main. "
    + "Follow the style of the project. Never write secrets into files. "
    * 12
)


def kimi_call(name: str, index: int, arguments: str) -> str:
    header = f"<|tool_call_begin|>functions.{name}:{index}<|tool_call_argument_begin|>"
    return f"{header}{arguments}<|tool_call_end|>"


def section(*calls: str) -> str:
    return f"<|tool_calls_section_begin|>{''.join(calls)}<|tool_calls_section_end|>"


def tokens(text: str, size: int = 6) -> list[str]:
    """Cut a text into pieces, about as a model's tokenizer does."""
    return [text[at : at + size] for at in range(0, len(text), size)]


def body(messages: list[dict[str, Any]], time: str, **more: Any) -> dict[str, Any]:
    return {
        "model": "claude-sonnet-4-5",
        "max_tokens": 32000,
        "stream": True,
        "system": [{"type": "text", "text": SYSTEM.format(time=time), "cache_control": {"type": "ephemeral"}}],
        "tools": TOOLS,
        "metadata": {"user_id": json.dumps({"device_id": "d", "session_id": SESSION_ID})},
        "messages": messages,
        **more,
    }


def agent_turn(
    number: int,
    messages: list[dict[str, Any]],
    reply: str,
    at: str,
    clock: str = "05:06",
    cached: int = 0,
    **more: Any,
) -> CapturedExchange:
    """Return a turn of the agent. `clock`: time in the system prompt; `cached`: tokens that the upstream reports."""
    request = body(messages, clock)
    usage = {
        "prompt_tokens": estimate_tokens(request),
        "completion_tokens": len(reply) // 4,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
    options = {
        "wire": "anthropic-messages",
        "headers": {
            "user-agent": "claude-cli/2.1.325 (external, sdk-cli)",
            "x-claude-code-session-id": SESSION_ID,
            "authorization": "***",
        },
        "model": "moonshotai/kimi-k2.5",
        "dialect": "kimi_k2",
        "id": f"req_{number:032x}",
        "time": f"2026-03-04T05:{at}+00:00",
        "client": "key-1",
        **more,
    }
    return capture_exchange(request, chat_stream(tokens(reply), usage=usage), **options)


def agent_session() -> list[CapturedExchange]:
    """Return the turns of an agent: a failover, a subagent, a broken prompt cache, and a last turn that just stops."""
    user: dict[str, Any] = {
        "role": "user",
        "content": "The checkout test fails since yesterday. Find out why and fix it.",
    }
    first_call = {"type": "tool_use", "id": "il-functions_2erun_3a0", "name": "run", "input": {"command": "pytest -x"}}
    second_call = {
        "type": "tool_use",
        "id": "il-functions_2etask_3a1",
        "name": "task",
        "input": {"prompt": "Find all callers of Cart.total"},
    }

    def result(call: dict[str, Any], text: str) -> dict[str, Any]:
        content = [{"type": "tool_result", "tool_use_id": call["id"], "content": text}]
        return {"role": "user", "content": content}

    second: list[dict[str, Any]] = [
        user,
        {"role": "assistant", "content": [{"type": "text", "text": "I run the tests first."}, first_call]},
        result(first_call, "FAILED tests/test_checkout.py::test_total - assert 19.98 == 19.99\n" * 4),
    ]
    third: list[dict[str, Any]] = [
        *second,
        {"role": "assistant", "content": [{"type": "text", "text": "The total is off by a cent."}, second_call]},
        result(second_call, "checkout.py:41 and invoice.py:88 call Cart.total"),
    ]
    sub = [{"role": "user", "content": "Find all callers of Cart.total"}]
    think = "<think>The user says that the checkout test fails. I should run the tests to see the failure.</think>"
    return [
        agent_turn(
            1,
            [user],
            think + "I run the tests first." + section(kimi_call("run", 0, '{"command": "pytest -x"}')),
            "06:07.000000",
            before=failed_attempt("openrouter", 529, 0.05) + failed_attempt("openrouter", 503, 0.9),
            start=1.8,
            first_byte=2.6,
            pace=0.018,
        ),
        agent_turn(
            2,
            second,
            "<think>19.98 instead of 19.99: that looks like rounding.</think>The total is off by a cent."
            + section(kimi_call("task", 1, '{"prompt": "Find all callers of Cart.total"}')),
            "06:12.500000",
            cached=448,
            first_byte=0.8,
            pace=0.02,
        ),
        agent_turn(
            3,
            sub,
            "checkout.py:41 and invoice.py:88 call Cart.total.",
            "06:15.200000",
            first_byte=0.5,
            pace=0.03,
        ),
        agent_turn(
            4,
            third,
            "<think>I have the callers. Now I fix the rounding in Cart.total and run the tests again. "
            + section(kimi_call("run", 2, '{"command": "sed -i s/floor/round/ cart.py &&\n pytest"}')),
            "07:21.900000",
            clock="05:07",
            cached=192,
            first_byte=1.9,
            pace=0.024,
        ),
        agent_turn(
            5,
            [
                *third,
                {"role": "assistant", "content": [{"type": "text", "text": "I changed Cart.total."}, first_call]},
                result(first_call, "12 passed"),
                {"role": "user", "content": "Why did you stop?"},
            ],
            "The fix is done: `Cart.total` rounds half up now, and all twelve tests pass.\n\nNext I call "
            '<|tool_call_begin|>functions.run:3<|tool_call_argument_begin|>{"command": "git diff',
            "08:02.100000",
            clock="05:07",
            cached=576,
            first_byte=0.9,
            pace=0.03,
        ),
    ]


def hostile_exchange() -> CapturedExchange:
    """Return an exchange whose texts try to run code in the page."""
    request = {
        "model": f"m{HOSTILE_TEXT}",
        "stream": True,
        "messages": [{"role": "user", "content": HOSTILE_TEXT}],
        "tools": [{"type": "function", "function": {"name": "ls", "description": HOSTILE_TEXT, "parameters": {}}}],
    }
    arguments = json.dumps({"path": HOSTILE_TEXT})
    call = {"index": 0, "id": HOSTILE_TEXT, "type": "function", "function": {"name": "ls", "arguments": arguments}}
    reads = [chat_chunk({"content": HOSTILE_TEXT}), chat_chunk({"tool_calls": [call]}), chat_chunk({}, "tool_calls")]
    return capture_exchange(
        request,
        reads,
        id="req_" + "f" * 32,
        model=HOSTILE_TEXT.replace("\u0000", ""),
        headers={"user-agent": f"{HOSTILE_TEXT}/1".replace("\u0000", ""), "x-odd": HOSTILE_TEXT},
        time="2026-03-04T06:00:00.000000+00:00",
    )


def long_exchange(event_count: int) -> CapturedExchange:
    """Return an exchange with so many messages of the upstream: thinking, text and a long call."""
    words = ("The", "quick", "brown", "fox", "jumps", "over", "the", "lazy", "dog", "and", "keeps", "running")
    content = "x = 1\\n" * 150
    call = tokens(section(kimi_call("write", 0, f'{{"path": "a.py", "content": "{content}"}}')), 8)
    word_count = event_count - len(call) - 5  # without the call, the thinking markers, the start and the end
    spoken = [f"{words[at % len(words)]} " for at in range(word_count)]
    half = word_count // 2
    pieces = ["<think>", *spoken[:half], "</think>", *spoken[half:], *call]
    tool = {"name": "write", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}
    request = {
        "model": "kimi-k2",
        "stream": True,
        "messages": [{"role": "user", "content": "Write a long file."}],
        "tools": [{"type": "function", "function": tool}],
    }
    usage = {"prompt_tokens": 120, "completion_tokens": event_count}
    reads = chat_stream(pieces, usage=usage)
    assert len(reads) == event_count
    return capture_exchange(
        request, reads, id="req_" + "a" * 32, pace=0.004, time="2026-03-04T06:10:00.000000+00:00", dialect="kimi_k2"
    )


def write_captures(folder: Path, exchanges: Iterable[CapturedExchange]) -> Path:
    """Write each exchange into a file of the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, captured in enumerate(exchanges):
        (folder / f"20260304T050607{number:06d}Z-capture.jsonl").write_bytes(encode_capture(captured))
    return folder


def write_scenes(folder: Path) -> Path:
    """Write the captures of an agent's session."""
    return write_captures(folder, agent_session())
