"""Chunks, decoded: lenient where nothing has to be guessed, and halves of characters are joined across chunks."""

from __future__ import annotations

from typing import Any

import pytest

from interlingua.wires.streaming.chunk_decoder import ChunkDecoder

HIGH, LOW, WHOLE = "\\ud83d", "\\ude80", "\U0001f680"


@pytest.mark.parametrize(
    ("data", "chunk", "exact"),
    [
        pytest.param('{"a": [1, 2.50, "é"]}', {"a": [1, 2.5, "é"]}, True, id="plain"),
        pytest.param(' {"a": null} ', {"a": None}, True, id="white space around"),
        pytest.param(
            '{"n": 123456789012345678901234567890}', {"n": 123456789012345678901234567890}, True, id="big number"
        ),
        pytest.param(f'{{"a": "{HIGH}{LOW}"}}', {"a": WHOLE}, True, id="a pair in one chunk"),
        pytest.param('{"a": "\ufffd"}', {"a": "\ufffd"}, False, id="maybe bytes that were no UTF-8"),
        pytest.param('{"a": NaN, "b": -Infinity}', {"a": None, "b": None}, False, id="not a number"),
        pytest.param('{"a": "x\ty"}', {"a": "x\ty"}, False, id="control character"),
        pytest.param(f'{{"a": "{LOW}b"}}', {"a": "\ufffdb"}, False, id="second half alone"),
        pytest.param(f'{{"a": "{HIGH}b"}}', {"a": "\ufffdb"}, False, id="first half alone"),
        pytest.param(f'{{"a": "b{HIGH}"}}', {"a": "b"}, False, id="first half at the end"),
        pytest.param(
            f'{{"{LOW}": [null, "", {{"b": 1}}, "{LOW}"]}}', {"\ufffd": [None, "", {"b": 1}, "\ufffd"]}, False, id="key"
        ),
        pytest.param('{"a": ' + "[" * 450 + "]" * 450 + ', "b": 0}', ..., True, id="deep"),
        pytest.param('{"a": [' + "{}," * 600 + "0]}", ..., True, id="many brackets"),
    ],
)
def test_read(data: str, chunk: Any, exact: bool) -> None:
    decoded = ChunkDecoder().decode(data)
    assert decoded is not None
    assert chunk in (decoded.chunk, ...)
    assert decoded.exact == exact


@pytest.mark.parametrize(
    "data",
    [
        "",
        "{",
        "[1]",
        '"a"',
        "null",
        "1",
        "{'a': 1}",
        '{"a": 1} {"b": 2}',
        '{"a": "\\ud83',
        '{"a":' * 100_000,
        "[" * 9999,
    ],
)
def test_not_an_object(data: str) -> None:
    assert ChunkDecoder().decode(data) is None


def joined(*data: str) -> list[Any]:
    decoder = ChunkDecoder()
    decoded = [decoder.decode(one) for one in data]
    return [one and one.chunk for one in decoded] + [len(decoder.pending_surrogates)]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param([f'{{"a": "x{HIGH}"}}', f'{{"a": "{LOW}y"}}'], [{"a": "x"}, {"a": WHOLE + "y"}, 0], id="joined"),
        pytest.param(
            [f'{{"a": "{HIGH}"}}', '{"b": "c"}', '{"a": ""}', f'{{"a": "{LOW}"}}'],
            [{"a": ""}, {"b": "c"}, {"a": ""}, {"a": WHOLE}, 0],
            id="with others between",
        ),
        pytest.param([f'{{"a": "{HIGH}"}}', '{"a": "b"}'], [{"a": ""}, {"a": "\ufffdb"}, 0], id="no second half"),
        pytest.param(
            [f'{{"a": "{HIGH}"}}', f'{{"a": "{HIGH}"}}'], [{"a": ""}, {"a": "\ufffd"}, 1], id="two first halves"
        ),
        pytest.param([f'{{"a": "{HIGH}"}}'], [{"a": ""}, 1], id="left at the end"),
        pytest.param(
            [f'{{"c": [{{"index": {n}, "t": "{half}"}}]}}' for n, half in ((0, HIGH), (1, HIGH), (1, LOW), (0, LOW))],
            [{"c": [{"index": n, "t": text}]} for n, text in ((0, ""), (1, ""), (1, WHOLE), (0, WHOLE))] + [0],
            id="by index, not by place",
        ),
        pytest.param(
            [f'{{"type": "t.delta", "delta": "{HIGH}"}}', '{"type": "f.delta", "delta": "{}"}'],
            [{"type": "t.delta", "delta": ""}, {"type": "f.delta", "delta": "{}"}, 1],
            id="by the event's type",
        ),
        *(
            pytest.param(
                [f'{{"{key}": {n}, "t": "{text}"}}' for n, text in ((0, HIGH), (1, "b"), (0, LOW))],
                [{key: 0, "t": ""}, {key: 1, "t": "b"}, {key: 0, "t": WHOLE}, 0],
                id=f"by {key}",
            )
            for key in ("index", "output_index", "content_index", "summary_index")
        ),
    ],
)
def test_halves(data: list[str], expected: list[Any]) -> None:
    assert joined(*data) == expected


def test_a_joined_chunk_is_not_exact() -> None:
    decoder = ChunkDecoder()
    decoder.decode(f'{{"a": "{HIGH}"}}')
    decoded = decoder.decode('{"b": "plain"}')
    assert decoded is not None
    assert not decoded.exact, "as long as a half waits, every chunk is gone through"
