"""Faults mixed into recorded replies: the client gets the recorded reply, or an error, and never a wrong reply."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from interlingua.cassettes.cassette_files import CassetteFiles
from interlingua.cassettes.recorded_exchange import RecordedExchange, RecordedUpstream, record_exchange
from interlingua.cassettes.recording_index import RecordingIndex
from interlingua.cassettes.reply_meaning import ReplyMeaning, read_meaning
from interlingua.cli import main
from interlingua.dialects.registry import get_dialect
from interlingua.errors import UsageError
from interlingua.faults.recorded_faults import RECORDED_FAULTS, fault_scripts, find_fault
from interlingua.faults.upstream.recorded_reply import RecordedReplyWriter
from interlingua.faults.upstream.reply_writers import reply_writer_for
from interlingua.wires import WIRES, get_wire
from tests.support.cassette_gateway import Json, cassette_gateway, post

MESSAGES = "anthropic-messages"
BODY: Json = {
    "model": "m",
    "max_tokens": 100,
    "messages": [{"role": "user", "content": "What is the weather in Paris?"}],
    "tools": [{"name": "get_weather", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}}],
}
HEAVY = ("500-huge", "endless-event", "bomb")
UNCHANGED = (
    *("crlf", "cr", "bom", "no-space", "comments", "fields", "blank-lines", "several-lines", "no-last-blank"),
    *(
        "byte-by-byte",
        "split-characters",
        "gzip",
        "deflate",
        "whole-for-stream",
        "stream-for-whole",
        "upstream-headers",
    ),
    *("reset-once", "error-first-once", "429-then-well"),  # the gateway asks again
    "bad-event",  # it is skipped
)
"""Faults after which the client gets the recorded reply. After all others, it gets an error."""


def recorded(wire: str) -> RecordedExchange:
    """Return a recording with text and two calls."""
    writer = reply_writer_for(get_wire(wire).HTTP_API.path.strip("/"))
    data = writer.begin() + writer.text("Let", " me", " see", ".")
    for city in ("Paris", "Oslo"):
        data += writer.call("get_weather", '{"ci', 'ty": "', f'{city}"}}')
    data += writer.end()
    return record_exchange(
        wire=MESSAGES, body=BODY, upstream=RecordedUpstream(wire=wire, model="m"), pieces=[(0.1, data)]
    )


def replay(folder: Path, wire: str, fault: str, stream: bool, **options: Any) -> tuple[int, ReplyMeaning]:
    CassetteFiles(folder, RecordingIndex()).append(recorded(wire))
    stall = 0.3 if stream else 2  # a limit for the whole reply needs more room than one between two pieces
    with cassette_gateway(folder, "replay", fault=fault, stall=stall, **options) as url:
        response = post(url, MESSAGES, {**BODY, "stream": stream})
    return response.status, read_meaning(response.body, MESSAGES)


def check(wire: str, fault: str, status: int, meaning: ReplyMeaning) -> None:
    expected = recorded(wire).meaning
    if fault in UNCHANGED:
        assert (status, meaning) == (200, expected)
        return
    assert meaning.error
    assert expected.text.startswith(meaning.text)
    complete = [call for call in meaning.calls if call.complete]
    assert complete == expected.calls[: len(complete)]
    assert len(complete) < len(expected.calls) or not meaning.stop_reason


def test_every_fault_of_upstreams_that_needs_no_reply_of_its_own_can_be_mixed_in() -> None:
    assert set(UNCHANGED) < set(RECORDED_FAULTS)
    assert len(RECORDED_FAULTS) == 49


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("fault", [fault for fault in RECORDED_FAULTS if fault not in HEAVY])
@pytest.mark.one_row_in(3)
def test_fault_in_a_stream(tmp_path: Path, wire: str, fault: str) -> None:
    status, meaning = replay(tmp_path, wire, fault, stream=True)
    check(wire, fault, status, meaning)


@pytest.mark.slow
@pytest.mark.parametrize("fault", HEAVY)
def test_heavy_fault(tmp_path: Path, fault: str) -> None:
    status, meaning = replay(tmp_path, "openai-chat", fault, stream=True)
    check("openai-chat", fault, status, meaning)


@pytest.mark.parametrize(
    "fault", ["reset-once", "503-empty", "cut-whole-reply", "stream-for-whole", "429-long", "stall-in-call"]
)
def test_fault_in_a_whole_reply(tmp_path: Path, fault: str) -> None:
    status, meaning = replay(tmp_path, "openai-chat", fault, stream=False)
    check("openai-chat", fault, status, meaning)


@pytest.mark.parametrize(
    ("fault", "text", "calls"),
    [
        ("reset-in-text", "Let me", 0),
        ("end-in-text", "Let me", 0),
        ("error-in-text", "Let me", 0),
        ("reset-inside-call", "Let me see.", 1),
        ("end-inside-call", "Let me see.", 1),
        ("error-inside-call", "Let me see.", 1),
    ],
)
@pytest.mark.parametrize("wire", WIRES)
def test_fault_occurs_in_the_middle_of_the_recorded_text_or_call(
    tmp_path: Path, wire: str, fault: str, text: str, calls: int
) -> None:
    status, meaning = replay(tmp_path, wire, fault, stream=True)
    assert (status, meaning.text, sum(call.complete for call in meaning.calls)) == (200, text, calls)


def test_fault_of_one_request_only(tmp_path: Path) -> None:
    CassetteFiles(tmp_path, RecordingIndex()).append(recorded("openai-chat"))
    with cassette_gateway(tmp_path, "replay", fault="503-empty@2") as url:
        statuses = [post(url, MESSAGES, BODY).status for _ in range(3)]
        assert statuses == [200, 503, 200]
        assert post(url, MESSAGES, BODY, x_interlingua_replay="fault=fault-10-503-empty").status == 503


def test_faults_for_recordings_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["faults", "list", "--recorded", "--json"]) == 0
    listed = [fault["name"] for fault in json.loads(capsys.readouterr().out)]
    assert listed == [scenario.name for scenario in RECORDED_FAULTS.values()]


def test_fault_is_found_with_and_without_its_number() -> None:
    assert find_fault("fault-12-crlf") is find_fault("crlf")
    with pytest.raises(UsageError, match="no fault for recorded replies is called 'slow-client'"):
        find_fault("slow-client")


def test_fault_in_a_call_needs_a_call(tmp_path: Path) -> None:
    chunk = b'data: {"choices": [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": "stop"}]}\n\n'
    upstream = RecordedUpstream(wire="openai-chat", model="m")
    exchange = record_exchange(wire=MESSAGES, body=BODY, upstream=upstream, pieces=[(0.1, chunk)])
    CassetteFiles(tmp_path, RecordingIndex()).append(exchange)
    with cassette_gateway(tmp_path, "replay", fault="stall-in-call") as url:
        response = post(url, MESSAGES, BODY)
    assert response.status == 400
    assert "'stall-in-call' occurs in a call, and the recorded reply has none" in response.error


def test_recorded_error_takes_no_fault() -> None:
    upstream = RecordedUpstream(wire="openai-chat", model="m")
    error = record_exchange(wire=MESSAGES, body=BODY, upstream=upstream, pieces=[(0.1, b"{}")], status=400)
    with pytest.raises(UsageError, match="the recorded reply is an error"):
        fault_scripts(find_fault("crlf"), error, get_dialect("standard"), stream=True)


def test_reply_that_was_recorded_whole_is_cut_as_a_stream() -> None:
    body = b'{"choices": [{"index": 0, "message": {"content": "Hello"}, "finish_reason": "stop"}]}'
    upstream = RecordedUpstream(wire="openai-chat", model="m")
    exchange = record_exchange(wire=MESSAGES, body=BODY, upstream=upstream, pieces=[(0.1, body)])
    writer = RecordedReplyWriter(exchange, get_dialect("standard"))
    stream = writer.begin() + writer.text() + writer.end()
    assert stream == writer.hello_stream()
    assert read_meaning(stream, "openai-chat").text == "Hello"
    assert writer.complete_reply("")["choices"][0]["message"]["content"] == "Hello"
