"""Replies in the wrong form or with unusual contents (rows 14–17 and 25–29 of the fault table, real sockets)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from interlingua.faults.apis import past_call_fields
from tests.support import upstream_server as up
from tests.support.gateway_process import GatewayProcess, run_gateway
from tests.support.raw_client import (
    CHAT,
    MESSAGES,
    RESPONSES,
    WIRES,
    RawResponse,
    reply_calls,
    reply_calls_with_ids,
    reply_text,
    request_reply,
    tools_field,
)
from tests.support.upstream_server import UpstreamServer, call_delta

CONFIG = """
upstreams:
  test:
    url: {url}
    timeouts: {{connect: 2, first_event: 5, idle: 5}}
    retries: {{attempts: 1}}
models:
  "kimi*": {{upstream: test, dialect: kimi_k2}}
  "hermes*": {{upstream: test, dialect: hermes}}
"""
WEATHER = {"name": "get_weather", "arguments": '{"city": "Paris"}'}


@pytest.fixture(scope="module")
def gateway(upstream: UpstreamServer) -> Iterator[GatewayProcess]:
    with run_gateway(config=CONFIG.format(url=upstream.url)) as started:
        yield started


def completion(content: str | None, *calls: dict[str, Any], finish: str = "stop") -> dict[str, Any]:
    """Return a complete chat completion."""
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if calls:
        message["tool_calls"] = [{"id": f"c{n}", "type": "function", "function": call} for n, call in enumerate(calls)]
    choice = {"index": 0, "message": message, "finish_reason": finish}
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    return {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}


def ends_well(got: RawResponse, wire: str) -> bool:
    last = {CHAT: "[DONE]", MESSAGES: "message_stop", RESPONSES: "response.completed"}[wire]
    return bool((got.events[-1] if wire == CHAT else got.events[-1]["type"]) == last)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("type", ["application/json", "text/plain", "text/html; charset=utf-8"])
def test_14_complete_reply_to_a_stream_request_is_sent_as_a_stream(
    gateway: GatewayProcess, upstream: UpstreamServer, wire: str, type: str
) -> None:
    body = json.dumps(completion("It is", WEATHER, finish="tool_calls")).encode()
    model = upstream.add(f"14-{wire}-{type}", up.send_response("200 OK", b"\n\n" + body, type))
    got = request_reply(gateway, wire, model, **tools_field(wire))
    assert got.status == 200, got.body
    assert str(got.header("content-type")).startswith("text/event-stream")
    assert reply_text(got, wire) == "It is"
    assert reply_calls(got, wire) == [("get_weather", '{"city": "Paris"}')]
    assert ends_well(got, wire)
    gateway.wait_for_log("whole-reply")


@pytest.mark.parametrize("body", [b"", b"   ", b"{", b"[]", b"null", b"<html>busy</html>", b'{"choices": []}', b"{}"])
@pytest.mark.parametrize("stream", [True, False])
def test_14_body_that_is_not_a_reply_is_an_upstream_error(
    gateway: GatewayProcess, upstream: UpstreamServer, body: bytes, stream: bool
) -> None:
    model = upstream.add(f"14-none-{body!r}-{stream}", up.send_response("200 OK", body))
    got = request_reply(gateway, MESSAGES, model, stream)
    assert (got.status, got.json["type"]) == (502, "error"), got.body


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("type", ["text/event-stream", "application/json", "application/octet-stream"])
def test_15_stream_to_a_non_stream_request_is_assembled(
    gateway: GatewayProcess, upstream: UpstreamServer, wire: str, type: str
) -> None:
    pieces = [call_delta(0, "c0", name="get_weather", arguments=""), call_delta(0, arguments='{"city": "Paris"}')]
    stream = up.ROLE + up.delta("It ") + up.delta("is") + b"".join(pieces) + up.delta(finish="tool_calls") + up.DONE
    model = upstream.add(f"15-{wire}-{type}", up.send_headers(type=type), up.send(stream))
    got = request_reply(gateway, wire, model, stream=False, **tools_field(wire))
    assert got.status == 200, got.body
    assert got.header("content-type") == "application/json"
    assert reply_text(got, wire) == "It is"
    assert [(name, json.loads(args)) for name, args in reply_calls(got, wire)] == [("get_weather", {"city": "Paris"})]
    assert "streamed-reply" in str(got.header("x-interlingua-findings"))


@pytest.mark.parametrize("wire", WIRES)
def test_15_truncated_stream_makes_no_complete_reply(
    gateway: GatewayProcess, upstream: UpstreamServer, wire: str
) -> None:
    cut = up.ROLE + call_delta(0, "c0", name="get_weather", arguments='{"city": "Pa')
    model = upstream.add(f"15-cut-{wire}", up.send_headers(), up.send(cut))
    got = request_reply(gateway, wire, model, stream=False, **tools_field(wire))
    assert got.status == 502, got.body
    assert "error" in got.json


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("stream", [True, False])
def test_16_envelopes_are_unwrapped(gateway: GatewayProcess, upstream: UpstreamServer, wire: str, stream: bool) -> None:
    def wrapped(event: bytes) -> bytes:
        return up.event({"data": json.loads(event[6:]), "success": True})

    if stream:
        events = [*map(wrapped, [up.ROLE, up.delta("Hello"), up.delta(finish="stop")]), up.DONE]
        model = upstream.add(f"16-{wire}", up.send_headers(), up.send(b"".join(events)))
    else:
        whole = json.dumps({"data": completion("Hello"), "success": True})
        model = upstream.add(f"16-{wire}-whole", up.send_response("200 OK", whole.encode()))
    got = request_reply(gateway, wire, model, stream)
    assert got.status == 200, got.body
    assert reply_text(got, wire) == "Hello"


@pytest.mark.parametrize("wire", WIRES)
def test_16_complete_reply_in_an_envelope_to_a_stream_request(
    gateway: GatewayProcess, upstream: UpstreamServer, wire: str
) -> None:
    whole = json.dumps({"data": completion("Hello"), "success": True})
    got = request_reply(gateway, wire, upstream.add(f"16-both-{wire}", up.send_response("200 OK", whole.encode())))
    assert got.status == 200, got.body
    assert reply_text(got, wire) == "Hello"


@pytest.mark.parametrize("wire", WIRES)
def test_17_stream_in_single_bytes(gateway: GatewayProcess, upstream: UpstreamServer, wire: str) -> None:
    text = "naïve 😀 日本"
    plain = json.dumps({"choices": [{"index": 0, "delta": {"content": text}}]}, ensure_ascii=False).encode()
    pieces = [call_delta(0, "c0", name="get_weather", arguments='{"city": "Zürich 😀"}')]
    stream = up.ROLE + up.event(plain) + b"".join(pieces) + up.delta(finish="tool_calls") + up.DONE
    each = [stream[n : n + 1] for n in range(len(stream))]
    model = upstream.add(f"17-{wire}", up.send_headers(), up.send_pieces(each, 0.0001))
    got = request_reply(gateway, wire, model, **tools_field(wire))
    assert reply_text(got, wire) == text
    assert reply_calls(got, wire) == [("get_weather", '{"city": "Zürich 😀"}')]


@pytest.mark.parametrize("wire", WIRES)
def test_17_surrogate_pairs_are_joined_and_invalid_bytes_replaced(
    gateway: GatewayProcess, upstream: UpstreamServer, wire: str
) -> None:
    def text_event(escaped: bytes) -> bytes:
        return up.event(b'{"choices": [{"index": 0, "delta": {"content": "' + escaped + b'"}}]}')

    texts = [rb"a\ud83d", rb"\ude00b", b"c\xff\xfed", rb"e\ud83d f", rb"\ude00g"]
    stream = up.ROLE + b"".join(map(text_event, texts)) + up.delta(finish="stop") + up.DONE
    got = request_reply(gateway, wire, upstream.add(f"17-halves-{wire}", up.send_headers(), up.send(stream)))
    assert got.status == 200, got.body
    got.body.decode()  # strict: raises on invalid UTF-8
    assert reply_text(got, wire) == "a😀bc\ufffd\ufffdde\ufffd f\ufffdg"


@pytest.mark.parametrize("wire", WIRES)
def test_17_lone_surrogates_in_a_complete_reply(gateway: GatewayProcess, upstream: UpstreamServer, wire: str) -> None:
    body = json.dumps(completion("a\ud83d b😀c")).encode()
    got = request_reply(gateway, wire, upstream.add(f"17-whole-{wire}", up.send_response("200 OK", body)), stream=False)
    assert got.status == 200, got.body
    assert reply_text(got, wire) == "a\ufffd b😀c"


@pytest.mark.parametrize("wire", WIRES)
def test_25_ids_are_made_unique_and_name_prefixes_removed(
    gateway: GatewayProcess, upstream: UpstreamServer, wire: str
) -> None:
    pieces = [
        call_delta(0, "same", name="functions.get_weather", arguments='{"city": "A"}'),
        call_delta(1, "same", name="get_weather", arguments='{"city": "B"}'),
        call_delta(2, "", name="get_weather", arguments='{"city": "C"}'),
        call_delta(3, "used", name="get_weather", arguments='{"city": "D"}'),
    ]
    stream = up.ROLE + b"".join(pieces) + up.delta(finish="tool_calls") + up.DONE
    model = upstream.add(f"25-{wire}", up.send_headers(), up.send(stream))
    got = request_reply(gateway, wire, model, **tools_field(wire), **past_call_fields(wire, "used", '{"city": "Z"}'))
    calls = reply_calls_with_ids(got, wire)
    assert [name for _, name, _ in calls] == ["get_weather"] * 4
    assert [json.loads(args)["city"] for _, _, args in calls] == ["A", "B", "C", "D"]
    ids = [id for id, _, _ in calls]
    assert all(ids)
    assert len({*ids, "used"}) == 5


ODD_DELTAS = {
    "interleaved": [
        call_delta(0, "a", name="get_weather", arguments=""),
        call_delta(1, "b", name="get_weather", arguments=""),
        call_delta(0, arguments='{"city": '),
        call_delta(1, arguments='{"city": "'),
        call_delta(0, arguments='"A"}'),
        call_delta(1, arguments='B"}'),
    ],
    "unindexed": [
        call_delta(None, "a", name="get_weather", arguments='{"city": '),
        call_delta(None, arguments='"A"}'),
        call_delta(None, "b", name="get_weather", arguments='{"city": "B"}'),
    ],
    "all on one index": [
        call_delta(0, "a", name="get_weather", arguments='{"city": "A"}'),
        call_delta(0, "b", name="get_weather", arguments='{"city": "B"}'),
    ],
    "id and name each time": [
        call_delta(n, id, name="get_weather", arguments=piece)
        for n, id, text in ((0, "a", '{"city": "A"}'), (1, "b", '{"city": "B"}'))
        for piece in (text[:4], text[4:9], text[9:])
    ],
    "all arguments again at the end": [
        call_delta(0, "a", name="get_weather", arguments='{"city": '),
        call_delta(0, arguments='"A"}'),
        call_delta(0, arguments='{"city": "A"}'),
        call_delta(1, "b", name="get_weather", arguments='{"city": "B"}'),
        call_delta(1, "b", name="get_weather", arguments='{"city": "B"}'),
    ],
    "each piece holds those before it": [
        call_delta(n, id, name="get_weather", arguments=text[:length])
        for n, id, text in ((0, "a", '{"city": "A"}'), (1, "b", '{"city": "B"}'))
        for length in (4, 9, len(text))
    ],
}


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("name", ODD_DELTAS)
def test_26_unusual_deltas_make_the_intended_calls(
    gateway: GatewayProcess, upstream: UpstreamServer, wire: str, name: str
) -> None:
    stream = up.ROLE + b"".join(ODD_DELTAS[name]) + up.delta(finish="tool_calls") + up.DONE
    model = upstream.add(f"26-{wire}-{name}", up.send_headers(), up.send_pieces([stream[:200], stream[200:]], 0.001))
    got = request_reply(gateway, wire, model, **tools_field(wire))
    calls = [(name, json.loads(args)) for name, args in reply_calls(got, wire)]
    assert calls == [("get_weather", {"city": "A"}), ("get_weather", {"city": "B"})]
    assert ends_well(got, wire)


KIMI = (
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>"
    '{"city": "Paris"}<|tool_call_end|><|tool_calls_section_end|>'
)


@pytest.mark.parametrize("wire", WIRES)
def test_27_call_sent_as_text_and_structured_is_delivered_once(
    gateway: GatewayProcess, upstream: UpstreamServer, wire: str
) -> None:
    structured = call_delta(0, "functions.get_weather:0", name="get_weather", arguments='{"city": "Paris"}')
    stream = up.ROLE + up.delta("So: " + KIMI) + structured + up.delta(finish="tool_calls") + up.DONE
    model = upstream.add(f"kimi-27-{wire}", up.send_headers(), up.send(stream))
    got = request_reply(gateway, wire, model, **tools_field(wire))
    assert [(name, json.loads(args)) for name, args in reply_calls(got, wire)] == [("get_weather", {"city": "Paris"})]
    assert reply_text(got, wire).strip() == "So:"
    assert b"tool_call" not in got.body.replace(b"tool_calls", b"") or wire == RESPONSES


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    "text",
    [
        "Models write <tool_call> and then JSON.",
        "`<tool_call>` opens it, `</tool_call>` closes it.",
    ],
)
def test_28_quoted_markers_are_text(gateway: GatewayProcess, upstream: UpstreamServer, wire: str, text: str) -> None:
    pieces = [text[n : n + 3] for n in range(0, len(text), 3)]
    model = upstream.add(f"hermes-28-{wire}-{text[:12]}", up.chat_stream(*pieces))
    got = request_reply(gateway, wire, model, **tools_field(wire))
    assert reply_text(got, wire) == text
    assert reply_calls(got, wire) == []


@pytest.mark.parametrize("wire", WIRES)
def test_28_example_in_a_code_block_is_not_a_call(gateway: GatewayProcess, upstream: UpstreamServer, wire: str) -> None:
    example = '{"name": "some_tool", "arguments": {}}'
    pieces = ["As in:\n```\n<tool", "_call>\n", example, "\n</tool_call>\n```\nand so on."]
    got = request_reply(
        gateway, wire, upstream.add(f"hermes-28-code-{wire}", up.chat_stream(*pieces)), **tools_field(wire)
    )
    assert reply_calls(got, wire) == []
    assert example in reply_text(got, wire)
    assert reply_text(got, wire).endswith("```\nand so on.")
    gateway.wait_for_log("not-a-tool")


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("tools_case", ["no tools", "none", "choice none"])
def test_29_text_is_not_changed_if_no_tools_were_offered(
    gateway: GatewayProcess, upstream: UpstreamServer, wire: str, stream: bool, tools_case: str
) -> None:
    model = f"kimi-29-{wire}-{stream}-{tools_case}"
    if stream:
        upstream.add(model, up.chat_stream("So: ", *[KIMI[n : n + 7] for n in range(0, len(KIMI), 7)]))
    else:
        upstream.add(model, up.send_response("200 OK", json.dumps(completion("So: " + KIMI)).encode()))
    choice = {"type": "none"} if wire == MESSAGES else "none"
    more = {"no tools": {}, "none": {"tools": []}, "choice none": {**tools_field(wire), "tool_choice": choice}}[
        tools_case
    ]
    got = request_reply(gateway, wire, model, stream, **more)
    assert got.status == 200, got.body
    assert reply_calls(got, wire) == []
    assert reply_text(got, wire) == "So: " + KIMI
