"""Recording and replay by the gateway: every client API, every upstream API, cuts, times, misses."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anthropic
import msgspec
import openai
import pytest

import interlingua as il
from interlingua.cassettes.cassette_files import load_cassette, read_file, write_file
from interlingua.cassettes.recorded_exchange import RecordedExchange, ReplyPiece, record_exchange
from interlingua.cassettes.reply_meaning import CallMeaning, ReplyMeaning, read_meaning
from interlingua.faults.upstream.reply_writers import reply_writer_for
from interlingua.gateway.cassettes import recording
from interlingua.gateway.settings.schema import Upstream
from interlingua.wires import WIRES, get_wire
from tests.support import upstream_server as up
from tests.support.cassette_gateway import Json, Response, cassette_gateway, post
from tests.support.upstream_server import UpstreamServer

CHAT, MESSAGES, RESPONSES = "openai-chat", "anthropic-messages", "openai-responses"
SCHEMA: Json = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
ASKED = "Please do get_weather(city='Paris') and get_weather(city='Oslo')"


def request_body(wire: str, model: str, text: str = ASKED, **fields: Any) -> Json:
    """Return a request with one tool on any wire."""
    body: Json = {
        "model": model,
        "max_tokens": 500,
        "messages": [{"role": "user", "content": text}],
        "tools": [{"name": "get_weather", "description": "The weather.", "input_schema": SCHEMA}],
    }
    return {**(body if wire == MESSAGES else il.translate_request(body, MESSAGES, wire)), **fields}


def meaning(response: Response, wire: str) -> ReplyMeaning:
    assert response.status == 200, response.body
    return read_meaning(response.body, wire)


# ── replay ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("model", ["demo/kimi_k2", "demo/qwen3_coder", "demo/harmony"])
def test_replay_has_the_same_bytes_on_the_same_api_and_the_same_meaning_on_others(tmp_path: Path, model: str) -> None:
    recorded: dict[tuple[str, bool], Response] = {}
    for wire in WIRES:
        for stream in (True, False):
            with cassette_gateway(tmp_path / f"{wire}-{stream}", "record") as url:
                recorded[wire, stream] = post(url, wire, request_body(wire, model, stream=stream))
    expected = meaning(recorded[CHAT, True], CHAT)
    assert [call.arguments for call in expected.calls] == [{"city": "Paris"}, {"city": "Oslo"}]
    for (recorded_wire, recorded_stream), original in recorded.items():
        with cassette_gateway(tmp_path / f"{recorded_wire}-{recorded_stream}", "replay") as url:
            again = post(url, recorded_wire, request_body(recorded_wire, model, stream=recorded_stream))
            assert again.body == original.body
            for wire in WIRES:
                for stream in (True, False):
                    replayed = post(url, wire, request_body(wire, model, stream=stream))
                    assert meaning(replayed, wire) == expected, (recorded_wire, recorded_stream, wire, stream)


def test_replay_has_the_recorded_time_of_completion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(time=lambda: 1_000_000_000.9, monotonic=time.monotonic)
    body = request_body(RESPONSES, "demo/kimi_k2", stream=False)
    with cassette_gateway(tmp_path, "record") as url:
        monkeypatch.setattr(recording, "time", clock)
        original = post(url, RESPONSES, body)
    with cassette_gateway(tmp_path, "replay") as url:
        assert post(url, RESPONSES, body).body == original.body
    assert json.loads(original.body)["completed_at"] == 1_000_000_000


@pytest.mark.parametrize("upstream_wire", WIRES)
@pytest.mark.parametrize("stream", [True, False])
def test_replay_of_every_upstream_api_has_the_same_bytes(
    tmp_path: Path, upstream: UpstreamServer, upstream_wire: str, stream: bool
) -> None:
    model = f"reply-{upstream_wire}-{stream}"
    writer = reply_writer_for(get_wire(upstream_wire).HTTP_API.path.strip("/"))
    writer.is_streaming = stream
    upstream.add(model, *writer.reply_script("Let me see.", ("get_weather", '{"city": "Paris"}')))
    upstreams = {"local": Upstream(url=upstream.url, api=upstream_wire, profile="any", key="upstream-secret-key")}  # type: ignore[arg-type]
    expected = ReplyMeaning(
        text="Let me see.",
        calls=[CallMeaning(name="get_weather", arguments={"city": "Paris"})],
        stop_reason="tool_calls",
    )
    for wire in WIRES:
        body, path = request_body(wire, model, stream=stream), tmp_path / wire
        with cassette_gateway(path, "record", upstreams) as url:
            recorded = post(url, wire, body, authorization="Bearer client-secret-key-1234")
        requests = upstream.count(model)
        with cassette_gateway(path, "replay") as url:
            replayed = post(url, wire, body)
        assert replayed.body == recorded.body
        assert meaning(replayed, wire) == expected
        assert upstream.count(model) == requests
        (exchange,) = (one.exchange for one in load_cassette(path).recordings)
        assert exchange.meaning == expected
        text = next(path.iterdir()).read_text()
        assert "secret-key" not in text


@pytest.mark.parametrize("cut", ["recorded", "whole", "event", "character", "byte", "random", "random:7"])
def test_cut_does_not_change_the_reply(tmp_path: Path, cut: str) -> None:
    body = request_body(MESSAGES, "demo/kimi_k2", stream=True)
    with cassette_gateway(tmp_path, "record") as url:
        recorded = post(url, MESSAGES, body)
    with cassette_gateway(tmp_path, "replay", cut=cut) as url:
        assert meaning(post(url, MESSAGES, body), MESSAGES) == meaning(recorded, MESSAGES)
        for wire in WIRES:
            response = post(url, wire, request_body(wire, "demo/kimi_k2", stream=True))
            assert meaning(response, wire) == meaning(recorded, MESSAGES)


def test_replay_takes_as_long_as_recorded_if_wanted(tmp_path: Path) -> None:
    body = request_body(CHAT, "demo/kimi_k2", stream=True)
    with cassette_gateway(tmp_path, "record") as url:
        recorded = post(url, CHAT, body)
    (path,) = tmp_path.glob("*.yaml")
    (exchange,) = read_file(path)
    slow = tuple(
        ReplyPiece(0.4 * number / len(exchange.reply.pieces), piece.size)
        for number, piece in enumerate(exchange.reply.pieces, 1)
    )
    write_file(path, [_with_pieces(exchange, slow)])
    with cassette_gateway(tmp_path, "replay", speed=1) as url:
        for options, least in (("", 0.4), ("speed=4", 0.1), ("speed=0", 0.0)):
            started = time.monotonic()
            assert post(url, CHAT, body, x_interlingua_replay=options).status == recorded.status
            assert time.monotonic() - started >= least


def _with_pieces(exchange: RecordedExchange, pieces: tuple[ReplyPiece, ...]) -> RecordedExchange:
    return msgspec.structs.replace(exchange, reply=msgspec.structs.replace(exchange.reply, pieces=pieces))


def test_options_of_a_request_are_checked(tmp_path: Path) -> None:
    body = request_body(CHAT, "demo/kimi_k2")
    with cassette_gateway(tmp_path, "record") as url:
        post(url, CHAT, body)
    with cassette_gateway(tmp_path, "replay") as url:
        refused = post(url, CHAT, body, x_interlingua_replay="cut=words")
        assert (refused.status, "cannot be cut by 'words'" in refused.error) == (400, True)
        unknown = post(url, CHAT, body, x_interlingua_replay="fault=reset-in-txt")
        assert (unknown.status, "did you mean 'reset-in-text'?" in unknown.error) == (400, True)


def test_replies_to_one_request_are_replayed_in_order(tmp_path: Path, upstream: UpstreamServer) -> None:
    model = "in-order"
    for text in ("one", "two"):
        upstream.add(model, up.chat_stream(text))
    upstreams, body = {"local": Upstream(url=upstream.url, profile="any")}, request_body(MESSAGES, model, stream=True)
    with cassette_gateway(tmp_path, "record", upstreams) as url:
        recorded = [post(url, MESSAGES, body).body for _ in range(2)]
    with cassette_gateway(tmp_path, "replay") as url:
        replayed = [post(url, MESSAGES, body).body for _ in range(4)]
    assert replayed[:2] == recorded
    assert [read_meaning(data, MESSAGES).text for data in replayed] == ["one", "two", "two", "two"]
    ids = [json.loads(data.split(b"\n")[1].removeprefix(b"data: "))["message"]["id"] for data in replayed]
    assert len(set(ids)) == 4, "clients take two replies with one id for one"


def test_models_and_token_counts_need_no_upstream(tmp_path: Path) -> None:
    with cassette_gateway(tmp_path, "record") as url:
        post(url, CHAT, request_body(CHAT, "demo/kimi_k2"))
    with cassette_gateway(tmp_path, "replay") as url:
        client = openai.OpenAI(base_url=f"{url}/v1", api_key="any")
        assert [model.id for model in client.models.list()] == ["demo/kimi_k2"]
        messages = anthropic.Anthropic(base_url=url, api_key="any").messages
        counted = messages.count_tokens(model="demo/kimi_k2", messages=[{"role": "user", "content": "hi"}])
        assert counted.input_tokens > 0


# ── misses ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("stream", [True, False])
def test_request_without_recording_fails_with_the_difference(tmp_path: Path, wire: str, stream: bool) -> None:
    with cassette_gateway(tmp_path, "record") as url:
        post(url, CHAT, request_body(CHAT, "demo/kimi_k2"))
    with cassette_gateway(tmp_path, "replay") as url:
        response = post(url, wire, request_body(wire, "demo/kimi_k2", ASKED.replace("Oslo", "Rome"), stream=stream))
    assert response.status == 400
    assert "no recording for this request. The nearest one is please-do-get-weather" in response.error
    assert re.search(
        r"message 1 \(user\): differs in character \d+: “….*Rome'\)”, recorded “….*Oslo'\)”", response.error
    )
    assert f"start the gateway with --hybrid {tmp_path}" in response.error
    assert "no recording" in tmp_path.with_suffix(".log").read_text()


def test_sdk_does_not_retry_a_miss(tmp_path: Path) -> None:
    tmp_path.joinpath("cassette").mkdir()
    with cassette_gateway(tmp_path / "cassette", "replay") as url:
        client = openai.OpenAI(base_url=f"{url}/v1", api_key="any", max_retries=5)
        with pytest.raises(openai.BadRequestError, match=r"the cassette \S+ has no recordings") as error:
            client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}])
    assert error.value.code == "cassette_miss"


def test_rules_of_the_settings_apply(tmp_path: Path) -> None:
    with cassette_gateway(tmp_path, "record") as url:
        recorded = post(url, CHAT, request_body(CHAT, "demo/kimi_k2"))
    other = request_body(CHAT, "demo/other", ASKED.replace("Oslo", "Rome"))
    with cassette_gateway(tmp_path, "replay", ignore=["model"], replace={"Oslo|Rome": "a city"}) as url:
        assert meaning(post(url, CHAT, other), CHAT) == meaning(recorded, CHAT)


# ── recording ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_hybrid_records_what_is_missing(tmp_path: Path, upstream: UpstreamServer) -> None:
    upstreams = {"local": Upstream(url=upstream.url, profile="any")}
    for model in ("hybrid-1", "hybrid-2"):
        upstream.add(model, up.chat_stream("Hello"))
    for _ in range(2):
        with cassette_gateway(tmp_path, "hybrid", upstreams) as url:
            for model in ("hybrid-1", "hybrid-2"):
                assert meaning(post(url, CHAT, request_body(CHAT, model)), CHAT).text == "Hello"
    assert (upstream.count("hybrid-1"), upstream.count("hybrid-2")) == (1, 1)
    assert len(load_cassette(tmp_path)) == 2


@pytest.mark.parametrize("number", range(4))
def test_hybrid_asks_once_for_requests_that_follow_at_once(
    tmp_path: Path, upstream: UpstreamServer, number: int
) -> None:
    upstreams, model = {"local": Upstream(url=upstream.url, profile="any")}, f"at-once-{number}"
    for text in ("one", "two"):
        upstream.add(model, up.chat_stream(text))
    body = request_body(CHAT, model, stream=True)
    with cassette_gateway(tmp_path, "hybrid", upstreams) as url:
        assert [meaning(post(url, CHAT, body), CHAT).text for _ in range(3)] == ["one"] * 3
    assert upstream.count(model) == 1


def test_hybrid_replays_all_recorded_replies_to_a_request_in_order(tmp_path: Path, upstream: UpstreamServer) -> None:
    upstreams, body = {"local": Upstream(url=upstream.url, profile="any")}, request_body(CHAT, "several")
    for text in ("one", "two"):
        upstream.add("several", up.chat_stream(text))
    with cassette_gateway(tmp_path, "record", upstreams) as url:
        assert [meaning(post(url, CHAT, body), CHAT).text for _ in range(2)] == ["one", "two"]
    for _ in range(2):
        with cassette_gateway(tmp_path, "hybrid", upstreams) as url:
            texts = [meaning(post(url, CHAT, body), CHAT).text for _ in range(3)]
            assert texts == ["one", "two", "two"]
    assert upstream.count("several") == 2


def test_new_recording_replaces_those_of_earlier_runs(tmp_path: Path, upstream: UpstreamServer) -> None:
    upstreams, body = {"local": Upstream(url=upstream.url, profile="any")}, request_body(CHAT, "again")
    for text in ("one", "two", "three"):
        upstream.add("again", up.chat_stream(text))
    for requests in (1, 2):
        with cassette_gateway(tmp_path, "record", upstreams) as url:
            for _ in range(requests):
                post(url, CHAT, body)
        time.sleep(0.1)  # the time of a file and the clock may differ by some milliseconds
    assert [one.exchange.meaning.text for one in load_cassette(tmp_path).recordings] == ["two", "three"]


ERROR = b'{"error": {"message": "%b", "type": "invalid_request_error", "param": null, "code": null}}'


@pytest.mark.parametrize("wire", WIRES)
def test_error_that_the_request_causes_is_recorded(tmp_path: Path, upstream: UpstreamServer, wire: str) -> None:
    model = f"error-{wire}"
    upstream.add(model, up.send_response("400 Bad Request", ERROR % b"temperature is too high"))
    upstreams, body = {"local": Upstream(url=upstream.url, profile="any")}, request_body(wire, model, stream=True)
    with cassette_gateway(tmp_path, "record", upstreams) as url:
        recorded = post(url, wire, body)
    with cassette_gateway(tmp_path, "replay") as url:
        replayed = post(url, wire, body)
    assert (replayed.status, replayed.error) == (recorded.status, recorded.error)
    assert (recorded.status, "temperature is too high" in recorded.error) == (400, True)


@pytest.mark.parametrize(
    ("name", "script"),
    [
        ("401", [up.send_response("401 Unauthorized", ERROR % b"wrong key")]),
        (
            "429",
            [up.send_response("429 Too Many Requests", ERROR % b"slow down", "application/json", "retry-after: 99")],
        ),
        ("503", [up.send_response("503 Unavailable", ERROR % b"busy")]),
        ("reset", [up.reset()]),
        ("cut", up.stream_response(up.ROLE + up.delta("Hel"))),
        ("event", up.stream_response(up.ROLE + up.delta("Hel") + up.event({"error": {"message": "overloaded"}}))),
    ],
)
def test_failure_that_may_pass_is_not_recorded(
    tmp_path: Path, upstream: UpstreamServer, name: str, script: up.Script
) -> None:
    model = f"failure-{name}"
    upstream.add(model, *script)
    upstreams = {"local": Upstream(url=upstream.url, profile="any")}
    with cassette_gateway(tmp_path, "record", upstreams) as url:
        post(url, CHAT, request_body(CHAT, model, stream=True))
    assert not list(tmp_path.glob("*.yaml"))


def test_reply_whose_client_left_is_replayed_but_not_taken_for_complete(
    tmp_path: Path, upstream: UpstreamServer
) -> None:
    model = "left"
    start = up.ROLE + up.delta("Hello")
    upstream.add(model, *up.stream_response(start), up.wait(30))
    upstream.add(model, up.chat_stream("Hello", " again"))
    upstreams, body = {"local": Upstream(url=upstream.url, profile="any")}, request_body(CHAT, model, stream=True)
    with cassette_gateway(tmp_path, "record", upstreams) as url:
        post(url, CHAT, body, stop_after=20)
        _wait_for(lambda: len(load_cassette(tmp_path)) == 1)
    with cassette_gateway(tmp_path, "replay") as url:
        assert b"Hello" in post(url, CHAT, body).body
    with cassette_gateway(tmp_path, "hybrid", upstreams) as url:
        assert meaning(post(url, CHAT, body), CHAT).text == "Hello again"
    (recording,) = load_cassette(tmp_path).recordings
    assert recording.exchange.reply.is_complete


def _wait_for(condition: Any) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_search_that_the_gateway_runs_is_replayed(tmp_path: Path, upstream: UpstreamServer) -> None:
    """The model is asked twice for one reply, so that there are two recordings."""
    model, search = "rounds", "tool_search_tool_bm25"
    for name, arguments in ((search, '{"query": "weather"}'), ("get_forecast", "{}")):
        stream = up.ROLE + up.call(arguments, name=name) + up.delta(finish="tool_calls") + up.DONE
        upstream.add(model, *up.stream_response(stream))
    forecast = {
        "name": "get_forecast",
        "description": "Weather",
        "input_schema": {"type": "object"},
        "defer_loading": True,
    }
    body: Json = {
        "model": model,
        "max_tokens": 100,
        "stream": True,
        "tools": [{"type": f"{search}_20251119", "name": search}, forecast],
        "messages": [{"role": "user", "content": "Will it rain?"}],
    }
    upstreams = {"local": Upstream(url=upstream.url, profile="any")}
    with cassette_gateway(tmp_path, "record", upstreams) as url:
        recorded = post(url, MESSAGES, body)
    assert len(load_cassette(tmp_path)) == 2
    with cassette_gateway(tmp_path, "replay") as url:
        replayed = post(url, MESSAGES, body)
    assert b"get_forecast" in recorded.body
    assert replayed.body == recorded.body


def test_response_that_continues_another_is_replayed(tmp_path: Path) -> None:
    def converse(url: str) -> list[str]:
        client = openai.OpenAI(base_url=f"{url}/v1", api_key="any")
        first = client.responses.create(model="demo/kimi_k2", input="Hello")
        second = client.responses.create(model="demo/kimi_k2", input="And now?", previous_response_id=first.id)
        return [first.id, first.output_text, second.id, second.output_text]

    path = tmp_path / "cassette"
    with cassette_gateway(path, "record") as url:
        recorded = converse(url)
    path.with_suffix(".db").unlink()
    with cassette_gateway(path, "replay") as url:
        assert converse(url) == recorded


def test_dialect_of_the_user_is_needed_for_replay(tmp_path: Path) -> None:
    body = request_body(CHAT, "demo/kimi_k2")
    with cassette_gateway(tmp_path, "record") as url:
        post(url, CHAT, body)
    (path,) = tmp_path.glob("*.yaml")
    path.write_text(path.read_text().replace("dialect: kimi_k2", "dialect: my_own"))
    with cassette_gateway(tmp_path, "replay") as url:
        response = post(url, CHAT, body)
    assert response.status == 400
    assert "the dialect 'my_own' of the recording is not known (add it to `dialects` in the settings" in response.error


@pytest.mark.parametrize("failure", [RecursionError("too deep"), ValueError("odd")])
def test_exchange_that_cannot_be_recorded_does_not_stop_the_recording_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    def fail_once(**_: Any) -> RecordedExchange:
        monkeypatch.setattr(recording, "record_exchange", record_exchange)
        raise failure

    monkeypatch.setattr(recording, "record_exchange", fail_once)
    folder = tmp_path / "cassettes"
    with cassette_gateway(folder, "record") as url:
        for text in ("One", "Two"):
            assert post(url, CHAT, request_body(CHAT, "demo/kimi_k2", text)).status == 200
    (path,) = folder.glob("*.yaml")
    assert path.name.startswith("two-")
    assert str(failure) in folder.with_suffix(".log").read_text()


def test_folder_of_recordings_is_private(tmp_path: Path) -> None:
    for mode in ("record", "hybrid"):
        with cassette_gateway(tmp_path / mode, mode):
            assert (tmp_path / mode).stat().st_mode & 0o777 == 0o700


def test_name_of_the_recorded_upstream_cannot_forge_a_header(tmp_path: Path) -> None:
    body = request_body(CHAT, "demo/kimi_k2")
    with cassette_gateway(tmp_path, "record") as url:
        post(url, CHAT, body)
    (path,) = tmp_path.glob("*.yaml")
    path.write_text(path.read_text().replace("name: demo\n", 'name: "a\\r\\nset-cookie: x=1"\n'))
    with cassette_gateway(tmp_path, "replay") as url:
        response = post(url, CHAT, body)
    assert (response.status, response.headers["x-interlingua-upstream"]) == (200, "cassette")
    assert "set-cookie" not in response.headers
