"""SSE decoder and encoder. Each row is decoded whole, byte by byte, at every two-piece cut and at random cuts."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from interlingua.errors import UpstreamError, UsageError
from interlingua.wires.streaming import sse
from interlingua.wires.streaming.sse import MAX_BLOCK_LINES, SseDecoder, SseMessage, encode_event
from tests.support.growth import check_growth

BOM = b"\xef\xbb\xbf"

Fields = tuple[str | None, str, str | None]  # data (None: the block had none), event, id

A: Fields = ("a", "", None)
B: Fields = ("b", "", None)
NO_DATA: Fields = (None, "", None)


def rows(names: str, table: Iterable[tuple[Any, ...]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(names.split(), [pytest.param(*values, id=name) for name, *values in table])


def decode(pieces: Iterable[bytes], limit: int = 1 << 20) -> list[SseMessage]:
    decoder = SseDecoder(limit)
    messages = [message for piece in pieces for message in decoder.feed(piece)]
    messages += decoder.close()
    assert decoder.close() == [], "the decoder still buffered something"
    return messages


def without_blank(messages: Iterable[SseMessage]) -> list[SseMessage]:
    """Drop messages of blank lines only: whether there is one at the end depends on the cut of a last "\\r\\n"."""
    return [message for message in messages if message.raw.strip(b"\r\n")]


def fields_of(messages: Iterable[SseMessage]) -> list[Fields]:
    return [(m.data if m.has_data else None, m.event, m.id) for m in without_blank(messages)]


def cuts(raw: bytes) -> Iterator[list[bytes]]:
    yield [raw]
    yield [raw[i : i + 1] for i in range(len(raw))]
    for i in range(len(raw) + 1):
        yield [raw[:i], raw[i:]]  # the first and the last of these have an empty read
    rng = random.Random(len(raw))
    for _ in range(30):
        at = sorted(rng.choices(range(len(raw) + 1), k=rng.randint(1, 8)))
        yield [raw[i:j] for i, j in zip([0, *at], [*at, len(raw)], strict=True)]


def check(raw: bytes, expected: list[Fields], missing: bytes = b"") -> None:
    """`missing`: the bytes that close() adds to the raw of a truncated block."""
    for pieces in cuts(raw):
        messages = decode(pieces)
        assert fields_of(messages) == expected, pieces
        assert b"".join(m.raw for m in messages) == raw.removeprefix(BOM) + missing, pieces
        assert all(m.closed for m in messages[:-1]), pieces
        assert all(m.closed == (not missing) for m in messages[-1:]), pieces
        for message in messages:  # its raw has the same meaning in another stream
            alone = without_blank(decode([b"\n", message.raw]))
            assert fields_of(alone) == fields_of([message]), pieces
            assert all(m.closed for m in alone), pieces


ROWS: list[tuple[str, bytes, list[Fields]]] = [
    # line ends
    ("lf", b"data: a\n\ndata: b\n\n", [A, B]),
    ("crlf", b"data: a\r\n\r\ndata: b\r\n\r\n", [A, B]),
    ("cr", b"data: a\r\rdata: b\r\r", [A, B]),
    ("crlf then lf", b"data: a\r\n\ndata: b\n\r\n", [A, B]),
    ("cr then crlf", b"data: a\r\r\ndata: b\n\r", [A, B]),
    ("lf then cr", b"data: a\n\rdata: b\r\n\r", [A, B]),
    ("all in one block", b"data: a\rdata: b\ndata: c\r\n\n", [("a\nb\nc", "", None)]),
    ("other line separators are data", "data: \v\f\x1c\x85\u2028b\n\n".encode(), [("\v\f\x1c\x85\u2028b", "", None)]),
    # blank lines
    ("nothing", b"", []),
    ("only blank lines", b"\n\r\n\r\n\n", []),
    ("blank lines first", b"\n\r\n\rdata: a\n\n", [A]),
    ("blank lines between", b"data: a\n\n\n\r\n\r\rdata: b\n\n", [A, B]),
    ("blank lines last", b"data: a\n\n\r\n\n", [A]),
    ("a space is not blank", b"data: a\n \ndata: b\n\n", [("a\nb", "", None)]),
    # data
    ("several lines", b"data: a\ndata: b\ndata: c\n\n", [("a\nb\nc", "", None)]),
    ("data lines with another field between", b"data: a\nid: 1\ndata: b\n\n", [("a\nb", "", "1")]),
    ("an empty line in the middle", b"data: a\ndata:\ndata: b\n\n", [("a\n\nb", "", None)]),
    ("two empty lines", b"data\ndata\n\n", [("\n", "", None)]),
    ("empty", b"data:\n\n", [("", "", None)]),
    ("empty after a space", b"data: \n\n", [("", "", None)]),
    ("no colon", b"data\n\n", [("", "", None)]),
    ("no space", b"data:a\n\n", [A]),
    ("one space is removed", b"data:  a \n\n", [(" a ", "", None)]),
    ("a tab is not removed", b"data:\ta\n\n", [("\ta", "", None)]),
    ("colons", b'data: {"a":1}\ndata:: b\n\n', [('{"a":1}\n: b', "", None)]),
    # event, id and the rest
    ("event", b"event: ping\ndata: {}\n\n", [("{}", "ping", None)]),
    ("event after data", b"data: {}\nevent:ping\n\n", [("{}", "ping", None)]),
    ("the last event counts", b"event: a\nevent: b\ndata: 1\n\n", [("1", "b", None)]),
    ("event is not kept", b"event: a\ndata: 1\n\ndata: 2\n\n", [("1", "a", None), ("2", "", None)]),
    ("event without data", b"event: ping\n\ndata: 1\n\n", [(None, "ping", None), ("1", "", None)]),
    ("event without a value", b"event\ndata: 1\n\n", [("1", "", None)]),
    ("id", b"id: 7\ndata: 1\n\ndata: 2\n\n", [("1", "", "7"), ("2", "", None)]),
    ("empty id", b"id\ndata: 1\n\n", [("1", "", "")]),
    ("id with NUL", b"id: a\0b\ndata: 1\n\n", [("1", "", None)]),
    ("id with NUL after a good one", b"id: a\nid: \0\ndata: 1\n\n", [("1", "", "a")]),
    ("NUL in data", b"data: a\0b\n\n", [("a\0b", "", None)]),
    ("retry", b"retry: 3000\ndata: 1\n\n", [("1", "", None)]),
    ("only retry", b"retry: 3000\n\n", [NO_DATA]),
    ("unknown fields", b"foo: 1\nbar\ndata: 1\n\n", [("1", "", None)]),
    ("names are exact", b"Data: 1\n data: 2\ndata : 3\ndatas: 4\ndata: 5\n\n", [("5", "", None)]),
    # comments
    ("keep-alive", b": OPENROUTER PROCESSING\n\ndata: 1\n\n", [NO_DATA, ("1", "", None)]),
    ("keep-alives", b":\n\n:\r\n\r\n: a\r\r", [NO_DATA] * 3),
    ("comment in a block", b": hi\ndata: 1\n:data: 2\n\n", [("1", "", None)]),
    # UTF-8
    ("utf-8", "event: é\nid: 日\ndata: 日本語 🙂\n\n".encode(), [("日本語 🙂", "é", "日")]),
    ("invalid byte", b"data: a\xffb\n\n", [("a\ufffdb", "", None)]),
    ("invalid at a line's end", b"data: \xe2\x82\ndata: \xf0\n\n", [("\ufffd\n\ufffd", "", None)]),
    ("overlong", b"data: \xc0\xaf\n\n", [("\ufffd\ufffd", "", None)]),
    ("surrogate", b"data: \xed\xa0\x80\n\n", [("\ufffd\ufffd\ufffd", "", None)]),
    # byte order mark
    ("bom", BOM + b"data: a\n\n", [A]),
    ("bom alone", BOM, []),
    ("bom and blank lines", BOM + b"\r\n\ndata: a\n\n", [A]),
    ("bom and a comment", BOM + b":\n\n", [NO_DATA]),
    ("only one bom is dropped", BOM + BOM + b"data: a\ndata: b\n\n", [B]),
    ("bom later", BOM + b"data: a\n\n" + BOM + b"data: b\n\n", [A, NO_DATA]),
    ("bom in data", b"data: " + BOM + b"a\n\n", [("\ufeffa", "", None)]),
]

TRUNCATED: list[tuple[str, bytes, list[Fields], bytes]] = [
    ("in a line", b'data: {"a"', [('{"a"', "", None)], b"\n\n"),
    ("after a line, lf", b"data: a\n", [A], b"\n"),
    ("after a line, crlf", b"data: a\r\n", [A], b"\n"),
    ("after a line, cr", b"data: a\r", [A], b"\n\n"),
    ("in the second line", b"event: x\ndata: a", [("a", "x", None)], b"\n\n"),
    ("in a field's name", b"data: a\nda", [A], b"\n\n"),
    ("after an event", b"data: a\r\n\r\ndata: b", [A, B], b"\n\n"),
    ("after blank lines", b"data: a\n\n\r\n\rdata: b", [A, B], b"\n\n"),
    ("in a comment", b"data: a\n\n: wai", [A, NO_DATA], b"\n\n"),
    ("in a character", "data: é".encode()[:-1], [("\ufffd", "", None)], b"\n\n"),
    ("after a bom", BOM + b"data: a", [A], b"\n\n"),
    ("in a bom", BOM[:2], [NO_DATA], b"\n\n"),
]


@rows("raw expected", ROWS)
def test_decode(raw: bytes, expected: list[Fields]) -> None:
    check(raw, expected)


@rows("raw expected missing", TRUNCATED)
def test_decode_truncated_stream(raw: bytes, expected: list[Fields], missing: bytes) -> None:
    check(raw, expected, missing)


def test_all_rows_in_one_stream() -> None:
    rows = [row for row in ROWS if BOM not in row[1]]
    check(b"".join(raw for _, raw, _ in rows), [message for _, _, expected in rows for message in expected])


# When messages are returned, and which bytes are in their raw: reads, and the raw of the messages after each read.
TIMING: list[tuple[str, list[bytes], list[list[bytes]]]] = [
    ("at the blank line", [b"data: a\n", b"\n", b"data"], [[], [b"data: a\n\n"], []]),
    ("several in a read", [b"data: a\n\n:\n\ndata: b"], [[b"data: a\n\n", b":\n\n"]]),
    ("a cr ends its line at once", [b"data: a\r\n\r", b"\ndata: b\r\r"], [[b"data: a\r\n\r"], [b"\ndata: b\r\r"]]),
    ("an empty read changes nothing", [b"data: a\r", b"", b"\n", b"\n"], [[], [], [], [b"data: a\r\n\n"]]),
    ("cr, lf, lf", [b"data: a\r", b"\n\n"], [[], [b"data: a\r\n\n"]]),
    ("blank lines go with the next", [b"data: a\n\n\n", b"\r\n:\n\n"], [[b"data: a\n\n"], [b"\n\r\n:\n\n"]]),
    ("a comment waits for its blank line", [b": hi\n", b"data: a\n\n"], [[], [b": hi\ndata: a\n\n"]]),
]


@rows("reads expected", TIMING)
def test_message_is_returned_as_soon_as_complete(reads: list[bytes], expected: list[list[bytes]]) -> None:
    decoder = SseDecoder()
    assert [[message.raw for message in decoder.feed(read)] for read in reads] == expected


def test_trailing_blank_lines_are_a_message_without_data() -> None:
    assert decode([b"data: a\r\n\r", b"\n"])[1:] == [
        SseMessage(data="", has_data=False, event="", id=None, raw=b"\n", closed=True)
    ]


ENCODED: list[tuple[str, str | bytes, str, bytes]] = [
    ("data", '{"a":1}', "", b'data: {"a":1}\n\n'),
    ("bytes", b'{"a":1}', "", b'data: {"a":1}\n\n'),
    ("event", "{}", "ping", b"event: ping\ndata: {}\n\n"),
    ("utf-8", "é", "ü", "event: ü\ndata: é\n\n".encode()),
    ("empty", "", "", b"data: \n\n"),
    ("lines", "a\nb\r\nc\rd", "", b"data: a\ndata: b\ndata: c\ndata: d\n\n"),
    ("line ends around", "\na\n", "", b"data: \ndata: a\ndata: \n\n"),
    ("other separators", "a\u2028b\vc", "", "data: a\u2028b\vc\n\n".encode()),
]


@rows("data event expected", ENCODED)
def test_encode(data: str | bytes, event: str, expected: bytes) -> None:
    assert encode_event(data, event) == expected


@pytest.mark.parametrize("event", ["a\ndata: b", "a\rb"])
def test_encode_rejects_event_name_of_several_lines(event: str) -> None:
    with pytest.raises(UsageError, match="single line"):
        encode_event("a", event)


PIECES = [b"\n", b"\r", b"data", b"event", b"id", b":", b" ", BOM, b"\0", "é".encode()]
one_line = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"))


@given(st.lists(st.tuples(st.text(), one_line)))
def test_encoded_events_round_trip(frames: list[tuple[str, str]]) -> None:
    raw = [encode_event(data, event) for data, event in frames]
    expected: list[Fields] = [(d.replace("\r\n", "\n").replace("\r", "\n"), event, None) for d, event in frames]
    messages = decode([b"".join(raw)])
    assert fields_of(messages) == expected
    assert [message.raw for message in messages] == raw


@given(st.lists(st.sampled_from(PIECES) | st.binary(max_size=3)))
def test_any_bytes_decode_independent_of_cuts(pieces: list[bytes]) -> None:
    raw = b"".join(pieces)
    whole, cut = decode([raw]), decode(pieces)
    assert fields_of(cut) == fields_of(whole)
    missing = b"".join(m.raw for m in whole).removeprefix(raw.removeprefix(BOM))
    assert missing in (b"", b"\n", b"\n\n")
    assert b"".join(m.raw for m in cut) == b"".join(m.raw for m in whole) == raw.removeprefix(BOM) + missing


OVER_LIMIT: list[tuple[str, bytes]] = [
    ("unfinished line", b"data: " + b"x" * 40),
    ("unfinished block", b"data: x\n" * 8),
    ("finished block", b"data: " + b"x" * 40 + b"\n\n"),
    ("comment", b":" * 40 + b"\n\n"),
    ("blank lines", b"\n" * 40),
    ("second block", b"data: a\n\ndata: " + b"x" * 40 + b"\n\n"),
]


@rows("raw", OVER_LIMIT)
def test_block_over_limit_raises(raw: bytes) -> None:
    for pieces in cuts(raw):
        decoder = SseDecoder(limit=32)
        with pytest.raises(UpstreamError, match=r"event of \d+ bytes or more; the limit is 32") as caught:
            list(map(decoder.feed, pieces))
        assert "Decoder(limit=" in caught.value.hint
        with pytest.raises(UpstreamError):
            decoder.feed(b":\n\n")
        with pytest.raises(UpstreamError):
            decoder.close()


def test_limit_applies_per_block() -> None:
    block = b"data: " + b"x" * 24 + b"\n\n"
    assert len(decode([block * 100], limit=len(block))) == 100
    assert len(decode([block[i : i + 1] for i in range(len(block))] * 100, limit=len(block))) == 100


def is_over_limit(pieces: Iterable[bytes], limit: int) -> bool:
    try:
        decode(pieces, limit)
    except UpstreamError:
        return True
    return False


@given(
    st.lists(st.sampled_from([b"\r", b"\n", b"\r\n", b"data: x", b":", BOM, BOM[:1]]), max_size=14).map(b"".join),
    st.integers(1, 24),
)
@example(b" \r\n\r\n" + b"9" * 8, 8)
@example(b"data: x\r\n\r\n", 9)
@example(BOM + b"data: x", 7)
def test_cuts_do_not_decide_whether_a_block_is_over_the_limit(raw: bytes, limit: int) -> None:
    whole = is_over_limit([raw], limit)
    assert {is_over_limit(pieces, limit) for pieces in cuts(raw)} == {whole}


@given(
    st.lists(st.sampled_from([b"\r", b"\n", b"\r\n", b"data: x\n", b":\r", b"id", BOM]), max_size=14).map(b"".join),
    st.integers(1, 4),
)
def test_cuts_do_not_decide_whether_a_block_has_too_many_lines(raw: bytes, max_lines: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sse, "MAX_BLOCK_LINES", max_lines)
        whole = is_over_limit([raw], 1 << 20)
        assert {is_over_limit(pieces, 1 << 20) for pieces in cuts(raw)} == {whole}


@pytest.mark.parametrize("line", [b":\n", b"data\n", b"data: x\r\n"])
def test_number_of_lines_is_limited(line: bytes) -> None:
    assert len(decode([line * MAX_BLOCK_LINES + b"\n"])) == 1
    for read_size in (8192, 1 << 20):
        with pytest.raises(UpstreamError, match="more than 8,192 lines"):
            decode(reads_of(line * (MAX_BLOCK_LINES + 1) + b"\n", read_size))


@pytest.mark.parametrize("line", [b":\n", b"data: x\n", b"data: " + b"x" * 1000 + b"\n"])
def test_held_bytes_are_not_less_than_the_memory_of_an_incomplete_block(line: bytes) -> None:
    decoder = SseDecoder()
    reads = reads_of(line * 8_000, 8192)
    tracemalloc.start()
    try:
        for read in reads:
            decoder.feed(read)
        size = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert size < 1.2 * decoder.held_bytes


def test_line_ends_added_by_close_do_not_count_for_limit() -> None:
    assert [message.raw for message in decode([b"data: a"], limit=7)] == [b"data: a\n\n"]


def reads_of(raw: bytes, size: int) -> list[bytes]:
    return [raw[i : i + size] for i in range(0, len(raw), size)]


# Inputs are small enough to fit in allocated memory: new pages cost more than decoding their bytes.
GROWING: list[tuple[str, Callable[[int], list[bytes]]]] = [
    ("one long line", lambda n: reads_of(b"data: " + b"x" * (80_000 * n) + b"\n\n", 64)),
    ("one long line in single bytes", lambda n: reads_of(b"data: " + b"x" * (5_000 * n) + b"\n\n", 1)),
    ("many data lines, no blank line", lambda n: reads_of(b"data: x\n" * (1_000 * n), 64)),
    ("blank lines", lambda n: [b"\n"] * (5_000 * n)),
    ("blank lines, cr and lf apart", lambda n: [b"\r", b"\n"] * (2_500 * n)),
    ("many events", lambda n: reads_of(encode_event("x" * 100) * (500 * n), 4096)),
    ("many events in one read", lambda n: [encode_event("x" * 100) * (200 * n)]),
]


@rows("reads", GROWING)
def test_decoding_time_is_linear(reads: Callable[[int], list[bytes]]) -> None:
    def decode(reads: list[bytes]) -> None:
        decoder = SseDecoder()
        for read in reads:
            decoder.feed(read)
        decoder.close()

    check_growth(decode, reads(1), reads(8), limit=24)  # linear: 8; if each read scanned the old bytes again: 64
