"""Files of cassettes: format, folders, and several writers."""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.cassettes.cassette_files import CassetteFiles, cassette_name, load_cassette
from interlingua.cassettes.cassette_format import read_cassette, write_cassette
from interlingua.cassettes.recorded_exchange import RecordedExchange, RecordedUpstream, record_exchange
from interlingua.cassettes.recording_index import RecordingIndex
from interlingua.cassettes.reply_meaning import MAX_DEPTH, CallMeaning
from interlingua.cassettes.request_meaning import read_request_meaning
from interlingua.common.redaction import Redactor
from interlingua.errors import BadInput, BadRequest
from tests.cassettes.requests import conversation

Json = dict[str, Any]
CHAT: Json = {"model": "m", "messages": [{"role": "user", "content": "What is the weather\nin Paris? "}]}
STREAM = (
    b'data: {"choices": [{"index": 0, "delta": {"content": "Sunny"}}]}\n\n',
    b'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n',
)
UPSTREAM = RecordedUpstream(wire="openai-chat", model="kimi-k2", name="local")


def recorded(body: Json = CHAT, pieces: tuple[bytes, ...] = STREAM, **options: Any) -> RecordedExchange:
    timed = [(0.25 * number, data) for number, data in enumerate(pieces, 1)]
    return record_exchange(wire="openai-chat", body=body, upstream=UPSTREAM, pieces=timed, **options)


TEXT = """\
# Recorded by Interlingua. Show it: interlingua cassettes show FILE
version: 1
exchanges:
- request:
    wire: openai-chat
    body:
      model: m
      messages:
      - role: user
        content: |-
          What is the weather
          in Paris? \n\
  meaning:
    text: Sunny
    stop_reason: stop
  upstream:
    wire: openai-chat
    model: kimi-k2
    name: local
  reply:
    id: a1
    created: 1759490000
    completed: 1759490002
    input_tokens: 7
    pieces: 250/66 500/87
    body: |+
      data: {"choices": [{"index": 0, "delta": {"content": "Sunny"}}]}

      data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}

      data: [DONE]

"""


def test_cassette_is_readable() -> None:
    exchange = recorded(reply_id="a1", created=1759490000, completed=1759490002, input_tokens=7)
    assert write_cassette([exchange]) == TEXT
    assert read_cassette(TEXT, "a.yaml") == [exchange]


@given(
    st.dictionaries(st.text(), st.text() | st.integers() | st.lists(st.text())),
    st.lists(st.binary(min_size=1), min_size=1),
    st.sampled_from(["text/event-stream", "application/json", ""]),
)
def test_cassette_is_read_as_it_was_written(fields: Json, pieces: list[bytes], content_type: str) -> None:
    body = {**CHAT, "extra": {name.encode(errors="replace").decode(): 1 for name in fields}}
    exchange = recorded(body, tuple(pieces), content_type=content_type)
    assert read_cassette(write_cassette([exchange, exchange]), "a.yaml") == [exchange, exchange]


def test_later_turn_repeats_nothing() -> None:
    """The tools and messages of the first turn are aliases in the second."""
    first = conversation()
    second = {**first, "messages": [*first["messages"], {"role": "assistant", "content": "It is sunny there."}]}
    exchanges = [
        record_exchange(wire="anthropic-messages", body=body, upstream=UPSTREAM, pieces=[(0.1, STREAM[1])])
        for body in (first, second)
    ]
    text = write_cassette(exchanges)
    assert text.count("Returns the weather.") == text.count("What is the weather in Paris?") == 1
    assert read_cassette(text, "a.yaml") == exchanges


def test_secrets_are_not_written() -> None:
    body: Json = {
        **CHAT,
        "messages": [{"role": "user", "content": "My key is sk-abcdefghijklmnop and hunter2-hunter2."}],
        "mcp_servers": [{"url": "https://a.example", "authorization_token": "topsecret"}],
        "tools": [{"type": "function", "function": {"name": "get", "parameters": {"properties": {"key": {}}}}}],
    }
    stream = (b'data: {"choices": [{"delta": {"content": "Bearer abc', b'defghijk"}, "finish_reason": "stop"}]}\n\n')
    exchange = recorded(body, stream, redactor=Redactor(["hunter2-hunter2"]))
    text = write_cassette([exchange])
    assert not any(secret in text for secret in ("abcdef", "hunter2", "topsecret"))
    assert "My key is *** and ***." in text
    assert '"key":{}' in text.replace(" ", "").replace("\n", "").replace("key:{}", '"key":{}')
    assert sum(piece.size for piece in exchange.reply.pieces) == len(exchange.reply.body)


def test_argument_that_is_called_key_is_not_a_secret() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "get", "arguments": '{"key": "colour"}'}}
    body = {**CHAT, "messages": [*CHAT["messages"], {"role": "assistant", "content": None, "tool_calls": [call]}]}
    assert '{"key": "colour"}' in recorded(body).request.body["messages"][1]["tool_calls"][0]["function"]["arguments"]


def test_unpaired_surrogate_is_replaced() -> None:
    body = {**CHAT, "messages": [{"role": "user", "content": "a\ud83d"}]}
    (exchange,) = read_cassette(write_cassette([recorded(body)]), "a.yaml")
    assert exchange.request.body["messages"][0]["content"] == "a\ufffd"


def test_exchange_without_reply_cannot_be_recorded() -> None:
    with pytest.raises(BadInput, match="the upstream sent nothing"):
        recorded(pieces=())
    with pytest.raises(BadRequest, match="messages"):
        recorded({"model": "m"})


