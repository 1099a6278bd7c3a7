"""Anthropic Messages streams as upstreams send them, and what a client must understand of each."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from tests.support.chat_scenarios import KIMI, SECTION_OF_PARIS
from tests.support.sdk import Json

USAGE = {
    "input_tokens": 25,
    "cache_creation_input_tokens": 3,
    "cache_read_input_tokens": 7,
    "output_tokens": 1,
    "service_tier": "standard",
}
END_USAGE = {"output_tokens": 15}
MODEL = "claude-sonnet-4-5"
PING = {"type": "ping"}


@dataclass(frozen=True)
class Scenario:
    """`blocks`: what is told on the same wire, calls as (id, name, arguments), thinking as (text, signature).

    `untouched`: what goes out is what came in.
    """

    name: str
    stream: bytes
    blocks: list[Any]
    stop: str = "end_turn"
    findings: list[str] = field(default_factory=list)
    error: str = ""
    untouched: bool = False

    def __str__(self) -> str:
        return self.name


# ── how streams are written down ──────────────────────────────────────────────────────────────────────────────────


def sse(*events: Json, names: bool = True) -> bytes:
    return "".join(
        (f"event: {event['type']}\n" if names else "") + f"data: {json.dumps(event)}\n\n" for event in events
    ).encode()


def begin(model: str = MODEL, **extra: Any) -> Json:
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": []}
    rest = {"stop_reason": None, "stop_sequence": None, "usage": USAGE}
    return {"type": "message_start", "message": {**head, **rest, **extra}}


def start(index: Any, kind: str, **content: Any) -> Json:
    return {"type": "content_block_start", "index": index, "content_block": {"type": kind, **content}}


def delta(index: Any, kind: str, **said: Any) -> Json:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **said}}


def stop(index: Any) -> Json:
    return {"type": "content_block_stop", "index": index}


def end(reason: Any = "end_turn", sequence: Any = None, usage: Any = END_USAGE, **extra: Any) -> list[Json]:
    said = {"stop_reason": reason, "stop_sequence": sequence, **extra}
    return [{"type": "message_delta", "delta": said, "usage": usage}, {"type": "message_stop"}]


def text(index: Any, *pieces: str) -> list[Json]:
    return [start(index, "text", text=""), *(delta(index, "text_delta", text=piece) for piece in pieces), stop(index)]


def thinking(index: Any, *pieces: str, signature: str = "") -> list[Json]:
    deltas = [delta(index, "thinking_delta", thinking=piece) for piece in pieces]
    signed = [delta(index, "signature_delta", signature=signature)] if signature else []
    return [start(index, "thinking", thinking="", signature=""), *deltas, *signed, stop(index)]


def args(index: Any, *pieces: Any) -> list[Json]:
    return [delta(index, "input_json_delta", partial_json=piece) for piece in pieces]


def call(index: Any, *pieces: Any, id: Any = "toolu_1", name: Any = "f", input: Any = None, **extra: Any) -> list[Json]:
    given = {} if input is None else input
    return [
        start(index, "tool_use", id=id, name=name, input=given, **extra),
        *args(index, *pieces),
        stop(index),
    ]


def without(event: Json, *keys: str) -> Json:
    return {key: value for key, value in event.items() if key not in keys}


F = ("toolu_1", "f", '{"a": 1}')
G = ("toolu_2", "g", '{"b": 2}')
CALL_F, CALL_G = call(0, "", '{"a"', ": 1}"), call(1, '{"b": 2}', id="toolu_2", name="g")

# ── as they should be ─────────────────────────────────────────────────────────────────────────────────────────────

FOUND = {"type": "web_search_result", "url": "u", "title": "t", "encrypted_content": "e", "page_age": None}
PLACE = {"type": "web_search_result_location", "url": "u", "title": "t", "encrypted_index": "e", "cited_text": "c"}
SEARCH = [
    start(1, "server_tool_use", id="srvtoolu_1", name="web_search", input={}),
    *args(1, "", '{"query": "x"}'),
    stop(1),
    start(2, "web_search_tool_result", tool_use_id="srvtoolu_1", content=[FOUND]),
    stop(2),
]
CITED = [
    start(3, "text", text="", citations=[]),
    delta(3, "citations_delta", citation=PLACE),
    delta(3, "text_delta", text="So it is."),
    stop(3),
]
RIGHT = [
    Scenario("text", sse(begin(), start(0, "text", text=""), PING, *text(0, "Hel", "lo")[1:], *end()), ["Hello"]),
    Scenario("no block at all", sse(begin(), *end()), [], findings=["empty-turn"]),
    Scenario("an empty block", sse(begin(), *text(0), *end()), [""], findings=["empty-turn"]),
    Scenario("a call", sse(begin(), *CALL_F, *end("tool_use")), [F], "tool_use"),
    Scenario("no arguments", sse(begin(), *call(0, ""), *end("tool_use")), [("toolu_1", "f", "")], "tool_use"),
    Scenario("two calls", sse(begin(), *CALL_F, *CALL_G, *end("tool_use")), [F, G], "tool_use"),
    Scenario(
        "thinking, text, call",
        sse(
            begin(), *thinking(0, "Hm", "m.", signature="S"), *text(1, "Look:"), *call(2, '{"a": 1}'), *end("tool_use")
        ),
        [("Hmm.", "S"), "Look:", F],
        "tool_use",
    ),
    Scenario(
        "thinking that is not shown",
        sse(
            begin(),
            *thinking(0, signature="S"),
            start(1, "redacted_thinking", data="D"),
            stop(1),
            *text(2, "Hi"),
            *end(),
        ),
        [("", "S"), {"type": "redacted_thinking", "data": "D"}, "Hi"],
    ),
    Scenario(
        "thinking without a signature", sse(begin(), *thinking(0, "Hm."), *text(1, "Hi"), *end()), [("Hm.", ""), "Hi"]
    ),
    Scenario("max_tokens", sse(begin(), *text(0, "Hel"), *end("max_tokens")), ["Hel"], "max_tokens"),
    Scenario("stop_sequence", sse(begin(), *text(0, "Hel"), *end("stop_sequence", "lo")), ["Hel"], "stop_sequence"),
    Scenario("pause_turn", sse(begin(), *text(0, "Wait"), *end("pause_turn")), ["Wait"], "pause_turn"),
    Scenario(
        "refusal",
        sse(begin(), *text(0, "I "), *end("refusal", stop_details={"type": "refusal", "explanation": "No."})),
        ["I "],
        "refusal",
    ),
    Scenario(
        "a call cut by the limit",
        sse(begin(), *call(0, '{"a": "x'), *end("max_tokens")),
        [("toolu_1", "f", '{"a": "x')],
        "max_tokens",
        ["cut-short"],
    ),
    Scenario(
        "a call cut before its arguments",
        sse(begin(), *call(0), *call(1, "", id="toolu_2", name="g"), *end("max_tokens")),
        [("toolu_1", "f", ""), ("toolu_2", "g", "")],
        "max_tokens",
        ["cut-short"],
    ),
    Scenario(
        "a call without arguments before text that is cut",
        sse(begin(), *call(0), *text(1, "Hel"), *end("max_tokens")),
        [("toolu_1", "f", ""), "Hel"],
        "max_tokens",
    ),
    Scenario(
        "tools of the server, and citations",
        sse(begin(), *text(0, "Let me look."), *SEARCH, *CITED, *end()),
        ["Let me look.", "server_tool_use", "web_search_tool_result", "So it is."],
        findings=["not-translated", "not-translated", "not-translated"],
    ),
    Scenario(
        "what nobody knows",
        sse(begin(), {"type": "news", "x": 1}, start(0, "poem", lines=[]), delta(0, "line", line="a"), stop(0), *end()),
        ["poem"],
        findings=["not-translated", "not-translated"],
    ),
]
RIGHT = [Scenario(**{**vars(one), "untouched": True}) for one in RIGHT]

# ── half right ────────────────────────────────────────────────────────────────────────────────────────────────────

NULL_INPUT = start(0, "tool_use", id="toolu_1", name="f", input=None)
HALF_RIGHT = [
    Scenario("no message_start", sse(*text(0, "Hi"), *end()), ["Hi"], findings=["no-message-start"]),
    Scenario("a ping first", sse(PING, begin(), *text(0, "Hi"), *end()), ["Hi"]),
    Scenario("no names", sse(begin(), *text(0, "Hi"), *CALL_F[:0], *end(), names=False), ["Hi"]),
    Scenario("no usage", sse(begin(usage=None), *text(0, "Hi"), *end(usage=None)), ["Hi"]),
    Scenario(
        "no stops",
        sse(
            begin(),
            *text(0, "Hi")[:-1],
            *call(1, '{"a": 1}')[:-1],
            *call(2, id="toolu_2", name="g")[:-1],
            *end("tool_use"),
        ),
        ["Hi", F, ("toolu_2", "g", "{}")],
        "tool_use",
        ["block-not-closed", "block-not-closed", "block-not-closed"],
    ),
    Scenario(
        "no end but [DONE]",
        sse(begin(), *CALL_F) + b"data: [DONE]\n\n",
        [F],
        "tool_use",
        ["no-finish-reason"],
    ),
    Scenario("[DONE] behind the end", sse(begin(), *text(0, "Hi"), *end()) + b"data: [DONE]\n\n", ["Hi"]),
    Scenario("stop reason without message_stop", sse(begin(), *text(0, "Hi"), end()[0]), ["Hi"]),
    Scenario(
        "stop_reason null",
        sse(begin(), *CALL_F, *end(None)),
        [F],
        "tool_use",
        ["no-finish-reason"],
    ),
    Scenario(
        "usage first, the reason then",
        sse(begin(), *text(0, "Hi"), end(None)[0], *end("max_tokens")),
        ["Hi"],
        "max_tokens",
    ),
    Scenario(
        "indexes with gaps",
        sse(
            begin(),
            *text(1, "Hi"),
            start(4, "poem", lines=[]),
            delta(4, "line", line="a"),
            stop(4),
            *call(7, '{"a": 1}'),
            *end("tool_use"),
        ),
        ["Hi", "poem", F],
        "tool_use",
        ["renumbered", "renumbered", "not-translated", "renumbered"],
    ),
    Scenario(
        "all indexes zero",
        sse(
            begin(),
            *text(0, "Hi"),
            *call(0, '{"a": 1}'),
            *call(0, '{"b": 2}', id="toolu_2", name="g"),
            *end("tool_use"),
        ),
        ["Hi", F, G],
        "tool_use",
        ["renumbered", "renumbered"],
    ),
    Scenario(
        "no indexes",
        sse(*(without(event, "index") for event in [begin(), *text(0, "Hi"), *CALL_F, *end("tool_use")])),
        ["Hi", F],
        "tool_use",
        ["no-index", "stray-delta", "no-index", "stray-delta", "stray-delta", "stray-delta"],
    ),
    Scenario(
        "interleaved calls",
        sse(
            begin(),
            CALL_F[0],
            CALL_G[0],
            *args(0, '{"a"'),
            *args(1, '{"b": '),
            *args(0, ": 1}"),
            *args(1, "2}"),
            stop(0),
            stop(1),
            *end("tool_use"),
        ),
        [F, G],
        "tool_use",
    ),
    Scenario(
        "text inside a call",
        sse(begin(), CALL_F[0], *args(0, '{"a"'), *text(1, "Hi"), *args(0, ": 1}"), stop(0), *end("tool_use")),
        [F, "Hi"],
        "tool_use",
    ),
    Scenario(
        "a continuation that is cut, and no stop",
        sse(begin(), *call(0, ',"b": "x', input={"a": 1})[:-1], *end("max_tokens")),
        [("toolu_1", "f", '{"a":1,"b": "x')],
        "max_tokens",
        ["cut-short"],
    ),
    Scenario("text in the start", sse(begin(), start(0, "text", text="He"), *text(0, "llo")[1:], *end()), ["Hello"]),
    Scenario(
        "thinking and signature in the start",
        sse(begin(), start(0, "thinking", thinking="Hm", signature="S"), *thinking(0, ".")[1:], *text(1, "Hi"), *end()),
        [("Hm.", "S"), "Hi"],
    ),
    Scenario(
        "two signatures",
        sse(begin(), *thinking(0, "Hm", signature="S")[:3], *thinking(0, signature="T")[1:], *text(1, "Hi"), *end()),
        [("Hm", "S"), "Hi"],
        findings=["repeated-signature"],
    ),
    Scenario(
        "thinking inside a text that goes on",
        sse(
            begin(),
            *text(0, "One.")[:2],
            *thinking(1, "Hm", "m.", signature="S"),
            *text(0, "Two.")[1:],
            *end(),
        ),
        ["One.", ("Hmm.", "S"), "Two."],
    ),
    Scenario("content in message_start", sse(begin(content=[{"type": "text", "text": "Hi"}]), *end()), ["Hi"]),
    Scenario(
        "deltas without a start",
        sse(begin(), *text(0, "H", "i")[1:], *end()),
        ["Hi"],
        findings=["stray-delta", "stray-delta"],
    ),
    Scenario("end_turn behind a call", sse(begin(), *CALL_F, *end()), [F], "tool_use", ["stop-reason"]),
    Scenario(
        "a reason of another wire",
        sse(begin(), *CALL_F, *end("tool_calls")),
        [F],
        "tool_use",
        ["unknown-finish-reason"],
    ),
    Scenario(
        "an empty text behind a call",
        sse(begin(), *CALL_F, *text(1), *end("tool_use")),
        [F],
        "tool_use",
    ),
    Scenario(
        "an empty text among others",
        sse(begin(), *text(0, "Hi"), *text(1), *call(2, '{"a": 1}'), *end("tool_use")),
        ["Hi", F],
        "tool_use",
    ),
    Scenario(
        "an id that is not legal",
        sse(begin(), *call(0, '{"a": 1}', id="functions.f:0"), *end("tool_use")),
        [("il-functions_2ef_3a0", "f", '{"a": 1}')],
        "tool_use",
    ),
    Scenario(
        "an id twice",
        sse(begin(), *CALL_F, *call(1, "", '{"b"', ": 2}", name="g"), *text(2, "Hi"), *end("tool_use")),
        [F, ("toolu_1_2", "g", '{"b": 2}'), "Hi"],
        "tool_use",
        ["id-renamed"],
    ),
    Scenario(
        "a call without a name",
        sse(begin(), *call(0, '{"a": 1}', name=""), *end("tool_use")),
        ['{"a": 1}'],
        "end_turn",
        ["call-without-name", "stop-reason"],
    ),
    Scenario(
        "more behind the arguments",
        sse(begin(), *call(0, '{"a": 1}', "}"), *end("tool_use")),
        [F],
        "tool_use",
        ["after-arguments"],
    ),
    Scenario(
        "native text",
        sse(
            begin(KIMI),
            *text(0, "Look: ", SECTION_OF_PARIS[:40], SECTION_OF_PARIS[40:], " So."),
            *text(1, "Bye"),
            *end(),
        ),
        ["Look: ", ("il-functions_2eget_5fweather_3a0", "get_weather", '{"city": "Paris"}'), " So.", "Bye"],
        "tool_use",
        ["stop-reason"],
    ),
    Scenario(
        "nothing but a native call",
        sse(begin(KIMI), *text(0, SECTION_OF_PARIS), start(1, "poem", lines=[]), stop(1), *end("tool_use")),
        [("il-functions_2eget_5fweather_3a0", "get_weather", '{"city": "Paris"}'), "poem"],
        "tool_use",
        ["not-translated"],
    ),
]

# ── badly ended ───────────────────────────────────────────────────────────────────────────────────────────────────

BOOM = {"type": "error", "error": {"type": "overloaded_error", "message": "boom"}, "request_id": "req_1"}
FAILED = [
    Scenario("an error at once", sse(BOOM), [], "", error="boom"),
    Scenario("an error in the middle", sse(begin(), *text(0, "Hi"), BOOM), ["Hi"], "", error="boom"),
    Scenario("an error without its name", sse(begin(), BOOM, names=False), [], "", error="boom"),
    Scenario("an error as over HTTP", sse(begin())[:-1] + b'\ndata: {"error": "boom"}\n\n', [], "", error="boom"),
    Scenario(
        "broken off in a call",
        sse(begin(), *CALL_F[:-2]),
        [("toolu_1", "f", '{"a"')],
        "",
        ["no-finish-reason"],
        error="inside the call",
    ),
    Scenario("broken off in text", sse(begin(), *text(0, "Hi")), ["Hi"], "", error="without finishing"),
    Scenario("an error behind the end", sse(begin(), *text(0, "Hi"), end()[0], BOOM), ["Hi"], findings=["after-stop"]),
]

SCENARIOS = [*RIGHT, *HALF_RIGHT, *FAILED]
