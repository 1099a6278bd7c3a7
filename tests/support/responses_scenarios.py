"""Streams of responses as upstreams send them, and what a client must understand of each."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from tests.support.chat_scenarios import KIMI, PARIS, SECTION_OF_PARIS, calls
from tests.support.sdk import Json, Said

RESPONSE: Json = {"id": "resp_1", "object": "response", "created_at": 1763198400, "model": "gpt-9", "tools": [{"x": 1}]}
USAGE = {
    "input_tokens": 11,
    "input_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 0},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 2},
    "total_tokens": 16,
}
BUG = "the upstream ended before response.completed"


@dataclass(frozen=True)
class Scenario:
    """`untouched`: what goes out is what came in, for a client of this wire."""

    name: str
    stream: bytes
    said: dict[int, Said]
    findings: list[str] = field(default_factory=list)
    error: str = ""
    tools: list[Json] | None = None
    untouched: bool = False
    model: str = "gpt-9"

    def __str__(self) -> str:
        return self.name


# ── how streams are written down ──────────────────────────────────────────────────────────────────────────────────


def sse(*events: Json | str, numbered: bool = True) -> bytes:
    """Events in their order, each with its number."""
    told = []
    for n, event in enumerate(events):
        if isinstance(event, str):
            told.append(f"data: {event}\n\n")
        else:
            number = {"sequence_number": n} if numbered else {}
            told.append(f"event: {event['type']}\ndata: {json.dumps({**event, **number})}\n\n")
    return "".join(told).encode()


def response(kind: str, output: list[Json] | None = None, **fields: Any) -> Json:
    status = {"created": "in_progress"}.get(kind, kind)
    body = {**RESPONSE, "status": status, "error": None, "incomplete_details": None, "output": output or [], **fields}
    return {"type": f"response.{kind}", "response": body}


def completed(*output: Json, **fields: Any) -> Json:
    return response("completed", list(output), **{"usage": USAGE, **fields})


def cut(*output: Json, reason: str | None = "max_output_tokens") -> Json:
    return response("incomplete", list(output), usage=USAGE, incomplete_details={"reason": reason})


def event(kind: str, index: int, id: str, **fields: Any) -> Json:
    return {"type": f"response.{kind}", "item_id": id, "output_index": index, **fields}


def item(verb: str, index: int, body: Json) -> Json:
    return {"type": f"response.output_item.{verb}", "output_index": index, "item": body}


def message(text: str, id: str = "msg_1", status: str = "completed", **fields: Any) -> Json:
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {"type": "message", "id": id, "role": "assistant", "content": [part], "status": status, **fields}


def call(args: str, id: str = "fc_1", call_id: str = "call_1", name: str = "f", **fields: Any) -> Json:
    base = {"type": "function_call", "id": id, "call_id": call_id, "name": name, "arguments": args}
    return {**base, "status": "completed", **fields}


def custom(text: str, id: str = "ctc_1", call_id: str = "call_1", name: str = "apply_patch", **fields: Any) -> Json:
    return {"type": "custom_tool_call", "id": id, "call_id": call_id, "name": name, "input": text, **fields}


def thought(*texts: str, sealed: str | None = None, id: str = "rs_1", **fields: Any) -> Json:
    summary = [{"type": "summary_text", "text": text} for text in texts]
    extra = {"encrypted_content": sealed} if sealed else {}
    return {"type": "reasoning", "id": id, "summary": summary, **extra, **fields}


def told_message(pieces: list[str], index: int = 0, id: str = "msg_1", **fields: Any) -> list[Json]:
    at: Json = {"content_index": 0}
    text = "".join(pieces)
    whole = message(text, id, **fields)
    part = whole["content"][0]
    return [
        item("added", index, {**whole, "content": [], "status": "in_progress"}),
        event("content_part.added", index, id, **at, part={**part, "text": ""}),
        *(event("output_text.delta", index, id, **at, delta=piece, logprobs=[]) for piece in pieces),
        event("output_text.done", index, id, **at, text=text, logprobs=[]),
        event("content_part.done", index, id, **at, part=part),
        item("done", index, whole),
    ]


def told_refusal(pieces: list[str], index: int = 0, id: str = "msg_1") -> list[Json]:
    at: Json = {"content_index": 0}
    part = {"type": "refusal", "refusal": "".join(pieces)}
    whole = {**message("", id), "content": [part]}
    return [
        item("added", index, {**whole, "content": [], "status": "in_progress"}),
        event("content_part.added", index, id, **at, part={**part, "refusal": ""}),
        *(event("refusal.delta", index, id, **at, delta=piece) for piece in pieces),
        event("refusal.done", index, id, **at, refusal=part["refusal"]),
        event("content_part.done", index, id, **at, part=part),
        item("done", index, whole),
    ]


def told_call(pieces: list[str], index: int = 0, **fields: Any) -> list[Json]:
    whole = call("".join(pieces), **fields)
    return [
        item("added", index, {**whole, "arguments": "", "status": "in_progress"}),
        *(event("function_call_arguments.delta", index, whole["id"], delta=piece) for piece in pieces),
        event("function_call_arguments.done", index, whole["id"], arguments=whole["arguments"]),
        item("done", index, whole),
    ]


def told_custom(pieces: list[str], index: int = 0, **fields: Any) -> list[Json]:
    whole = custom("".join(pieces), **fields)
    return [
        item("added", index, {**whole, "input": ""}),
        *(event("custom_tool_call_input.delta", index, whole["id"], delta=piece) for piece in pieces),
        event("custom_tool_call_input.done", index, whole["id"], input=whole["input"]),
        item("done", index, whole),
    ]


def told_thought(texts: list[list[str]], index: int = 0, id: str = "rs_1", sealed: str | None = None) -> list[Json]:
    told = [item("added", index, thought(id=id))]
    for n, pieces in enumerate(texts):
        at, part = {"summary_index": n}, {"type": "summary_text", "text": "".join(pieces)}
        told += [
            event("reasoning_summary_part.added", index, id, **at, part={**part, "text": ""}),
            *(event("reasoning_summary_text.delta", index, id, **at, delta=piece) for piece in pieces),
            event("reasoning_summary_text.done", index, id, **at, text=part["text"]),
            event("reasoning_summary_part.done", index, id, **at, part=part),
        ]
    return [*told, item("done", index, thought(*map("".join, texts), id=id, sealed=sealed))]


def told(*items: list[Json], end: Json | None = None) -> bytes:
    """A whole stream, just as OpenAI sends it."""
    events = [event for events in items for event in events]
    end = end or completed(*(events[-1]["item"] for events in items))
    return sse(response("created"), response("in_progress"), *events, end)


def without(event: Json, *keys: str) -> Json:
    return {key: value for key, value in event.items() if key not in keys}


HELLO = told_message(["Hel", "lo"])
HEARD = calls(text="Hello", finish="stop")
NOTE = {"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 3}
ANNOTATED = message("Hello", content=[{**message("Hello")["content"][0], "annotations": [NOTE]}])
F = ("call_1", "f", '{"a": 1}')
G = ("call_2", "g", '{"b": 2}')
CALL_F = told_call(['{"a"', ": 1}"])
CALL_G = told_call(['{"b"', ": 2}"], 1, id="fc_2", call_id="call_2", name="g")
WEB = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "x"}}
SEARCH = [
    item("added", 0, {**WEB, "status": "in_progress"}),
    event("web_search_call.searching", 0, "ws_1"),
    item("done", 0, WEB),
]
PATCH = '*** Begin Patch\n*** Add File: a "b"\n+\\d é 😀\n*** End Patch'
CUSTOM = [{"type": "custom", "name": "apply_patch", "format": {"type": "grammar", "syntax": "lark", "definition": "x"}}]
SPACE = {
    "type": "namespace",
    "name": "mcp__docs",
    "tools": [{"type": "function", "name": "list", "parameters": {"type": "object"}}],
}

SCENARIOS = [
    Scenario("text", told(HELLO), calls(text="Hello", finish="stop"), untouched=True),
    Scenario("calls", told(CALL_F, CALL_G), calls(F, G), untouched=True),
    Scenario(
        "thinking, text and a call",
        told(
            told_thought([["a", "b"], ["c"]], sealed="ENC"),
            told_message(["x"], 1),
            told_call(['{"a": 1}'], 2),
        ),
        calls(F, text="x", reasoning="ab\n\nc"),
        untouched=True,
    ),
    Scenario("nothing", told(), calls(finish="stop"), ["empty-turn"], untouched=True),
    Scenario("refusal", told(told_refusal(["No", "."])), calls(refusal="No.", finish="stop"), untouched=True),
    Scenario(
        "length",
        told(told_message(["Hel"], status="incomplete"), end=cut(message("Hel", status="incomplete"))),
        calls(text="Hel", finish="length"),
        untouched=True,
    ),
    Scenario(
        "content filter",
        told(HELLO, end=cut(message("Hello"), reason="content_filter")),
        calls(text="Hello", finish="content_filter"),
        untouched=True,
    ),
    Scenario(
        "incomplete for no known reason",
        told(HELLO, end=cut(message("Hello"), reason=None)),
        calls(text="Hello", finish="length"),
        findings=["unknown-finish-reason"],
    ),
    Scenario(
        "completed, and incomplete by its status",
        told(HELLO, end={**cut(message("Hello")), "type": "response.completed"}),
        calls(text="Hello", finish="length"),
        findings=["stop-reason"],
    ),
    Scenario(
        "length inside a call",
        sse(response("created"), response("in_progress"), *CALL_F[:2], cut()),
        calls(("call_1", "f", '{"a"'), finish="length"),
        findings=["cut-short"],
    ),
    Scenario(
        "custom tool",
        told(told_custom([PATCH[:20], PATCH[20:]])),
        calls(("call_1", "apply_patch", PATCH)),
        tools=CUSTOM,
        untouched=True,
    ),
    Scenario(
        "namespace",
        told(told_call(["{}"], name="list", namespace="mcp__docs")),
        calls(("call_1", "list", "{}")),
        tools=[SPACE],
        untouched=True,
    ),
    Scenario(
        "an item of another kind",
        told(SEARCH, told_message(["Hello"], 1)),
        calls(text="Hello", finish="stop"),
        findings=["not-translated"],
        untouched=True,
    ),
    Scenario(
        "annotations",
        told(
            [
                *HELLO[:3],
                event("output_text.annotation.added", 0, "msg_1", content_index=0, annotation_index=0, annotation=NOTE),
                *HELLO[3:5],
                {**HELLO[5], "part": {**HELLO[5]["part"], "annotations": [NOTE]}},
                item("done", 0, ANNOTATED),
            ],
            end=completed(ANNOTATED),
        ),
        HEARD,
        findings=["not-translated"],
        untouched=True,
    ),
    # ── half right ────────────────────────────────────────────────────────────────────────────────────────────────
    Scenario(
        "only whole items",
        sse(response("created"), item("done", 0, message("Hello")), item("done", 1, call('{"a": 1}')), completed()),
        calls(F, text="Hello"),
    ),
    Scenario(
        "only the last event",
        sse(response("created"), completed(thought("ab", sealed="ENC"), message("Hello"), call('{"a": 1}'))),
        calls(F, text="Hello", reasoning="ab"),
    ),
    Scenario(
        "arguments only at the end",
        told([CALL_F[0], *CALL_F[-2:]]),
        calls(F),
    ),
    Scenario("arguments only in the item", told([CALL_F[0], CALL_F[-1]]), calls(F)),
    Scenario("no arguments", told(told_call([])), calls(("call_1", "f", "{}"))),
    Scenario(
        "arguments as a value",
        told([CALL_F[0], item("done", 0, {**call(""), "arguments": {"a": 1}})]),
        calls(("call_1", "f", '{"a":1}')),
        findings=["arguments-as-value"],
    ),
    Scenario(
        "more after the arguments",
        told([CALL_F[0], event("function_call_arguments.delta", 0, "fc_1", delta='{"a": 1}}'), *CALL_F[-2:]]),
        calls(F),
        findings=["after-arguments"],
    ),
    Scenario(
        "no ids, no indexes, no numbers",
        sse(
            response("created"),
            *(without(event, "item_id", "output_index") for event in HELLO[:-1]),
            {"type": "response.output_item.done", "item": without(message("Hello"), "id")},
            {"type": "response.output_item.done", "item": without(call('{"a": 1}'), "id", "status")},
            completed(),
            numbered=False,
        ),
        calls(F, text="Hello"),
    ),
    Scenario(
        "another id with every event",
        told([{**event, "item_id": f"x{n}"} if "item_id" in event else event for n, event in enumerate(HELLO)]),
        calls(text="Hello", finish="stop"),
    ),
    Scenario(
        "no call_id",
        told([CALL_F[0], item("done", 0, without(call('{"a": 1}', id="call_1"), "call_id"))])
        .replace(b'"call_id": "call_1", ', b"")
        .replace(b"fc_1", b"call_1"),
        calls(F),
        findings=["no-id"],
    ),
    Scenario(
        "interleaved",
        sse(
            response("created"),
            response("in_progress"),
            CALL_F[0],
            CALL_G[0],
            CALL_G[1],
            CALL_F[1],
            CALL_F[2],
            *CALL_G[2:],
            *CALL_F[3:],
            completed(call('{"a": 1}'), CALL_G[-1]["item"]),
        ),
        calls(F, G),
    ),
    Scenario(
        "text without its part",
        told([HELLO[0], *HELLO[2:]]),
        calls(text="Hello", finish="stop"),
    ),
    Scenario(
        "nothing is added",
        told(HELLO[2:]),
        calls(text="Hello", finish="stop"),
    ),
    Scenario(
        "an item that is not done",
        sse(response("created"), response("in_progress"), *HELLO[:-1], completed(message("Hello"))),
        calls(text="Hello", finish="stop"),
    ),
    Scenario(
        "thinking that is not summed up",
        told(
            [
                item("added", 0, thought()),
                event("reasoning_text.delta", 0, "rs_1", content_index=0, delta="ab"),
                event("reasoning_text.done", 0, "rs_1", content_index=0, text="ab"),
                item("done", 0, thought(content=[{"type": "reasoning_text", "text": "ab"}])),
            ],
            told_message(["x"], 1),
        ),
        calls(text="x", reasoning="ab", finish="stop"),
        untouched=True,
    ),
    Scenario("[DONE] at the end", told(HELLO) + b"data: [DONE]\n\n", calls(text="Hello", finish="stop")),
    Scenario(
        "[DONE] and no last event",
        sse(response("created"), response("in_progress"), *HELLO, "[DONE]"),
        calls(text="Hello", finish="stop"),
        findings=["no-finish-reason"],
    ),
    Scenario(
        "native text",
        told(told_message(["Look. ", SECTION_OF_PARIS[:40], SECTION_OF_PARIS[40:]])),
        calls(PARIS, text="Look. "),
        model=KIMI,
        findings=["stop-reason"],
    ),
    Scenario(
        "native text among other items",
        told(
            SEARCH, told_message(["<", "b>", SECTION_OF_PARIS], 1, phase="commentary"), told_message(["y"], 2, "msg_2")
        ),
        calls(PARIS, text="<b>y"),
        model=KIMI,
        findings=["not-translated", "stop-reason"],
    ),
    # ── an item that is told in pieces that do not agree ──────────────────────────────────────────────────────────────
    Scenario("arguments only in the last event", told([CALL_F[0]], end=completed(call('{"a": 1}'))), calls(F)),
    Scenario("text only in the last event", told(HELLO[:2], end=completed(message("Hello"))), HEARD),
    Scenario("arguments only when added", told([item("added", 0, call('{"a": 1}'))], end=completed()), calls(F)),
    Scenario("arguments when added, and deltas", told([item("added", 0, call('{"a": 1}')), *CALL_F[1:]]), calls(F)),
    Scenario("text only when added", told([item("added", 0, message("Hello"))], end=completed()), HEARD),
    Scenario("fewer deltas than text", told([*HELLO[:3], *HELLO[4:]]), HEARD),
    Scenario("fewer deltas than text, done", told([*HELLO[:3], HELLO[-1]]), HEARD),
    Scenario("fewer deltas than arguments", told([*CALL_F[:2], *CALL_F[3:]]), calls(F)),
    Scenario("fewer deltas than arguments, last", told(CALL_F[:2], end=completed(call('{"a": 1}'))), calls(F)),
    Scenario(
        "other text than in the deltas", told([*HELLO[:4], item("done", 0, message("Bye"))]), HEARD, ["changed-text"]
    ),
    Scenario(
        "a name beside the arguments",
        told([{**CALL_F[-2], "name": "f", "call_id": "call_1"}], end=completed()),
        calls(F),
    ),
    Scenario(
        "a name beside the arguments, no id",
        told([{**CALL_F[-2], "name": "f"}], end=completed()),
        calls(("fc_1", *F[1:])),
        ["no-id"],
    ),
    Scenario("a name in the last event", told(CALL_F[1:3], end=completed(call('{"a": 1}'))), calls(F)),
    Scenario(
        "no name at all",
        told(CALL_F[1:3], end=completed()),
        calls(text='{"a": 1}', finish="stop"),
        ["call-without-name"],
    ),
    Scenario("done twice", told(CALL_F, [CALL_F[-1]], end=completed(call('{"a": 1}'))), calls(F), ["repeated-item"]),
    Scenario("added twice", told([CALL_F[0], *CALL_F]), calls(F), ["repeated-item"]),
    Scenario("text done twice", told(HELLO, [HELLO[-1]], end=completed(message("Hello"))), HEARD, ["repeated-item"]),
    Scenario(
        "arguments after the end",
        told(CALL_F, [CALL_F[1]], end=completed(call('{"a": 1}'))),
        calls(F),
        ["no-such-call"],
    ),
    Scenario(
        "items without ids, and again in the last event",
        sse(
            response("created"),
            {"type": "response.output_item.done", "item": without(message("Hello"), "id")},
            completed(without(message("Hello"), "id")),
        ),
        HEARD,
    ),
    Scenario(
        "no start",
        sse(response("in_progress"), *HELLO, completed(message("Hello"))),
        HEARD,
        ["no-message-start"],
    ),
    Scenario("no start, and no id", sse(*HELLO, completed(message("Hello"))), HEARD, ["no-message-start"]),
    Scenario(
        "a gap between indexes",
        told(HELLO, told_call(['{"a": 1}'], 4)),
        calls(F, text="Hello"),
        ["renumbered"],
    ),
    Scenario(
        "a call that is added without its name",
        told([item("added", 0, without(call(""), "name")), *CALL_F[1:]]),
        calls(F),
    ),
    Scenario(
        "a call that has no name until [DONE]",
        sse(response("created"), item("added", 0, without(call(""), "name")), "[DONE]"),
        calls(finish="stop"),
        ["call-without-name", "no-finish-reason", "empty-turn"],
    ),
    # ── failures ──────────────────────────────────────────────────────────────────────────────────────────────────
    Scenario("broken off", sse(response("created"), response("in_progress"), *HELLO[:3]), {}, error=BUG),
    Scenario("broken off after a call", sse(response("created"), response("in_progress"), *CALL_F), {}, error=BUG),
    Scenario(
        "failed",
        told(HELLO, end=response("failed", error={"code": "rate_limit_exceeded", "message": "try again in 2s"})),
        {},
        error="try again in 2s",
    ),
    Scenario(
        "error",
        told(HELLO, end={"type": "error", "code": "server_error", "message": "boom", "param": None}),
        {},
        error="boom",
    ),
    Scenario(
        "completed, and failed by its status",
        told(HELLO, end=completed(message("Hello"), status="failed", error={"code": "x", "message": "boom"})),
        {},
        error="boom",
    ),
    Scenario(
        "completed, and cancelled by its status",
        told(HELLO, end=completed(message("Hello"), status="cancelled")),
        {},
        error="the response was cancelled",
    ),
    Scenario("error inside", sse({"type": "error", "error": {"message": "boom", "code": "x"}}), {}, error="boom"),
    Scenario("error of another wire", sse(response("created")) + b'data: {"error":"boom"}\n\n', {}, error="boom"),
]
