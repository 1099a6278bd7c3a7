"""Anthropic Messages streams as upstreams send them, and the expected client view of each."""

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
class MessagesScenario:
    """One stream and its expected translation.

    `blocks`: expected blocks on the same wire, calls as (id, name, arguments), thinking as (text, signature).
    `untouched`: the stream is passed through on the same wire.
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


# ── building streams ──────────────────────────────────────────────────────────────────────────────────────────────


def sse(*events: Json, named: bool = True) -> bytes:
    return "".join(
        (f"event: {event['type']}\n" if named else "") + f"data: {json.dumps(event)}\n\n" for event in events
    ).encode()


def message_start(model: str = MODEL, **extra: Any) -> Json:
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": []}
    defaults = {"stop_reason": None, "stop_sequence": None, "usage": USAGE}
    return {"type": "message_start", "message": {**head, **defaults, **extra}}


def block_start(index: Any, block_type: str, **content: Any) -> Json:
    return {"type": "content_block_start", "index": index, "content_block": {"type": block_type, **content}}


def block_delta(index: Any, delta_type: str, **fields: Any) -> Json:
    return {"type": "content_block_delta", "index": index, "delta": {"type": delta_type, **fields}}


def block_stop(index: Any) -> Json:
    return {"type": "content_block_stop", "index": index}


def message_end(reason: Any = "end_turn", sequence: Any = None, usage: Any = END_USAGE, **extra: Any) -> list[Json]:
    final_delta = {"stop_reason": reason, "stop_sequence": sequence, **extra}
    return [{"type": "message_delta", "delta": final_delta, "usage": usage}, {"type": "message_stop"}]


def text_block(index: Any, *pieces: str) -> list[Json]:
    return [
        block_start(index, "text", text=""),
        *(block_delta(index, "text_delta", text=piece) for piece in pieces),
        block_stop(index),
    ]


def thinking_block(index: Any, *pieces: str, signature: str = "") -> list[Json]:
    deltas = [block_delta(index, "thinking_delta", thinking=piece) for piece in pieces]
    signature_deltas = [block_delta(index, "signature_delta", signature=signature)] if signature else []
    return [block_start(index, "thinking", thinking="", signature=""), *deltas, *signature_deltas, block_stop(index)]


def argument_deltas(index: Any, *pieces: Any) -> list[Json]:
    return [block_delta(index, "input_json_delta", partial_json=piece) for piece in pieces]


def tool_use_block(
    index: Any, *pieces: Any, id: Any = "toolu_1", name: Any = "f", input: Any = None, **extra: Any
) -> list[Json]:
    initial_input = {} if input is None else input
    return [
        block_start(index, "tool_use", id=id, name=name, input=initial_input, **extra),
        *argument_deltas(index, *pieces),
        block_stop(index),
    ]


def without_keys(event: Json, *keys: str) -> Json:
    return {key: value for key, value in event.items() if key not in keys}


F = ("toolu_1", "f", '{"a": 1}')
G = ("toolu_2", "g", '{"b": 2}')
CALL_F, CALL_G = tool_use_block(0, "", '{"a"', ": 1}"), tool_use_block(1, '{"b": 2}', id="toolu_2", name="g")

# ── valid streams ─────────────────────────────────────────────────────────────────────────────────────────────────

SEARCH_RESULT = {"type": "web_search_result", "url": "u", "title": "t", "encrypted_content": "e", "page_age": None}
CITATION_LOCATION = {
    "type": "web_search_result_location",
    "url": "u",
    "title": "t",
    "encrypted_index": "e",
    "cited_text": "c",
}
SEARCH = [
    block_start(1, "server_tool_use", id="srvtoolu_1", name="web_search", input={}),
    *argument_deltas(1, "", '{"query": "x"}'),
    block_stop(1),
    block_start(2, "web_search_tool_result", tool_use_id="srvtoolu_1", content=[SEARCH_RESULT]),
    block_stop(2),
]
CITED = [
    block_start(3, "text", text="", citations=[]),
    block_delta(3, "citations_delta", citation=CITATION_LOCATION),
    block_delta(3, "text_delta", text="So it is."),
    block_stop(3),
]
WELL_FORMED = [
    MessagesScenario(
        "text",
        sse(message_start(), block_start(0, "text", text=""), PING, *text_block(0, "Hel", "lo")[1:], *message_end()),
        ["Hello"],
    ),
    MessagesScenario("no block at all", sse(message_start(), *message_end()), [], findings=["empty-turn"]),
    MessagesScenario(
        "an empty block", sse(message_start(), *text_block(0), *message_end()), [""], findings=["empty-turn"]
    ),
    MessagesScenario("a call", sse(message_start(), *CALL_F, *message_end("tool_use")), [F], "tool_use"),
    MessagesScenario(
        "no arguments",
        sse(message_start(), *tool_use_block(0, ""), *message_end("tool_use")),
        [("toolu_1", "f", "")],
        "tool_use",
    ),
    MessagesScenario("two calls", sse(message_start(), *CALL_F, *CALL_G, *message_end("tool_use")), [F, G], "tool_use"),
    MessagesScenario(
        "thinking, text, call",
        sse(
            message_start(),
            *thinking_block(0, "Hm", "m.", signature="S"),
            *text_block(1, "Look:"),
            *tool_use_block(2, '{"a": 1}'),
            *message_end("tool_use"),
        ),
        [("Hmm.", "S"), "Look:", F],
        "tool_use",
    ),
    MessagesScenario(
        "redacted thinking",
        sse(
            message_start(),
            *thinking_block(0, signature="S"),
            block_start(1, "redacted_thinking", data="D"),
            block_stop(1),
            *text_block(2, "Hi"),
            *message_end(),
        ),
        [("", "S"), {"type": "redacted_thinking", "data": "D"}, "Hi"],
    ),
    MessagesScenario(
        "thinking without a signature",
        sse(message_start(), *thinking_block(0, "Hm."), *text_block(1, "Hi"), *message_end()),
        [("Hm.", ""), "Hi"],
    ),
    MessagesScenario(
        "max_tokens", sse(message_start(), *text_block(0, "Hel"), *message_end("max_tokens")), ["Hel"], "max_tokens"
    ),
    MessagesScenario(
        "stop_sequence",
        sse(message_start(), *text_block(0, "Hel"), *message_end("stop_sequence", "lo")),
        ["Hel"],
        "stop_sequence",
    ),
    MessagesScenario(
        "pause_turn", sse(message_start(), *text_block(0, "Wait"), *message_end("pause_turn")), ["Wait"], "pause_turn"
    ),
    MessagesScenario(
        "refusal",
        sse(
            message_start(),
            *text_block(0, "I "),
            *message_end("refusal", stop_details={"type": "refusal", "explanation": "No."}),
        ),
        ["I "],
        "refusal",
    ),
    MessagesScenario(
        "a call cut by the limit",
        sse(message_start(), *tool_use_block(0, '{"a": "x'), *message_end("max_tokens")),
        [("toolu_1", "f", '{"a": "x')],
        "max_tokens",
        ["cut-short"],
    ),
    MessagesScenario(
        "a call cut before its arguments",
        sse(
            message_start(),
            *tool_use_block(0),
            *tool_use_block(1, "", id="toolu_2", name="g"),
            *message_end("max_tokens"),
        ),
        [("toolu_1", "f", ""), ("toolu_2", "g", "")],
        "max_tokens",
        ["cut-short"],
    ),
    MessagesScenario(
        "a call without arguments before text that is cut",
        sse(message_start(), *tool_use_block(0), *text_block(1, "Hel"), *message_end("max_tokens")),
        [("toolu_1", "f", ""), "Hel"],
        "max_tokens",
    ),
    MessagesScenario(
        "tools of the server, and citations",
        sse(message_start(), *text_block(0, "Let me look."), *SEARCH, *CITED, *message_end()),
        ["Let me look.", "server_tool_use", "web_search_tool_result", "So it is."],
        findings=["not-translated", "not-translated", "not-translated"],
    ),
    MessagesScenario(
        "unknown events and blocks",
        sse(
            message_start(),
            {"type": "news", "x": 1},
            block_start(0, "poem", lines=[]),
            block_delta(0, "line", line="a"),
            block_stop(0),
            *message_end(),
        ),
        ["poem"],
        findings=["not-translated", "not-translated"],
    ),
]
WELL_FORMED = [MessagesScenario(**{**vars(one), "untouched": True}) for one in WELL_FORMED]

# ── deviations from the protocol ──────────────────────────────────────────────────────────────────────────────────

NULL_INPUT = block_start(0, "tool_use", id="toolu_1", name="f", input=None)
MALFORMED = [
    MessagesScenario(
        "no message_start", sse(*text_block(0, "Hi"), *message_end()), ["Hi"], findings=["no-message-start"]
    ),
    MessagesScenario("a ping first", sse(PING, message_start(), *text_block(0, "Hi"), *message_end()), ["Hi"]),
    MessagesScenario(
        "no names", sse(message_start(), *text_block(0, "Hi"), *CALL_F[:0], *message_end(), named=False), ["Hi"]
    ),
    MessagesScenario(
        "no usage", sse(message_start(usage=None), *text_block(0, "Hi"), *message_end(usage=None)), ["Hi"]
    ),
    MessagesScenario(
        "no stops",
        sse(
            message_start(),
            *text_block(0, "Hi")[:-1],
            *tool_use_block(1, '{"a": 1}')[:-1],
            *tool_use_block(2, id="toolu_2", name="g")[:-1],
            *message_end("tool_use"),
        ),
        ["Hi", F, ("toolu_2", "g", "{}")],
        "tool_use",
        ["block-not-closed", "block-not-closed", "block-not-closed"],
    ),
    MessagesScenario(
        "no end but [DONE]",
        sse(message_start(), *CALL_F) + b"data: [DONE]\n\n",
        [F],
        "tool_use",
        ["no-finish-reason"],
    ),
    MessagesScenario(
        "[DONE] behind the end",
        sse(message_start(), *text_block(0, "Hi"), *message_end()) + b"data: [DONE]\n\n",
        ["Hi"],
    ),
    MessagesScenario(
        "stop reason without message_stop", sse(message_start(), *text_block(0, "Hi"), message_end()[0]), ["Hi"]
    ),
    MessagesScenario(
        "stop_reason null",
        sse(message_start(), *CALL_F, *message_end(None)),
        [F],
        "tool_use",
        ["no-finish-reason"],
    ),
    MessagesScenario(
        "usage before the stop reason",
        sse(message_start(), *text_block(0, "Hi"), message_end(None)[0], *message_end("max_tokens")),
        ["Hi"],
        "max_tokens",
    ),
    MessagesScenario(
        "indexes with gaps",
        sse(
            message_start(),
            *text_block(1, "Hi"),
            block_start(4, "poem", lines=[]),
            block_delta(4, "line", line="a"),
            block_stop(4),
            *tool_use_block(7, '{"a": 1}'),
            *message_end("tool_use"),
        ),
        ["Hi", "poem", F],
        "tool_use",
        ["renumbered", "renumbered", "not-translated", "renumbered"],
    ),
    MessagesScenario(
        "all indexes zero",
        sse(
            message_start(),
            *text_block(0, "Hi"),
            *tool_use_block(0, '{"a": 1}'),
            *tool_use_block(0, '{"b": 2}', id="toolu_2", name="g"),
            *message_end("tool_use"),
        ),
        ["Hi", F, G],
        "tool_use",
        ["renumbered", "renumbered"],
    ),
    MessagesScenario(
        "no indexes",
        sse(
            *(
                without_keys(event, "index")
                for event in [message_start(), *text_block(0, "Hi"), *CALL_F, *message_end("tool_use")]
            )
        ),
        ["Hi", F],
        "tool_use",
        ["no-index", "stray-delta", "no-index", "stray-delta", "stray-delta", "stray-delta"],
    ),
    MessagesScenario(
        "interleaved calls",
        sse(
            message_start(),
            CALL_F[0],
            CALL_G[0],
            *argument_deltas(0, '{"a"'),
            *argument_deltas(1, '{"b": '),
            *argument_deltas(0, ": 1}"),
            *argument_deltas(1, "2}"),
            block_stop(0),
            block_stop(1),
            *message_end("tool_use"),
        ),
        [F, G],
        "tool_use",
    ),
    MessagesScenario(
        "text inside a call",
        sse(
            message_start(),
            CALL_F[0],
            *argument_deltas(0, '{"a"'),
            *text_block(1, "Hi"),
            *argument_deltas(0, ": 1}"),
            block_stop(0),
            *message_end("tool_use"),
        ),
        [F, "Hi"],
        "tool_use",
    ),
    MessagesScenario(
        "a continuation that is cut, and no stop",
        sse(message_start(), *tool_use_block(0, ',"b": "x', input={"a": 1})[:-1], *message_end("max_tokens")),
        [("toolu_1", "f", '{"a":1,"b": "x')],
        "max_tokens",
        ["cut-short"],
    ),
    MessagesScenario(
        "text in the start",
        sse(message_start(), block_start(0, "text", text="He"), *text_block(0, "llo")[1:], *message_end()),
        ["Hello"],
    ),
    MessagesScenario(
        "thinking and signature in the start",
        sse(
            message_start(),
            block_start(0, "thinking", thinking="Hm", signature="S"),
            *thinking_block(0, ".")[1:],
            *text_block(1, "Hi"),
            *message_end(),
        ),
        [("Hm.", "S"), "Hi"],
    ),
    MessagesScenario(
        "two signatures",
        sse(
            message_start(),
            *thinking_block(0, "Hm", signature="S")[:3],
            *thinking_block(0, signature="T")[1:],
            *text_block(1, "Hi"),
            *message_end(),
        ),
        [("Hm", "S"), "Hi"],
        findings=["repeated-signature"],
    ),
    MessagesScenario(
        "thinking inside a text that goes on",
        sse(
            message_start(),
            *text_block(0, "One.")[:2],
            *thinking_block(1, "Hm", "m.", signature="S"),
            *text_block(0, "Two.")[1:],
            *message_end(),
        ),
        ["One.", ("Hmm.", "S"), "Two."],
    ),
    MessagesScenario(
        "content in message_start", sse(message_start(content=[{"type": "text", "text": "Hi"}]), *message_end()), ["Hi"]
    ),
    MessagesScenario(
        "deltas without a start",
        sse(message_start(), *text_block(0, "H", "i")[1:], *message_end()),
        ["Hi"],
        findings=["stray-delta", "stray-delta"],
    ),
    MessagesScenario(
        "end_turn behind a call", sse(message_start(), *CALL_F, *message_end()), [F], "tool_use", ["stop-reason"]
    ),
    MessagesScenario(
        "a reason of another wire",
        sse(message_start(), *CALL_F, *message_end("tool_calls")),
        [F],
        "tool_use",
        ["unknown-finish-reason"],
    ),
    MessagesScenario(
        "an empty text behind a call",
        sse(message_start(), *CALL_F, *text_block(1), *message_end("tool_use")),
        [F],
        "tool_use",
    ),
    MessagesScenario(
        "an empty text among others",
        sse(
            message_start(),
            *text_block(0, "Hi"),
            *text_block(1),
            *tool_use_block(2, '{"a": 1}'),
            *message_end("tool_use"),
        ),
        ["Hi", F],
        "tool_use",
    ),
    MessagesScenario(
        "an id with invalid characters",
        sse(message_start(), *tool_use_block(0, '{"a": 1}', id="functions.f:0"), *message_end("tool_use")),
        [("il-functions_2ef_3a0", "f", '{"a": 1}')],
        "tool_use",
    ),
    MessagesScenario(
        "an id twice",
        sse(
            message_start(),
            *CALL_F,
            *tool_use_block(1, "", '{"b"', ": 2}", name="g"),
            *text_block(2, "Hi"),
            *message_end("tool_use"),
        ),
        [F, ("toolu_1_2", "g", '{"b": 2}'), "Hi"],
        "tool_use",
        ["id-renamed"],
    ),
    MessagesScenario(
        "a call without a name",
        sse(message_start(), *tool_use_block(0, '{"a": 1}', name=""), *message_end("tool_use")),
        ['{"a": 1}'],
        "end_turn",
        ["call-without-name", "stop-reason"],
    ),
    MessagesScenario(
        "text after the arguments",
        sse(message_start(), *tool_use_block(0, '{"a": 1}', "}"), *message_end("tool_use")),
        [F],
        "tool_use",
        ["after-arguments"],
    ),
    MessagesScenario(
        "native text",
        sse(
            message_start(KIMI),
            *text_block(0, "Look: ", SECTION_OF_PARIS[:40], SECTION_OF_PARIS[40:], " So."),
            *text_block(1, "Bye"),
            *message_end(),
        ),
        ["Look: ", ("il-functions_2eget_5fweather_3a0", "get_weather", '{"city": "Paris"}'), " So.", "Bye"],
        "tool_use",
        ["stop-reason"],
    ),
    MessagesScenario(
        "only a native call",
        sse(
            message_start(KIMI),
            *text_block(0, SECTION_OF_PARIS),
            block_start(1, "poem", lines=[]),
            block_stop(1),
            *message_end("tool_use"),
        ),
        [("il-functions_2eget_5fweather_3a0", "get_weather", '{"city": "Paris"}'), "poem"],
        "tool_use",
        ["not-translated"],
    ),
]

# ── errors and broken streams ─────────────────────────────────────────────────────────────────────────────────────

ERROR_EVENT = {"type": "error", "error": {"type": "overloaded_error", "message": "boom"}, "request_id": "req_1"}
FAILED = [
    MessagesScenario("an error at once", sse(ERROR_EVENT), [], "", error="boom"),
    MessagesScenario(
        "an error in the middle", sse(message_start(), *text_block(0, "Hi"), ERROR_EVENT), ["Hi"], "", error="boom"
    ),
    MessagesScenario("an error without its name", sse(message_start(), ERROR_EVENT, named=False), [], "", error="boom"),
    MessagesScenario(
        "an error as over HTTP", sse(message_start())[:-1] + b'\ndata: {"error": "boom"}\n\n', [], "", error="boom"
    ),
    MessagesScenario(
        "broken off in a call",
        sse(message_start(), *CALL_F[:-2]),
        [("toolu_1", "f", '{"a"')],
        "",
        ["no-finish-reason"],
        error="inside the call",
    ),
    MessagesScenario(
        "broken off in text", sse(message_start(), *text_block(0, "Hi")), ["Hi"], "", error="without finishing"
    ),
    MessagesScenario(
        "an error behind the end",
        sse(message_start(), *text_block(0, "Hi"), message_end()[0], ERROR_EVENT),
        ["Hi"],
        findings=["after-stop"],
    ),
]

SCENARIOS = [*WELL_FORMED, *MALFORMED, *FAILED]
