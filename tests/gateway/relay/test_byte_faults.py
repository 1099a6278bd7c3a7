"""What a gateway must survive of odd bytes in a stream: rows 12 and 13 of the table of faults, on real sockets."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support import upstream_server as up
from tests.support.gateway_stage import CHAT, GatewayStage, call, stage, stream_response

HELLO = up.ROLE + up.delta("Hello") + up.delta(finish="stop") + up.DONE
OOPS = b"data: {oops\n\n"


@pytest.fixture(scope="module")
def on() -> Iterator[GatewayStage]:
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
def test_12_odd_events_are_events(on: GatewayStage, odd: str) -> None:
    for heard in on.send_all(on.add_scripts(odd, stream_response(ODD[odd]))).values():
        assert (heard.text, heard.ended, heard.error) == ("Hello", True, "")
        assert (heard.log["outcome"], heard.log["findings"]) == ("ok", {})


@pytest.mark.parametrize("odd", ["CRLF", "several lines"])
def test_12_byte_by_byte(on: GatewayStage, odd: str) -> None:
    pieces = [ODD[odd][at : at + 1] for at in range(len(ODD[odd]))]
    heard = on.send(on.add_scripts(f"{odd} in bytes", (up.send_headers(), up.send_pieces(pieces, 0.0005))))
    assert (heard.text, heard.ended) == ("Hello", True)
    assert heard.log["reads"] > 100


@pytest.mark.parametrize("bad", [OOPS, b"data: 7\n\n", b"data: [1]\n\n", b"data: \xff\n\n", b"data: <html>\n\n"])
def test_13_an_event_that_is_no_json_is_dropped(on: GatewayStage, bad: bytes) -> None:
    data = HELLO.replace(up.delta("Hello"), up.delta("Hel") + bad + up.delta("lo"))
    for heard in on.send_all(on.add_scripts(f"13 {bad!r}", stream_response(bad + data))).values():
        assert (heard.text, heard.ended, heard.error) == ("Hello", True, "")
        assert bad.strip() not in heard.body
        assert (heard.log["outcome"], heard.log["findings"]) == ("ok", {"bad-json": 2})


def test_13_inside_a_call_it_is_an_error(on: GatewayStage) -> None:
    data = up.ROLE + call('{"pa', name="read") + OOPS + call('th": "a"}') + up.delta(finish="tool_calls") + up.DONE
    for heard in on.send_all(on.add_scripts("13 call", stream_response(data))).values():
        assert heard.error == "the upstream sent an event that cannot be read, inside a call"
        assert (heard.calls, heard.open_call, heard.ended) == ([], ("read", '{"pa'), False)
        assert heard.log["outcome"] == "upstream-failed"
        assert heard.log["findings"]["bad-json"] == 1


def test_13_too_many_are_no_reply(on: GatewayStage) -> None:
    data = HELLO.replace(up.delta("Hello"), up.delta("Hello") + OOPS * 1000)
    for heard in on.send_all(on.add_scripts("13 many", stream_response(data))).values():
        assert (heard.text, heard.error, heard.ended) == (
            "Hello",
            "the upstream sent too many events that cannot be read",
            False,
        )
        assert heard.log["findings"]["bad-json"] == 100  # of which each is told


def test_13_nothing_else_is_asked_again(on: GatewayStage) -> None:
    heard = on.send(on.add_scripts("13 only", stream_response(OOPS * 1000), up.chat_stream("Hello")), CHAT)
    assert (heard.text, heard.ended, heard.log["attempts"]) == ("Hello", True, 2)
