"""Replies as a plain client reads them: the same calls from streams and whole replies of all wires."""

from __future__ import annotations

import json

import pytest

from interlingua.faults.apis import API_BY_NAME
from interlingua.faults.upstream.reply_writers import reply_writer_for
from interlingua.verification.recording import Arrival, Recording
from interlingua.verification.reply_reading import CallDelta, ClientCall, read_reply

WIRES = {"chat": "openai-chat", "messages": "anthropic-messages", "responses": "openai-responses"}
FINISHES = {"chat": "tool_calls", "messages": "tool_use", "responses": "completed"}


def recorded(
    body: bytes, wire: str = "openai-chat", *, stream: bool = True, cut: int = 0, **fields: object
) -> Recording:
    """Return a recording of this body, in two pieces if there is a cut."""
    sizes = [cut, len(body) - cut] if cut else [len(body)]
    arrivals = tuple(Arrival(size, 0.1 * (n + 1)) for n, size in enumerate(sizes))
    content_type = "text/event-stream" if stream else "application/json"
    defaults = {"status": 200, "content_type": content_type, "seconds": 1.0}
    return Recording(wire=wire, stream=stream, body=body, arrivals=arrivals, **{**defaults, **fields})  # type: ignore[arg-type]


def chunk(delta: dict[str, object], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


@pytest.mark.parametrize("api", WIRES)
def test_stream_is_read_as_clients_read_it(api: str) -> None:
    writer = reply_writer_for(API_BY_NAME[api])
    body = writer.begin() + writer.text("Let me", " see.") + writer.call("read", '{"path": ', '"a"}') + writer.end()
    reply = read_reply(recorded(body, WIRES[api], cut=len(body) // 2))
    assert reply.text == "Let me see."
    assert [(call.name, call.arguments) for call in reply.calls] == [("read", '{"path": "a"}')]
    assert reply.calls[0].id
    assert [delta.text for delta in reply.deltas] == ['{"path": ', '"a"}']
    assert (reply.finish_reason, reply.has_ended, reply.error) == (FINISHES[api], True, "")
    assert (reply.input_tokens, reply.output_tokens) == (11, 7)
    assert 0 < reply.first_event_seconds <= reply.first_content_seconds <= reply.first_call_seconds


@pytest.mark.parametrize("api", WIRES)
def test_whole_reply_is_read_as_clients_read_it(api: str) -> None:
    body = reply_writer_for(API_BY_NAME[api]).complete_reply("Let me see.", ("read", '{"path": "a"}'))
    reply = read_reply(recorded(json.dumps(body).encode(), WIRES[api], stream=False))
    assert reply.text == "Let me see."
    assert [(call.name, json.loads(call.arguments)) for call in reply.calls] == [("read", {"path": "a"})]
    assert (reply.finish_reason, reply.has_ended, reply.output_tokens) == (FINISHES[api], True, 7)
    assert reply.wants_tools
    assert reply.deltas == ()


@pytest.mark.parametrize("api", WIRES)
def test_text_does_not_ask_for_tools(api: str) -> None:
    body = reply_writer_for(API_BY_NAME[api]).complete_reply("Hello.")
    assert not read_reply(recorded(json.dumps(body).encode(), WIRES[api], stream=False)).wants_tools


@pytest.mark.parametrize("api", WIRES)
def test_error_in_stream_is_reported(api: str) -> None:
    writer = reply_writer_for(API_BY_NAME[api])
    reply = read_reply(recorded(writer.begin() + writer.error("too hot", "server_error"), WIRES[api]))
    assert (reply.error, reply.has_ended) == ("too hot", False)


def test_nothing_is_corrected() -> None:
    """Two calls on one index are one call to a client, and half of a stream is half of the arguments."""
    first = {"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"x": 1}'}}
    second = {"index": 0, "id": "b", "function": {"name": "g", "arguments": '{"y": 2}'}}
    reply = read_reply(recorded(chunk({"tool_calls": [first]}) + chunk({"tool_calls": [second]})))
    assert reply.calls == (ClientCall("a", "g", '{"x": 1}{"y": 2}'),)
    assert reply.deltas == (CallDelta(0, '{"x": 1}', 1), CallDelta(0, '{"y": 2}', 2))
    assert not reply.has_ended


def test_done_ends_a_reply_without_a_finish_reason() -> None:
    reply = read_reply(recorded(chunk({"content": "hi"}) + b"data: [DONE]\n\n"))
    assert (reply.has_ended, reply.finish_reason) == (True, "")


def test_events_that_are_not_json_are_counted() -> None:
    reply = read_reply(recorded(chunk({"content": "hi"}) + b'data: {"choices": [\n\n' + chunk({}, "stop")))
    assert (reply.text, reply.unreadable_events, reply.events) == ("hi", 1, 3)


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (400, b'{"error": {"message": "no such model"}}', "no such model"),
        (502, b"<html><title>Bad gateway</title></html>", "Bad gateway"),
        (0, b"", "cannot connect"),
    ],
)
def test_error_responses(status: int, body: bytes, error: str) -> None:
    recording = recorded(body, stream=False, status=status, error="" if status else "cannot connect")
    assert read_reply(recording).error == error


@pytest.mark.parametrize("count", [-4, "4", True, None, [4]])
def test_token_counts_that_are_no_numbers_count_nothing(count: object) -> None:
    body = {"choices": [], "usage": {"prompt_tokens": count, "completion_tokens": count}}
    reply = read_reply(recorded(json.dumps(body).encode(), stream=False))
    assert (reply.input_tokens, reply.output_tokens) == (0, 0)


def test_usage_inside_a_choice_is_read() -> None:
    """Moonshot reports the usage there."""
    body = {"choices": [{"delta": {}, "finish_reason": "stop", "usage": {"prompt_tokens": 5, "completion_tokens": 2}}]}
    reply = read_reply(recorded(b"data: " + json.dumps(body).encode() + b"\n\n"))
    assert (reply.input_tokens, reply.output_tokens) == (5, 2)
