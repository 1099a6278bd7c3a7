"""Unusual SSE framing and invalid events in upstream streams (rows 12 and 13 of the fault table, real sockets)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support import upstream_server as up
from tests.support.gateway_stage import CHAT, GatewayStage, call, stage, stream_response

HELLO = up.ROLE + up.delta("Hello") + up.delta(finish="stop") + up.DONE
OOPS = b"data: {oops\n\n"


@pytest.fixture(scope="module")
def env() -> Iterator[GatewayStage]:
    with stage() as started:
        yield started


ODD: dict[str, bytes] = {
    "CRLF": HELLO.replace(b"\n", b"\r\n"),
    "CR": HELLO.replace(b"\n", b"\r"),
    "mixed ends": HELLO.replace(b"\n\n", b"\r\n\n", 1).replace(b"\n\n", b"\r\r", 1),
    "a byte order mark": b"\xef\xbb\xbf" + HELLO,
    "no space": HELLO.replace(b"data: ", b"data:"),
    "comments": b": hi\n\n" + HELLO.replace(b"data:", b": why\ndata:"),
    "other fields": HELLO.replace(b"data:", b"event: message\nid: 7\nretry: 10\nodd\ndata:"),
    "blank lines": b"\n\n" + HELLO.replace(b"\n\n", b"\n\n\n\n\n"),
    "several lines": HELLO.replace(b'"choices"', b'\ndata: "choices"'),
    "no last blank line": HELLO.rstrip(b"\n"),
    "no last line end, nor [DONE]": HELLO.removesuffix(up.DONE).rstrip(b"\n"),
}


@pytest.mark.parametrize("odd", ODD)
def test_12_unusual_sse_framing_is_parsed(env: GatewayStage, odd: str) -> None:
    for view in env.send_all(env.add_scripts(odd, stream_response(ODD[odd]))).values():
        assert (view.text, view.ended, view.error) == ("Hello", True, "")
        assert (view.log["outcome"], view.log["findings"]) == ("ok", {})


@pytest.mark.parametrize("odd", ["CRLF", "several lines"])
def test_12_stream_in_single_bytes_is_parsed(env: GatewayStage, odd: str) -> None:
    pieces = [ODD[odd][at : at + 1] for at in range(len(ODD[odd]))]
    view = env.send(env.add_scripts(f"{odd} in bytes", (up.send_headers(), up.send_pieces(pieces, 0.0005))))
    assert (view.text, view.ended) == ("Hello", True)
    assert view.log["reads"] > 100


@pytest.mark.parametrize("bad", [OOPS, b"data: 7\n\n", b"data: [1]\n\n", b"data: \xff\n\n", b"data: <html>\n\n"])
def test_13_event_without_valid_json_is_dropped(env: GatewayStage, bad: bytes) -> None:
    data = HELLO.replace(up.delta("Hello"), up.delta("Hel") + bad + up.delta("lo"))
    for view in env.send_all(env.add_scripts(f"13 {bad!r}", stream_response(bad + data))).values():
        assert (view.text, view.ended, view.error) == ("Hello", True, "")
        assert bad.strip() not in view.body
        assert (view.log["outcome"], view.log["findings"]) == ("ok", {"bad-json": 2})


def test_13_invalid_json_inside_a_call_is_an_error(env: GatewayStage) -> None:
    data = up.ROLE + call('{"pa', name="read") + OOPS + call('th": "a"}') + up.delta(finish="tool_calls") + up.DONE
    for view in env.send_all(env.add_scripts("13 call", stream_response(data))).values():
        assert view.error == "the upstream sent an event that cannot be read, inside a call"
        assert (view.calls, view.open_call, view.ended) == ([], ("read", '{"pa'), False)
        assert view.log["outcome"] == "upstream-failed"
        assert view.log["findings"]["bad-json"] == 1


def test_13_too_many_invalid_events_are_an_error(env: GatewayStage) -> None:
    data = HELLO.replace(up.delta("Hello"), up.delta("Hello") + OOPS * 1000)
    for view in env.send_all(env.add_scripts("13 many", stream_response(data))).values():
        assert (view.text, view.error, view.ended) == (
            "Hello",
            "the upstream sent too many events that cannot be read",
            False,
        )
        assert view.log["findings"]["bad-json"] == 100  # each one is reported


def test_13_stream_of_only_invalid_events_is_retried(env: GatewayStage) -> None:
    view = env.send(env.add_scripts("13 only", stream_response(OOPS * 1000), up.chat_stream("Hello")), CHAT)
    assert (view.text, view.ended, view.log["attempts"]) == ("Hello", True, 2)
