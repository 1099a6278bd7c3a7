"""Replies of any size on each wire, one kind for each list or text that a reply can have, for tests of growth."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeAlias

import msgspec

from interlingua.client import Accumulator
from interlingua.core.options import Options
from interlingua.core.tools import Tool, ToolsLike
from interlingua.translation.translator import Translator
from tests.support.growth import GrowthCase
from tests.support.request_forms import CHAT, MESSAGES, RESPONSES

__all__ = ["BODY_CASES", "STREAM_CASES"]

Json: TypeAlias = dict[str, Any]
ALL_WIRES = (CHAT, MESSAGES, RESPONSES)


class Reply(msgspec.Struct, frozen=True):
    """The events of a stream, or one whole body, and what was offered in the request."""

    chunks: list[Json]
    tools: ToolsLike = None
    options: Options = Options()
    piece_bytes: int = 0
    """Size of the pieces that arrive; 0: one event at a time."""

    junk_events: int = 0
    """Number of events at the end that are not JSON objects."""

    @property
    def pieces(self) -> list[bytes]:
        events = [*map(_encode_event, self.chunks), *[b"data: junk\n\n"] * self.junk_events]
        if not self.piece_bytes:
            return events
        data = b"".join(events)
        return [data[at : at + self.piece_bytes] for at in range(0, len(data), self.piece_bytes)]


def _encode_event(chunk: Json) -> bytes:
    name = f"event: {chunk['type']}\n".encode() if isinstance(chunk.get("type"), str) else b""
    return b"%bdata: %b\n\n" % (name, msgspec.json.encode(chunk))


# ── chat completions ──────────────────────────────────────────────────────────────────────────────────────────────────


def _chat_choice(delta: Json, index: int = 0, finish: str | None = None) -> Json:
    return {"index": index, "delta": delta, "finish_reason": finish}


def _chat(*choices: Json) -> Json:
    return {"id": "r", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": list(choices)}


def _chat_call(index: int | None, id: str | None, name: str | None, arguments: str = "{}") -> Json:
    function = ({"name": name} if name else {}) | {"arguments": arguments}
    position = {} if index is None else {"index": index}
    identity = {"id": id, "type": "function"} if id else {}
    return {**position, **identity, "function": function}


def _chat_calls(calls: Iterable[Json], tools: ToolsLike = None, *, in_one_event: bool = False) -> Reply:
    entries = list(calls)
    groups = [entries] if in_one_event else [[entry] for entry in entries]
    events = [_chat(_chat_choice({"tool_calls": group})) for group in groups]
    return Reply([*events, _chat(_chat_choice({}, finish="tool_calls"))], tools)


def _chat_text(n: int, delta: Json, **fields: Any) -> Reply:
    events = [_chat(_chat_choice(delta)) for _ in range(n)]
    return Reply([*events, _chat(_chat_choice({}, finish="stop"))], **fields)


def _interleaved(n: int) -> Iterable[Json]:
    yield from (_chat_call(k, f"c{k}", "f", "") for k in range(n))
    yield from (_chat_call(k, None, None, "{}") for k in range(n))


def _offered(n: int) -> list[Tool]:
    return [Tool(f"tool_{k}", {"properties": {f"p{k}": {}}, "required": [f"p{k}"]}) for k in range(n)]


def _stopped_choices(n: int) -> list[Json]:
    return [_chat_choice({"content": "x"}, k, "stop") for k in range(n)]


PATCH = Tool("patch", {"type": "object", "properties": {"input": {"type": "string"}}}, kind="custom")


def _custom_input(n: int, before: str, piece: str, after: str) -> Reply:
    """A call of a custom tool whose arguments arrive in many pieces."""
    texts = [before, *[piece] * n, after]
    entries = [_chat_call(0, "a", "patch", ""), *(_chat_call(0, None, None, text) for text in texts)]
    return _chat_calls(entries, [PATCH])


CHAT_STREAMS: dict[str, Callable[[int], Reply]] = {
    "choices in one event": lambda n: Reply([_chat(*_stopped_choices(n))]),
    "choices in many events": lambda n: Reply([_chat(choice) for choice in _stopped_choices(n)]),
    "choices, and ids of earlier calls": lambda n: Reply(
        [_chat(*_stopped_choices(n))], options=Options(taken_ids=tuple(f"c{k}" for k in range(n)))
    ),
    "choices, and unknown fields": lambda n: Reply(
        [_chat(*(choice | {"unknown": k} for k, choice in enumerate(_stopped_choices(n))))]
    ),
    "choices that are rewritten": lambda n: Reply(
        [_chat(*(choice | {"finish_reason": "end_turn"} for choice in _stopped_choices(n)))]
    ),
    "choices, and errors after them": lambda n: Reply(
        [_chat(*_stopped_choices(n)), *[{"error": {"message": "late"}}] * n]
    ),
    "choices, and events that are not JSON objects": lambda n: Reply(
        [_chat(*(_chat_choice({"content": "x"}, k) for k in range(n)))], junk_events=n
    ),
    "calls in one event": lambda n: _chat_calls((_chat_call(k, f"c{k}", "f") for k in range(n)), in_one_event=True),
    "calls in many events": lambda n: _chat_calls(_chat_call(k, f"c{k}", "f") for k in range(n)),
    "calls without index": lambda n: _chat_calls(_chat_call(None, f"c{k}", "f") for k in range(n)),
    "calls on one index": lambda n: _chat_calls(_chat_call(0, f"c{k}", "f") for k in range(n)),
    "calls of equal ids": lambda n: _chat_calls(_chat_call(k, "a", "f") for k in range(n)),
    "calls without ids": lambda n: _chat_calls(_chat_call(k, None, "f") for k in range(n)),
    "calls without names": lambda n: _chat_calls(_chat_call(k, f"c{k}", None) for k in range(n)),
    "open calls": lambda n: _chat_calls(_interleaved(n)),
    "calls of unknown tools": lambda n: _chat_calls((_chat_call(k, f"c{k}", f"x{k}") for k in range(n)), _offered(n)),
    "calls of tools in other case": lambda n: _chat_calls(
        (_chat_call(k, f"c{k}", f"TOOL_{k}") for k in range(n)), _offered(n)
    ),
    "text": lambda n: _chat_text(n, {"content": "some text"}),
    "text byte by byte": lambda n: _chat_text(n // 64 + 1, {"content": "some text"}, piece_bytes=1),
    "reasoning": lambda n: _chat_text(n, {"reasoning_content": "some text"}),
    "reasoning details": lambda n: _chat_text(
        1, {"reasoning_details": [{"type": "reasoning.text", "text": "x", "signature": "s"}] * n}
    ),
    "signed reasoning": lambda n: _chat_text(
        n, {"reasoning_details": [{"type": "reasoning.text", "text": "x", "signature": "s"}]}
    ),
    "content parts": lambda n: _chat_text(1, {"content": [{"type": "text", "text": "x"}] * n}),
    "events without content": lambda n: _chat_text(n, {}),
    "input of a custom tool": lambda n: _custom_input(n, '{"input": "', "some text", '"}'),
    "arguments after the input of a custom tool": lambda n: _custom_input(n, '{"input": "x", "y": "', "text", '"}'),
    "blanks in the input of a custom tool": lambda n: _custom_input(1, '{"input": "', " " * n, '"}'),
    "fences around the input of a custom tool": lambda n: _custom_input(
        1, '{"input": "', "```\\n" * n + "x" + "\\n```" * n, '"}'
    ),
}


# ── Messages ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _messages(blocks: Iterable[Json]) -> Reply:
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "r", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
    return Reply(
        [
            {"type": "message_start", "message": message},
            *blocks,
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage},
            {"type": "message_stop"},
        ]
    )


def _start(index: int, block: Json) -> Json:
    return {"type": "content_block_start", "index": index, "content_block": block}


def _stop(index: int) -> Json:
    return {"type": "content_block_stop", "index": index}


def _delta(index: int | None, delta: Json) -> Json:
    return {"type": "content_block_delta", "index": index, "delta": delta}


def _text_block(k: int) -> list[Json]:
    return [_start(k, {"type": "text", "text": ""}), _delta(k, {"type": "text_delta", "text": "x"}), _stop(k)]


def _thinking_block(k: int) -> list[Json]:
    return [
        _start(k, {"type": "thinking", "thinking": "", "signature": ""}),
        _delta(k, {"type": "thinking_delta", "thinking": "x"}),
        _delta(k, {"type": "signature_delta", "signature": "s"}),
        _stop(k),
    ]


def _tool_start(k: int) -> Json:
    return _start(k, {"type": "tool_use", "id": f"c{k}", "name": "f", "input": {}})


def _tool_block(k: int) -> list[Json]:
    return [_tool_start(k), _delta(k, {"type": "input_json_delta", "partial_json": "{}"}), _stop(k)]


def _blocks(make: Callable[[int], list[Json]]) -> Callable[[int], Reply]:
    return lambda n: _messages(event for k in range(n) for event in make(k))


MESSAGES_STREAMS: dict[str, Callable[[int], Reply]] = {
    "text blocks": _blocks(_text_block),
    "thinking blocks": _blocks(_thinking_block),
    "calls": _blocks(_tool_block),
    "unknown blocks": _blocks(lambda k: [_start(k, {"type": "server_tool_use", "id": f"s{k}"}), _stop(k)]),
    "open calls": lambda n: _messages(
        [
            *(_tool_start(k) for k in range(n)),
            *(_delta(k, {"type": "input_json_delta", "partial_json": "{}"}) for k in range(n)),
        ]
    ),
    "open calls, and arguments without index": lambda n: _messages(
        [
            *(_tool_start(k) for k in range(n)),
            *(_delta(None, {"type": "input_json_delta", "partial_json": "{}"}) for _ in range(n)),
        ]
    ),
    "text deltas": lambda n: _messages(
        [
            _start(0, {"type": "text", "text": ""}),
            *(_delta(0, {"type": "text_delta", "text": "some text"}) for _ in range(n)),
            _stop(0),
        ]
    ),
    "arguments after those of the start": lambda n: _messages(
        [
            _start(0, {"type": "tool_use", "id": "c", "name": "f", "input": {"a": 1}}),
            _delta(0, {"type": "input_json_delta", "partial_json": '{"a": "'}),
            *(_delta(0, {"type": "input_json_delta", "partial_json": "text"}) for _ in range(n)),
            _delta(0, {"type": "input_json_delta", "partial_json": '"}'}),
            _stop(0),
        ]
    ),
}


# ── Responses ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _responses(events: Iterable[Json], output: list[Json] | None = None) -> Reply:
    response = {"id": "resp_r", "object": "response", "created_at": 1, "model": "m", "status": "in_progress"}
    final = {**response, "status": "completed", **({} if output is None else {"output": output})}
    chunks = [
        {"type": "response.created", "response": response | {"output": []}},
        *events,
        {"type": "response.completed", "response": final},
    ]
    return Reply([chunk | {"sequence_number": number} for number, chunk in enumerate(chunks)])


def _call_item(k: int, arguments: str = "{}") -> Json:
    return {"type": "function_call", "id": f"fc_{k}", "call_id": f"c{k}", "name": "f", "arguments": arguments}


def _message_item(k: int) -> Json:
    content = [{"type": "output_text", "text": "x", "annotations": []}]
    return {"type": "message", "id": f"msg_{k}", "role": "assistant", "content": content}


def _added(k: int | None, item: Json) -> Json:
    return {"type": "response.output_item.added", "output_index": k, "item": item}


def _done(k: int | None, item: Json) -> Json:
    return {"type": "response.output_item.done", "output_index": k, "item": item}


def _arguments(k: int | None, item_id: str | None, delta: str) -> Json:
    event = {"type": "response.function_call_arguments.delta", "item_id": item_id, "output_index": k, "delta": delta}
    return {key: value for key, value in event.items() if value is not None}


def _item_events(make: Callable[[int], list[Json]]) -> Callable[[int], Reply]:
    return lambda n: _responses(event for k in range(n) for event in make(k))


def _nameless(n: int) -> list[Json]:
    item = {"type": "function_call", "id": "fc", "call_id": "c", "arguments": ""}
    return [_added(0, item), *(_arguments(0, "fc", "some text") for _ in range(n)), _done(0, item)]


def _summary_parts(n: int) -> list[Json]:
    item = {"type": "reasoning", "id": "rs", "summary": []}
    part = {"type": "summary_text", "text": ""}
    place = {"item_id": "rs", "output_index": 0}
    empty = [
        {"type": "response.reasoning_summary_part.added", **place, "summary_index": k, "part": part} for k in range(n)
    ]
    deltas = [
        {"type": "response.reasoning_summary_text.delta", **place, "summary_index": n + k, "delta": "x"}
        for k in range(n)
    ]
    return [_added(0, item), *empty, *deltas, _done(0, item)]


RESPONSES_STREAMS: dict[str, Callable[[int], Reply]] = {
    "calls": _item_events(
        lambda k: [_added(k, _call_item(k, "")), _arguments(k, f"fc_{k}", "{}"), _done(k, _call_item(k))]
    ),
    "messages": _item_events(lambda k: [_added(k, _message_item(k) | {"content": []}), _done(k, _message_item(k))]),
    "unknown items": _item_events(lambda k: [_added(k, {"type": "web_search_call", "id": f"ws_{k}"})]),
    "open calls": lambda n: _responses(
        [*(_added(k, _call_item(k, "")) for k in range(n)), *(_arguments(k, f"fc_{k}", "{}") for k in range(n))]
    ),
    "calls without index and ids": lambda n: _responses(
        [
            _added(None, {"type": "function_call", "name": "f"}),
            _arguments(None, None, "{}"),
            _done(None, {"type": "function_call", "name": "f", "arguments": "{}"}),
        ]
        * n
    ),
    "arguments without index after finished calls": lambda n: _responses(
        [
            *(_done(k, _call_item(k)) for k in range(n)),
            *(_arguments(None, None, "") for _ in range(n)),
        ]
    ),
    "items in the last event only": lambda n: _responses([], [_call_item(k) for k in range(n)]),
    "arguments of a call without a name": lambda n: _responses(_nameless(n)),
    "parts of reasoning": lambda n: _responses(_summary_parts(n)),
}


# ── whole bodies ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _chat_body(choices: Iterable[Json]) -> Reply:
    return Reply([{"id": "r", "object": "chat.completion", "created": 1, "model": "kimi-k2", "choices": list(choices)}])


def _body_choice(index: int = 0, **message: Any) -> Json:
    return {
        "index": index,
        "message": {"role": "assistant", "content": "x", **message},
        "finish_reason": "tool_calls",
    }


def _messages_body(blocks: Iterable[Json]) -> Reply:
    fields = {"id": "r", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn"}
    usage = {"input_tokens": 1, "output_tokens": 1}
    return Reply([{**fields, "stop_sequence": None, "usage": usage, "content": list(blocks)}])


def _responses_body(items: Iterable[Json]) -> Reply:
    return Reply(
        [
            {"id": "resp_r", "object": "response", "created_at": 1, "model": "m", "status": "completed"}
            | {"output": list(items)}
        ]
    )


def _calls(n: int) -> list[Json]:
    return [{"id": f"c{k}", "type": "function", "function": {"name": "f", "arguments": "{}"}} for k in range(n)]


BODIES: dict[str, dict[str, Callable[[int], Reply]]] = {
    CHAT: {
        "choices": lambda n: _chat_body(_body_choice(k) for k in range(n)),
        "choices with calls": lambda n: _chat_body(_body_choice(k, tool_calls=_calls(1)) for k in range(n)),
        "calls": lambda n: _chat_body([_body_choice(tool_calls=_calls(n))]),
        "calls of equal ids": lambda n: _chat_body([_body_choice(tool_calls=_calls(1) * n)]),
    },
    MESSAGES: {
        "text blocks": lambda n: _messages_body({"type": "text", "text": "x"} for _ in range(n)),
        "calls": lambda n: _messages_body(
            {"type": "tool_use", "id": f"c{k}", "name": "f", "input": {"a": k}} for k in range(n)
        ),
        "calls of equal ids": lambda n: _messages_body(
            {"type": "tool_use", "id": "c", "name": "f", "input": {"a": k}} for k in range(n)
        ),
        "thinking blocks": lambda n: _messages_body(
            {"type": "thinking", "thinking": "x", "signature": "s"} for _ in range(n)
        ),
    },
    RESPONSES: {
        "calls": lambda n: _responses_body(map(_call_item, range(n))),
        "calls of equal ids": lambda n: _responses_body(_call_item(0) for _ in range(n)),
        "messages": lambda n: _responses_body(map(_message_item, range(n))),
        "unknown items between calls": lambda n: _responses_body(
            item for k in range(n // 2) for item in ({"type": "web_search_call", "id": f"ws_{k}"}, _call_item(k % 2))
        ),
    },
}


# ── cases ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _prepare(make: Callable[[int], Reply], n: int) -> tuple[Reply, list[bytes]]:
    reply = make(n)
    return reply, reply.pieces


def _translate(prepared: tuple[Reply, list[bytes]], source: str, target: str) -> None:
    reply, pieces = prepared
    translator = Translator(source, target, "standard", tools=reply.tools, options=reply.options)
    for piece in pieces:
        translator.feed(piece)
    translator.close()


def _fold(prepared: tuple[Reply, list[bytes]], source: str, target: str) -> None:
    reply, pieces = prepared
    Translator(source, target, "standard", tools=reply.tools, options=reply.options).fold(b"".join(pieces))


def _accumulate(prepared: tuple[Reply, list[bytes]], source: str) -> None:
    reply, pieces = prepared
    accumulator = Accumulator(source, dialect="standard", tools=reply.tools)
    for piece in pieces:
        accumulator.add(piece)
    accumulator.close()
    accumulator.reply()


def _translate_body(reply: Reply, source: str, target: str) -> None:
    [body] = reply.chunks
    Translator(source, target, tools=reply.tools, options=reply.options).reply(body)
    Translator(source, target, tools=reply.tools, options=reply.options).stream(body)


def _stream_cases() -> Iterable[GrowthCase]:
    streams = {CHAT: CHAT_STREAMS, MESSAGES: MESSAGES_STREAMS, RESPONSES: RESPONSES_STREAMS}
    for source, kinds in streams.items():
        for kind, make_reply in kinds.items():
            make = partial(_prepare, make_reply)
            for target in ALL_WIRES:
                run = partial(_translate, source=source, target=target)
                yield GrowthCase(f"{kind}, {source} to {target}", make, run)
                fold = partial(_fold, source=source, target=target)
                yield GrowthCase(f"{kind}, {source} to {target}, whole", make, fold)
            yield GrowthCase(f"{kind}, {source}, accumulator", make, partial(_accumulate, source=source))


STREAM_CASES = list(_stream_cases())
"""Each kind of stream for each client, streamed and whole, and for the accumulator."""
BODY_CASES = [
    GrowthCase(f"{kind}, body of {source} to {target}", make, partial(_translate_body, source=source, target=target))
    for source, kinds in BODIES.items()
    for kind, make in kinds.items()
    for target in ALL_WIRES
]
"""Each kind of whole reply for each client, whole and as a stream."""
