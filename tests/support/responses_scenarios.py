"""Responses streams as upstreams send them, and the expected client view of each."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from tests.support.chat_scenarios import KIMI, PARIS, SECTION_OF_PARIS, expected_choice
from tests.support.sdk import ChoiceView, Json

RESPONSE: Json = {"id": "resp_1", "object": "response", "created_at": 1763198400, "model": "gpt-9", "tools": [{"x": 1}]}
USAGE = {
    "input_tokens": 11,
    "input_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 0},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 2},
    "total_tokens": 16,
}
TRUNCATED_ERROR = "the upstream ended before response.completed"


@dataclass(frozen=True)
class ResponsesScenario:
    """One stream and its expected translation. `untouched`: the stream is passed through on the same wire."""

    name: str
    stream: bytes
    expected: dict[int, ChoiceView]
    findings: list[str] = field(default_factory=list)
    error: str = ""
    tools: list[Json] | None = None
    untouched: bool = False
    model: str = "gpt-9"

    def __str__(self) -> str:
        return self.name


# ── building streams ──────────────────────────────────────────────────────────────────────────────────────────────


def sse(*events: Json | str, numbered: bool = True) -> bytes:
    """Encode the events in order, with sequence numbers."""
    frames = []
    for n, event in enumerate(events):
        if isinstance(event, str):
            frames.append(f"data: {event}\n\n")
        else:
            number = {"sequence_number": n} if numbered else {}
            frames.append(f"event: {event['type']}\ndata: {json.dumps({**event, **number})}\n\n")
    return "".join(frames).encode()


def response_event(event_type: str, output: list[Json] | None = None, **fields: Any) -> Json:
    status = {"created": "in_progress"}.get(event_type, event_type)
    body = {**RESPONSE, "status": status, "error": None, "incomplete_details": None, "output": output or [], **fields}
    return {"type": f"response.{event_type}", "response": body}


def completed(*output: Json, **fields: Any) -> Json:
    return response_event("completed", list(output), **{"usage": USAGE, **fields})


def incomplete(*output: Json, reason: str | None = "max_output_tokens") -> Json:
    return response_event("incomplete", list(output), usage=USAGE, incomplete_details={"reason": reason})


def item_event(event_type: str, index: int, id: str, **fields: Any) -> Json:
    return {"type": f"response.{event_type}", "item_id": id, "output_index": index, **fields}


def output_item_event(verb: str, index: int, body: Json) -> Json:
    return {"type": f"response.output_item.{verb}", "output_index": index, "item": body}


def message_item(text: str, id: str = "msg_1", status: str = "completed", **fields: Any) -> Json:
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {"type": "message", "id": id, "role": "assistant", "content": [part], "status": status, **fields}


def call_item(args: str, id: str = "fc_1", call_id: str = "call_1", name: str = "f", **fields: Any) -> Json:
    base = {"type": "function_call", "id": id, "call_id": call_id, "name": name, "arguments": args}
    return {**base, "status": "completed", **fields}


def custom_call_item(
    text: str, id: str = "ctc_1", call_id: str = "call_1", name: str = "apply_patch", **fields: Any
) -> Json:
    return {"type": "custom_tool_call", "id": id, "call_id": call_id, "name": name, "input": text, **fields}


def reasoning_item(*texts: str, encrypted_content: str | None = None, id: str = "rs_1", **fields: Any) -> Json:
    summary = [{"type": "summary_text", "text": text} for text in texts]
    extra = {"encrypted_content": encrypted_content} if encrypted_content else {}
    return {"type": "reasoning", "id": id, "summary": summary, **extra, **fields}


def message_events(pieces: list[str], index: int = 0, id: str = "msg_1", **fields: Any) -> list[Json]:
    position: Json = {"content_index": 0}
    text = "".join(pieces)
    final_item = message_item(text, id, **fields)
    part = final_item["content"][0]
    return [
        output_item_event("added", index, {**final_item, "content": [], "status": "in_progress"}),
        item_event("content_part.added", index, id, **position, part={**part, "text": ""}),
        *(item_event("output_text.delta", index, id, **position, delta=piece, logprobs=[]) for piece in pieces),
        item_event("output_text.done", index, id, **position, text=text, logprobs=[]),
        item_event("content_part.done", index, id, **position, part=part),
        output_item_event("done", index, final_item),
    ]


def refusal_events(pieces: list[str], index: int = 0, id: str = "msg_1") -> list[Json]:
    position: Json = {"content_index": 0}
    part = {"type": "refusal", "refusal": "".join(pieces)}
    final_item = {**message_item("", id), "content": [part]}
    return [
        output_item_event("added", index, {**final_item, "content": [], "status": "in_progress"}),
        item_event("content_part.added", index, id, **position, part={**part, "refusal": ""}),
        *(item_event("refusal.delta", index, id, **position, delta=piece) for piece in pieces),
        item_event("refusal.done", index, id, **position, refusal=part["refusal"]),
        item_event("content_part.done", index, id, **position, part=part),
        output_item_event("done", index, final_item),
    ]


def call_events(pieces: list[str], index: int = 0, **fields: Any) -> list[Json]:
    final_item = call_item("".join(pieces), **fields)
    return [
        output_item_event("added", index, {**final_item, "arguments": "", "status": "in_progress"}),
        *(item_event("function_call_arguments.delta", index, final_item["id"], delta=piece) for piece in pieces),
        item_event("function_call_arguments.done", index, final_item["id"], arguments=final_item["arguments"]),
        output_item_event("done", index, final_item),
    ]


def custom_call_events(pieces: list[str], index: int = 0, **fields: Any) -> list[Json]:
    final_item = custom_call_item("".join(pieces), **fields)
    return [
        output_item_event("added", index, {**final_item, "input": ""}),
        *(item_event("custom_tool_call_input.delta", index, final_item["id"], delta=piece) for piece in pieces),
        item_event("custom_tool_call_input.done", index, final_item["id"], input=final_item["input"]),
        output_item_event("done", index, final_item),
    ]


def reasoning_events(
    texts: list[list[str]], index: int = 0, id: str = "rs_1", encrypted_content: str | None = None
) -> list[Json]:
    events = [output_item_event("added", index, reasoning_item(id=id))]
    for n, pieces in enumerate(texts):
        position, part = {"summary_index": n}, {"type": "summary_text", "text": "".join(pieces)}
        events += [
            item_event("reasoning_summary_part.added", index, id, **position, part={**part, "text": ""}),
            *(item_event("reasoning_summary_text.delta", index, id, **position, delta=piece) for piece in pieces),
            item_event("reasoning_summary_text.done", index, id, **position, text=part["text"]),
            item_event("reasoning_summary_part.done", index, id, **position, part=part),
        ]
    return [
        *events,
        output_item_event(
            "done", index, reasoning_item(*map("".join, texts), id=id, encrypted_content=encrypted_content)
        ),
    ]


def response_stream(*items: list[Json], final_event: Json | None = None) -> bytes:
    """Return a whole stream, exactly as OpenAI sends it."""
    events = [event for events in items for event in events]
    final_event = final_event or completed(*(events[-1]["item"] for events in items))
    return sse(response_event("created"), response_event("in_progress"), *events, final_event)


def without_keys(event: Json, *keys: str) -> Json:
    return {key: value for key, value in event.items() if key not in keys}


HELLO = message_events(["Hel", "lo"])
EXPECTED_HELLO = expected_choice(text="Hello", finish="stop")
NOTE = {"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 3}
ANNOTATED = message_item("Hello", content=[{**message_item("Hello")["content"][0], "annotations": [NOTE]}])
F = ("call_1", "f", '{"a": 1}')
G = ("call_2", "g", '{"b": 2}')
CALL_F = call_events(['{"a"', ": 1}"])
CALL_G = call_events(['{"b"', ": 2}"], 1, id="fc_2", call_id="call_2", name="g")
WEB = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "x"}}
SEARCH = [
    output_item_event("added", 0, {**WEB, "status": "in_progress"}),
    item_event("web_search_call.searching", 0, "ws_1"),
    output_item_event("done", 0, WEB),
]
PATCH = '*** Begin Patch\n*** Add File: a "b"\n+\\d é 😀\n*** End Patch'
CUSTOM_TOOLS = [
    {"type": "custom", "name": "apply_patch", "format": {"type": "grammar", "syntax": "lark", "definition": "x"}}
]
NAMESPACE = {
    "type": "namespace",
    "name": "mcp__docs",
    "tools": [{"type": "function", "name": "list", "parameters": {"type": "object"}}],
}

SCENARIOS = [
    ResponsesScenario("text", response_stream(HELLO), expected_choice(text="Hello", finish="stop"), untouched=True),
    ResponsesScenario("calls", response_stream(CALL_F, CALL_G), expected_choice(F, G), untouched=True),
    ResponsesScenario(
        "thinking, text and a call",
        response_stream(
            reasoning_events([["a", "b"], ["c"]], encrypted_content="ENC"),
            message_events(["x"], 1),
            call_events(['{"a": 1}'], 2),
        ),
        expected_choice(F, text="x", reasoning="ab\n\nc"),
        untouched=True,
    ),
    ResponsesScenario("nothing", response_stream(), expected_choice(finish="stop"), ["empty-turn"], untouched=True),
    ResponsesScenario(
        "refusal",
        response_stream(refusal_events(["No", "."])),
        expected_choice(refusal="No.", finish="stop"),
        untouched=True,
    ),
    ResponsesScenario(
        "length",
        response_stream(
            message_events(["Hel"], status="incomplete"),
            final_event=incomplete(message_item("Hel", status="incomplete")),
        ),
        expected_choice(text="Hel", finish="length"),
        untouched=True,
    ),
    ResponsesScenario(
        "content filter",
        response_stream(HELLO, final_event=incomplete(message_item("Hello"), reason="content_filter")),
        expected_choice(text="Hello", finish="content_filter"),
        untouched=True,
    ),
    ResponsesScenario(
        "incomplete for an unknown reason",
        response_stream(HELLO, final_event=incomplete(message_item("Hello"), reason=None)),
        expected_choice(text="Hello", finish="length"),
        findings=["unknown-finish-reason"],
    ),
    ResponsesScenario(
        "completed with the status incomplete",
        response_stream(HELLO, final_event={**incomplete(message_item("Hello")), "type": "response.completed"}),
        expected_choice(text="Hello", finish="length"),
        findings=["stop-reason"],
    ),
    ResponsesScenario(
        "length inside a call",
        sse(response_event("created"), response_event("in_progress"), *CALL_F[:2], incomplete()),
        expected_choice(("call_1", "f", '{"a"'), finish="length"),
        findings=["cut-short"],
    ),
    ResponsesScenario(
        "custom tool",
        response_stream(custom_call_events([PATCH[:20], PATCH[20:]])),
        expected_choice(("call_1", "apply_patch", PATCH)),
        tools=CUSTOM_TOOLS,
        untouched=True,
    ),
    ResponsesScenario(
        "namespace",
        response_stream(call_events(["{}"], name="list", namespace="mcp__docs")),
        expected_choice(("call_1", "list", "{}")),
        tools=[NAMESPACE],
        untouched=True,
    ),
    ResponsesScenario(
        "an item of another kind",
        response_stream(SEARCH, message_events(["Hello"], 1)),
        expected_choice(text="Hello", finish="stop"),
        findings=["not-translated"],
        untouched=True,
    ),
    ResponsesScenario(
        "annotations",
        response_stream(
            [
                *HELLO[:3],
                item_event(
                    "output_text.annotation.added", 0, "msg_1", content_index=0, annotation_index=0, annotation=NOTE
                ),
                *HELLO[3:5],
                {**HELLO[5], "part": {**HELLO[5]["part"], "annotations": [NOTE]}},
                output_item_event("done", 0, ANNOTATED),
            ],
            final_event=completed(ANNOTATED),
        ),
        EXPECTED_HELLO,
        findings=["not-translated"],
        untouched=True,
    ),
    # ── deviations from the protocol ──────────────────────────────────────────────────────────────────────────────
    ResponsesScenario(
        "only whole items",
        sse(
            response_event("created"),
            output_item_event("done", 0, message_item("Hello")),
            output_item_event("done", 1, call_item('{"a": 1}')),
            completed(),
        ),
        expected_choice(F, text="Hello"),
    ),
    ResponsesScenario(
        "only the last event",
        sse(
            response_event("created"),
            completed(reasoning_item("ab", encrypted_content="ENC"), message_item("Hello"), call_item('{"a": 1}')),
        ),
        expected_choice(F, text="Hello", reasoning="ab"),
    ),
    ResponsesScenario(
        "arguments only at the end",
        response_stream([CALL_F[0], *CALL_F[-2:]]),
        expected_choice(F),
    ),
    ResponsesScenario("arguments only in the item", response_stream([CALL_F[0], CALL_F[-1]]), expected_choice(F)),
    ResponsesScenario("no arguments", response_stream(call_events([])), expected_choice(("call_1", "f", "{}"))),
    ResponsesScenario(
        "arguments as a value",
        response_stream([CALL_F[0], output_item_event("done", 0, {**call_item(""), "arguments": {"a": 1}})]),
        expected_choice(("call_1", "f", '{"a":1}')),
        findings=["arguments-as-value"],
    ),
    ResponsesScenario(
        "more after the arguments",
        response_stream(
            [CALL_F[0], item_event("function_call_arguments.delta", 0, "fc_1", delta='{"a": 1}}'), *CALL_F[-2:]]
        ),
        expected_choice(F),
        findings=["after-arguments"],
    ),
    ResponsesScenario(
        "no ids, no indexes, no numbers",
        sse(
            response_event("created"),
            *(without_keys(event, "item_id", "output_index") for event in HELLO[:-1]),
            {"type": "response.output_item.done", "item": without_keys(message_item("Hello"), "id")},
            {"type": "response.output_item.done", "item": without_keys(call_item('{"a": 1}'), "id", "status")},
            completed(),
            numbered=False,
        ),
        expected_choice(F, text="Hello"),
    ),
    ResponsesScenario(
        "another id with every event",
        response_stream(
            [{**event, "item_id": f"x{n}"} if "item_id" in event else event for n, event in enumerate(HELLO)]
        ),
        expected_choice(text="Hello", finish="stop"),
    ),
    ResponsesScenario(
        "no call_id",
        response_stream(
            [CALL_F[0], output_item_event("done", 0, without_keys(call_item('{"a": 1}', id="call_1"), "call_id"))]
        )
        .replace(b'"call_id": "call_1", ', b"")
        .replace(b"fc_1", b"call_1"),
        expected_choice(F),
        findings=["no-id"],
    ),
    ResponsesScenario(
        "interleaved",
        sse(
            response_event("created"),
            response_event("in_progress"),
            CALL_F[0],
            CALL_G[0],
            CALL_G[1],
            CALL_F[1],
            CALL_F[2],
            *CALL_G[2:],
            *CALL_F[3:],
            completed(call_item('{"a": 1}'), CALL_G[-1]["item"]),
        ),
        expected_choice(F, G),
    ),
    ResponsesScenario(
        "text without its part",
        response_stream([HELLO[0], *HELLO[2:]]),
        expected_choice(text="Hello", finish="stop"),
    ),
    ResponsesScenario(
        "items without output_item.added",
        response_stream(HELLO[2:]),
        expected_choice(text="Hello", finish="stop"),
    ),
    ResponsesScenario(
        "an item that is not done",
        sse(response_event("created"), response_event("in_progress"), *HELLO[:-1], completed(message_item("Hello"))),
        expected_choice(text="Hello", finish="stop"),
    ),
    ResponsesScenario(
        "reasoning text without a summary",
        response_stream(
            [
                output_item_event("added", 0, reasoning_item()),
                item_event("reasoning_text.delta", 0, "rs_1", content_index=0, delta="ab"),
                item_event("reasoning_text.done", 0, "rs_1", content_index=0, text="ab"),
                output_item_event("done", 0, reasoning_item(content=[{"type": "reasoning_text", "text": "ab"}])),
            ],
            message_events(["x"], 1),
        ),
        expected_choice(text="x", reasoning="ab", finish="stop"),
        untouched=True,
    ),
    ResponsesScenario(
        "[DONE] at the end", response_stream(HELLO) + b"data: [DONE]\n\n", expected_choice(text="Hello", finish="stop")
    ),
    ResponsesScenario(
        "[DONE] and no last event",
        sse(response_event("created"), response_event("in_progress"), *HELLO, "[DONE]"),
        expected_choice(text="Hello", finish="stop"),
        findings=["no-finish-reason"],
    ),
    ResponsesScenario(
        "native text",
        response_stream(message_events(["Look. ", SECTION_OF_PARIS[:40], SECTION_OF_PARIS[40:]])),
        expected_choice(PARIS, text="Look. "),
        model=KIMI,
        findings=["stop-reason"],
    ),
    ResponsesScenario(
        "native text among other items",
        response_stream(
            SEARCH,
            message_events(["<", "b>", SECTION_OF_PARIS], 1, phase="commentary"),
            message_events(["y"], 2, "msg_2"),
        ),
        expected_choice(PARIS, text="<b>y"),
        model=KIMI,
        findings=["not-translated", "stop-reason"],
    ),
    # ── items with inconsistent or missing events ─────────────────────────────────────────────────────────────────────
    ResponsesScenario(
        "arguments only in the last event",
        response_stream([CALL_F[0]], final_event=completed(call_item('{"a": 1}'))),
        expected_choice(F),
    ),
    ResponsesScenario(
        "text only in the last event",
        response_stream(HELLO[:2], final_event=completed(message_item("Hello"))),
        EXPECTED_HELLO,
    ),
    ResponsesScenario(
        "arguments only when added",
        response_stream([output_item_event("added", 0, call_item('{"a": 1}'))], final_event=completed()),
        expected_choice(F),
    ),
    ResponsesScenario(
        "arguments when added, and deltas",
        response_stream([output_item_event("added", 0, call_item('{"a": 1}')), *CALL_F[1:]]),
        expected_choice(F),
    ),
    ResponsesScenario(
        "text only when added",
        response_stream([output_item_event("added", 0, message_item("Hello"))], final_event=completed()),
        EXPECTED_HELLO,
    ),
    ResponsesScenario("fewer deltas than text", response_stream([*HELLO[:3], *HELLO[4:]]), EXPECTED_HELLO),
    ResponsesScenario("fewer deltas than text, done", response_stream([*HELLO[:3], HELLO[-1]]), EXPECTED_HELLO),
    ResponsesScenario("fewer deltas than arguments", response_stream([*CALL_F[:2], *CALL_F[3:]]), expected_choice(F)),
    ResponsesScenario(
        "fewer deltas than arguments, last",
        response_stream(CALL_F[:2], final_event=completed(call_item('{"a": 1}'))),
        expected_choice(F),
    ),
    ResponsesScenario(
        "other text than in the deltas",
        response_stream([*HELLO[:4], output_item_event("done", 0, message_item("Bye"))]),
        EXPECTED_HELLO,
        ["changed-text"],
    ),
    ResponsesScenario(
        "a name in arguments.done",
        response_stream([{**CALL_F[-2], "name": "f", "call_id": "call_1"}], final_event=completed()),
        expected_choice(F),
    ),
    ResponsesScenario(
        "a name in arguments.done, no id",
        response_stream([{**CALL_F[-2], "name": "f"}], final_event=completed()),
        expected_choice(("fc_1", *F[1:])),
        ["no-id"],
    ),
    ResponsesScenario(
        "a name in the last event",
        response_stream(CALL_F[1:3], final_event=completed(call_item('{"a": 1}'))),
        expected_choice(F),
    ),
    ResponsesScenario(
        "no name at all",
        response_stream(CALL_F[1:3], final_event=completed()),
        expected_choice(text='{"a": 1}', finish="stop"),
        ["call-without-name"],
    ),
    ResponsesScenario(
        "done twice",
        response_stream(CALL_F, [CALL_F[-1]], final_event=completed(call_item('{"a": 1}'))),
        expected_choice(F),
        ["repeated-item"],
    ),
    ResponsesScenario("added twice", response_stream([CALL_F[0], *CALL_F]), expected_choice(F), ["repeated-item"]),
    ResponsesScenario(
        "text done twice",
        response_stream(HELLO, [HELLO[-1]], final_event=completed(message_item("Hello"))),
        EXPECTED_HELLO,
        ["repeated-item"],
    ),
    ResponsesScenario(
        "arguments after the end",
        response_stream(CALL_F, [CALL_F[1]], final_event=completed(call_item('{"a": 1}'))),
        expected_choice(F),
        ["no-such-call"],
    ),
    ResponsesScenario(
        "items without ids, and again in the last event",
        sse(
            response_event("created"),
            {"type": "response.output_item.done", "item": without_keys(message_item("Hello"), "id")},
            completed(without_keys(message_item("Hello"), "id")),
        ),
        EXPECTED_HELLO,
    ),
    ResponsesScenario(
        "no start",
        sse(response_event("in_progress"), *HELLO, completed(message_item("Hello"))),
        EXPECTED_HELLO,
        ["no-message-start"],
    ),
    ResponsesScenario(
        "no start, and no id", sse(*HELLO, completed(message_item("Hello"))), EXPECTED_HELLO, ["no-message-start"]
    ),
    ResponsesScenario(
        "a gap between indexes",
        response_stream(HELLO, call_events(['{"a": 1}'], 4)),
        expected_choice(F, text="Hello"),
        ["renumbered"],
    ),
    ResponsesScenario(
        "a call that is added without its name",
        response_stream([output_item_event("added", 0, without_keys(call_item(""), "name")), *CALL_F[1:]]),
        expected_choice(F),
    ),
    ResponsesScenario(
        "a call that has no name until [DONE]",
        sse(response_event("created"), output_item_event("added", 0, without_keys(call_item(""), "name")), "[DONE]"),
        expected_choice(finish="stop"),
        ["call-without-name", "no-finish-reason", "empty-turn"],
    ),
    # ── failures ──────────────────────────────────────────────────────────────────────────────────────────────────
    ResponsesScenario(
        "broken off",
        sse(response_event("created"), response_event("in_progress"), *HELLO[:3]),
        {},
        error=TRUNCATED_ERROR,
    ),
    ResponsesScenario(
        "broken off after a call",
        sse(response_event("created"), response_event("in_progress"), *CALL_F),
        {},
        error=TRUNCATED_ERROR,
    ),
    ResponsesScenario(
        "failed",
        response_stream(
            HELLO,
            final_event=response_event("failed", error={"code": "rate_limit_exceeded", "message": "try again in 2s"}),
        ),
        {},
        error="try again in 2s",
    ),
    ResponsesScenario(
        "error",
        response_stream(HELLO, final_event={"type": "error", "code": "server_error", "message": "boom", "param": None}),
        {},
        error="boom",
    ),
    ResponsesScenario(
        "completed with the status failed",
        response_stream(
            HELLO, final_event=completed(message_item("Hello"), status="failed", error={"code": "x", "message": "boom"})
        ),
        {},
        error="boom",
    ),
    ResponsesScenario(
        "completed with the status cancelled",
        response_stream(HELLO, final_event=completed(message_item("Hello"), status="cancelled")),
        {},
        error="the response was cancelled",
    ),
    ResponsesScenario(
        "error inside", sse({"type": "error", "error": {"message": "boom", "code": "x"}}), {}, error="boom"
    ),
    ResponsesScenario(
        "error of another wire", sse(response_event("created")) + b'data: {"error":"boom"}\n\n', {}, error="boom"
    ),
]
