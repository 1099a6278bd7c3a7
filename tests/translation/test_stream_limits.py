"""Limits of one stream: what a hostile upstream sends without end is counted, and ends the stream with an error."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import count, islice
from typing import Any

import pytest

from interlingua.core.options import Limits, Options
from interlingua.translation.translator import Translator, translate_reply

WIRES = ("openai-chat", "anthropic-messages", "openai-responses")
CHAT, MESSAGES, RESPONSES = WIRES
TOOLS = [{"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}]


def sse(event: dict[str, Any]) -> bytes:
    name = f"event: {event['type']}\n" if "type" in event else ""
    return f"{name}data: {json.dumps(event)}\n\n".encode()


def chat(delta: dict[str, Any], choice: int = 0, /, **fields: Any) -> bytes:
    choices = [{"index": choice, "delta": delta, "finish_reason": None}]
    return sse({"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": choices} | fields)


def chat_call(index: int, id: str, name: str, arguments: str = "") -> bytes:
    function = {"name": name, "arguments": arguments}
    return chat({"tool_calls": [{"index": index, "id": id, "type": "function", "function": function}]})


def open_message() -> bytes:
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
    return sse({"type": "message_start", "message": message})


def block_start(index: int, block: dict[str, Any]) -> bytes:
    return sse({"type": "content_block_start", "index": index, "content_block": block})


def response_event(number: int, type: str, **fields: Any) -> bytes:
    return sse({"type": type, "sequence_number": number, **fields})


def created() -> bytes:
    return response_event(0, "response.created", response={"id": "resp_1", "model": "m", "output": []})


Stream = Callable[[], Iterator[bytes]]
KIB = "x" * 1024


def calls_behind_an_open_call() -> Iterator[bytes]:
    yield chat_call(0, "open", "read", "{")
    yield from (chat_call(n, f"{n}{KIB}", "read", "") for n in count(1))


def calls_without_name() -> Iterator[bytes]:
    return (chat({"tool_calls": [{"index": n, "id": f"call{n}"}]}) for n in count())


def calls_in_one_chunk() -> Iterator[bytes]:
    entry = {"type": "function", "function": {"name": "read", "arguments": "{}"}}
    return (chat({"tool_calls": [{"index": n, "id": f"c{n}", **entry} for n in range(3000)]}) for _ in count())


def native_calls() -> Iterator[bytes]:
    return (chat({"content": '<tool_call>\n{"name": "read", "arguments": {}}\n</tool_call>\n'}) for _ in count())


def choices() -> Iterator[bytes]:
    return (chat({"content": "x"}, n) for n in count())


def choices_in_one_chunk() -> Iterator[bytes]:
    return (chat({}, choices=[{"index": n, "delta": {"content": "x"}} for n in range(3000)]) for _ in count())


def calls_in_choices() -> Iterator[bytes]:
    def call(n: int) -> bytes:
        entry = {"index": n, "id": f"c{n}", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        return chat({"tool_calls": [entry]}, n % 10)

    return map(call, count())


def open_blocks() -> Iterator[bytes]:
    yield open_message()
    yield from (block_start(n, {"type": "text", "text": ""}) for n in count())


def message_calls() -> Iterator[bytes]:
    yield open_message()
    for n in count():
        yield block_start(n, {"type": "tool_use", "id": f"t{n}", "name": "read", "input": {}})
        yield sse({"type": "content_block_stop", "index": n})


def items() -> Iterator[bytes]:
    yield created()
    for n in count():
        item = {"type": "message", "id": f"msg{n}", "role": "assistant", "content": []}
        yield response_event(n + 1, "response.output_item.added", output_index=n, item=item)


def parts() -> Iterator[bytes]:
    yield created()
    item = {"type": "message", "id": "msg", "role": "assistant", "content": []}
    yield response_event(1, "response.output_item.added", output_index=0, item=item)
    for n in count():
        fields = {"item_id": "msg", "output_index": 0, "content_index": n, "delta": "x"}
        yield response_event(n + 2, "response.output_text.delta", **fields)


def large_items() -> Iterator[bytes]:
    yield created()
    for n in count():
        item = {"type": "web_search_call", "id": f"ws{n}", "action": KIB * 64}
        yield response_event(n + 1, "response.output_item.added", output_index=n, item=item)


def response_fields() -> Iterator[bytes]:
    yield created()
    for n in count(1):
        response = {"id": "resp_1", "model": "m", f"field{n}": KIB * 64}
        yield response_event(n, "response.in_progress", response=response)


def text() -> Iterator[bytes]:
    return (chat({"content": KIB}) for _ in count())


def reasoning() -> Iterator[bytes]:
    return (chat({"reasoning_content": KIB}) for _ in count())


def comments() -> Iterator[bytes]:
    yield chat({"content": "x"})
    yield from (b": " + KIB.encode() + b"\n\n" for _ in count())


def empty_chunks() -> Iterator[bytes]:
    return (chat({}) for _ in count())


def half_characters() -> Iterator[bytes]:
    return (chat({}, 0, **{f"field{n}": "x"}).replace(b'"x"', rb'"\ud83d"') for n in count())


def unknown_events() -> Iterator[bytes]:
    yield created()
    yield from (response_event(n, f"response.unknown{n}", output_index=n) for n in count(1))


HUGE = "i" * 20_000
LIMITS = Limits(held=64 * 1024, choices=16, calls=100, text=512 * 1024, stream=1024 * 1024)
STREAMS: dict[str, tuple[str, Stream, str]] = {
    "calls behind an open call": (CHAT, calls_behind_an_open_call, "limits.held"),
    "calls without name": (CHAT, calls_without_name, "limits.calls"),
    "calls in one chunk": (CHAT, calls_in_one_chunk, "limits.calls"),
    "calls in choices": (CHAT, calls_in_choices, "limits.calls"),
    "native calls": (CHAT, native_calls, "limits.calls"),
    "choices": (CHAT, choices, "limits.choices"),
    "choices in one chunk": (CHAT, choices_in_one_chunk, "limits.choices"),
    "open blocks": (MESSAGES, open_blocks, "limits.calls"),
    "calls of Messages": (MESSAGES, message_calls, "limits.calls"),
    "items": (RESPONSES, items, "limits.calls"),
    "parts": (RESPONSES, parts, "limits.calls"),
    "large items": (RESPONSES, large_items, "limits.text"),
    "text": (CHAT, text, "limits.text"),
    "reasoning": (CHAT, reasoning, "limits.text"),
    "comments": (CHAT, comments, "limits.stream"),
    "empty chunks": (CHAT, empty_chunks, "limits.stream"),
    "half characters": (CHAT, half_characters, "limits.stream"),
    "unknown events": (RESPONSES, unknown_events, "limits.stream"),
    "response fields": (RESPONSES, response_fields, "limits."),
    "id of a reply": (CHAT, lambda: iter([chat({"content": "x"}, id=HUGE)]), "limits.name"),
    "model": (CHAT, lambda: iter([chat({"content": "x"}, model=HUGE)]), "limits.name"),
    "id of a call": (CHAT, lambda: iter([chat_call(0, HUGE, "read", "{}")]), "limits.name"),
    "id of a call without a name": (CHAT, lambda: iter([chat({"tool_calls": [{"id": HUGE}]})]), "limits.name"),
    "name of a call": (CHAT, lambda: iter([chat_call(0, "c", HUGE, "{}")]), "limits.name"),
}
MAX_BYTES = 2 * LIMITS.stream


@pytest.mark.one_row_in(4)
@pytest.mark.parametrize(
    "target", [wire if wire == MESSAGES else pytest.param(wire, marks=pytest.mark.slow) for wire in WIRES]
)
@pytest.mark.parametrize("name", STREAMS)
def test_endless_stream_ends_with_an_error(name: str, target: str) -> None:
    source, stream, limit = STREAMS[name]
    dialect = "hermes" if name == "native calls" else "standard"
    translator = Translator(source, target, dialect, "m", TOOLS, Options(limits=LIMITS))
    received, output, size = 0, b"", 0
    tracemalloc.start()
    try:
        for data in stream():
            received += len(data)
            output = translator.feed(data)
            size += len(output)
            if translator.ended or received > MAX_BYTES:
                break
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    failure = translator.tally.failure
    assert failure is not None, received
    assert limit in failure.message
    assert limit in output.decode()
    assert peak < 5 * 1024 * 1024
    assert size < 5 * LIMITS.stream
    assert translator.feed(b"data: {}\n\n") == b""
    assert translator.close() == b""


@pytest.mark.parametrize("field", ["system_fingerprint", "provider"])
def test_long_field_is_not_repeated_in_every_frame(field: str) -> None:
    translator = Translator(CHAT, CHAT, "hermes", "m", TOOLS)
    sent = translator.feed(chat({"content": "<tool_call>"}, 0, **{field: HUGE}))
    for _ in range(20):
        sent += translator.feed(chat({"content": "x"}) + chat({"content": "<"}))
    assert len(sent) < 2 * len(HUGE)
    assert "over-limit" in [finding.kind for finding in translator.findings]


def test_end_of_a_complete_reply_is_kept() -> None:
    translator = Translator(CHAT, RESPONSES, "standard", "m", TOOLS, Options(limits=LIMITS))
    finish = chat({}, choices=[{"index": 0, "delta": {"content": "Hello"}, "finish_reason": "stop"}])
    sent = translator.feed(finish) + b"".join(map(translator.feed, islice(comments(), 1, 2000)))
    assert translator.ended
    assert translator.tally.failure is None
    assert b"response.completed" in sent
    assert [finding.kind for finding in translator.findings] == ["after-end"]


@pytest.mark.parametrize("target", WIRES)
def test_whole_reply_with_too_many_choices_or_calls_is_an_error(target: str) -> None:
    entry = {"type": "function", "function": {"name": "read", "arguments": "{}"}}
    message = {"role": "assistant", "content": "", "tool_calls": [{"id": f"c{n}", **entry} for n in range(2000)]}
    body = {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    assert "limits.calls" in json.dumps(translate_reply(body, CHAT, target, "standard", "m", TOOLS))
    choice = {"message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}
    body = {"choices": [{"index": n, **choice} for n in range(200)]}
    assert "limits.choices" in json.dumps(translate_reply(body, CHAT, target, "standard", "m", TOOLS))


ERROR_EVENTS: dict[str, Callable[[str], bytes]] = {
    CHAT: lambda text: chat({"content": "Hi"}) + sse({"error": {"message": text, "detail": text}}),
    MESSAGES: lambda text: (
        open_message() + sse({"type": "error", "error": {"type": "api_error", "message": text, "detail": text}})
    ),
    RESPONSES: lambda text: created() + response_event(1, "error", code=text, message=text),
}


@pytest.mark.parametrize("target", WIRES)
@pytest.mark.parametrize("source", WIRES)
def test_large_error_event_is_shortened(source: str, target: str) -> None:
    translator = Translator(source=source, target=target)
    sent = translator.feed(ERROR_EVENTS[source]("authorization: bearer x " * 4000)) + translator.close()
    assert b"authorization: bearer x authorization" in sent
    assert len(sent) < 8_000
    assert translator.tally.failure is not None
    assert len(translator.tally.failure.message) == 2001