def test_deepest_request_that_is_recorded_can_be_read() -> None:
    def nested(levels: int) -> Json:
        value: Json = {}
        for _ in range(levels):
            value = {"a": value}
        return {**CHAT, "metadata": value}

    exchange = recorded(nested(MAX_DEPTH - 2))
    assert read_cassette(write_cassette([exchange]), "a.yaml") == [exchange]
    for levels in (MAX_DEPTH - 1, 5000):
        with pytest.raises(BadInput, match="nested more than 200 levels"):
            recorded(nested(levels))
        with pytest.raises(BadInput, match="nested more than 200 levels"):
            read_request_meaning("openai-chat", nested(levels))


@pytest.mark.parametrize("levels", [MAX_DEPTH, 500, 900])
def test_arguments_that_are_nested_deeply_are_recorded_as_text(levels: int) -> None:
    arguments = '{"a":' * (levels + 1) + "1" + "}" * (levels + 1)
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": arguments}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    body = {**CHAT, "messages": [*CHAT["messages"], message], "tools": [tool]}
    reply = {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    exchange = recorded(body, (json.dumps(reply).encode(),))
    assert exchange.meaning.calls == [CallMeaning(name="f", arguments=arguments)]
    assert read_cassette(write_cassette([exchange]), "a.yaml") == [exchange]
    read_request_meaning("openai-chat", body)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("version: 2\nexchanges: []\n", "a.yaml has version 2 of the format, not 1"),
        ("just text", "a.yaml is not a cassette"),
        ("version: 1\nexchanges: [\n", "a.yaml:3: "),
        ("version: 1\nexchanges:\n- request: {}\n", r"a.yaml: .*missing required field .* `\$.exchanges\[0\]"),
        (TEXT.replace("250/66", "250/x"), "a.yaml: .*invalid literal"),
        ("version: 1\nexchanges: !!python/object:os.system []\n", "a.yaml:2: could not determine a constructor"),
        ("version: 1\na: &a [x]\nexchanges: &b [*b]\n", "more than 5,000,000 values"),
        ("[" * 100_000, "a.yaml:1: nested more than 300 levels deep"),
        ("- " * 100_000, "a.yaml:1: nested more than 300 levels deep"),
        (
            "\n".join(
                [
                    "version: 1",
                    "a0: &a0 [1, 2]",
                    *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)),
                    "exchanges: []",
                ]
            ),
            "more than 5,000,000 values",
        ),
    ],
)
def test_unreadable_cassette_is_an_error(text: str, problem: str) -> None:
    with pytest.raises(BadInput, match=problem):
        read_cassette(text, "a.yaml")


# ── files ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def files_of(path: Path) -> CassetteFiles:
    return CassetteFiles(path, RecordingIndex())


def test_turns_of_a_conversation_are_in_one_file(tmp_path: Path) -> None:
    files = files_of(tmp_path / "new" / "folder")
    second = {**CHAT, "messages": [*CHAT["messages"], {"role": "assistant", "content": "Sunny."}]}
    other = {**CHAT, "messages": [{"role": "user", "content": "<env>x</env>"}]}
    paths = [files.append(recorded(body)) for body in (CHAT, second, other)]
    assert paths[0] == paths[1]
    assert paths[0].name.startswith("what-is-the-weather-in-paris-")
    assert paths[2].name.startswith("conversation-")
    assert paths[0].name == cassette_name(recorded(second))
    assert [one.number for one in files.index.recordings] == [1, 2, 1]
    assert len(load_cassette(files.path)) == 3
    assert sorted(path.name for path in files.path.iterdir()) == sorted({path.name for path in paths})


def test_one_file_has_all_exchanges(tmp_path: Path) -> None:
    files = files_of(tmp_path / "test_it.yaml")
    other = {**CHAT, "messages": [{"role": "user", "content": "Hi"}]}
    assert {files.append(recorded(body)) for body in (CHAT, other)} == {files.path}
    assert len(load_cassette(files.path)) == 2


def test_older_recordings_are_replaced_in_a_new_session(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    files_of(path).append(recorded(), started=time.time() - 1)
    os.utime(path, (1, 1))
    files = files_of(path)
    for _ in range(2):
        files.append(recorded(), started=time.time() - 1)
    assert len(load_cassette(path)) == 2


def test_complete_recording_replaces_an_incomplete_one(tmp_path: Path) -> None:
    files = files_of(tmp_path)
    files.append(recorded(is_complete=False))
    files.append(recorded())
    assert [one.exchange.reply.is_complete for one in load_cassette(tmp_path).recordings] == [True]


def test_files_of_other_processes_are_found(tmp_path: Path) -> None:
    files = files_of(tmp_path)
    files.load()
    assert not files.refresh()
    path = files_of(tmp_path).append(recorded())
    assert files.refresh()
    assert len(files.index) == 1
    path.unlink()
    assert files.refresh()
    assert len(files.index) == 0


def _append_some(path: str, process: int) -> None:
    for number in range(4):
        body = {**CHAT, "temperature": process + number / 10}
        files_of(Path(path)).append(recorded(body))


def test_several_processes_record_into_one_file(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_append_some, args=(str(tmp_path), n)) for n in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert len(load_cassette(tmp_path)) == 8
    assert len(list(tmp_path.iterdir())) == 1


def test_missing_or_unwritable_cassette_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no cassette at"):
        load_cassette(tmp_path / "missing")
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match="cannot write"):
        files_of(tmp_path / "file" / "folder").append(recorded())
    with pytest.raises(BadInput, match="cannot create"):
        files_of(tmp_path / "file" / "folder").create_folder()
    (tmp_path / "binary.yaml").write_bytes(b"\xff")
    with pytest.raises(BadInput, match="cannot read"):
        load_cassette(tmp_path / "binary.yaml")
