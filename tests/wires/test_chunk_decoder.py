"""Chunk decoder: lenient JSON, and surrogate pairs that are split across chunks."""

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
        pytest.param('{"a": "\ufffd"}', {"a": "\ufffd"}, False, id="U+FFFD, maybe from invalid UTF-8"),
        pytest.param('{"a": NaN, "b": -Infinity}', {"a": None, "b": None}, False, id="not a number"),
        pytest.param('{"a": "x\ty"}', {"a": "x\ty"}, False, id="control character"),
        pytest.param(f'{{"a": "{LOW}b"}}', {"a": "\ufffdb"}, False, id="lone low surrogate"),
        pytest.param(f'{{"a": "{HIGH}b"}}', {"a": "\ufffdb"}, False, id="lone high surrogate"),
        pytest.param(f'{{"a": "b{HIGH}"}}', {"a": "b"}, False, id="high surrogate at the end"),
        pytest.param(
            f'{{"{LOW}": [null, "", {{"b": 1}}, "{LOW}"]}}', {"\ufffd": [None, "", {"b": 1}, "\ufffd"]}, False, id="key"
        ),
        pytest.param('{"a": ' + "[" * 450 + "]" * 450 + ', "b": 0}', ..., True, id="deep"),
        pytest.param('{"a": [' + "{}," * 600 + "0]}", ..., True, id="many brackets"),
    ],
)
def test_decode(data: str, chunk: Any, exact: bool) -> None:
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
def test_decode_returns_none_unless_object(data: str) -> None:
    assert ChunkDecoder().decode(data) is None


def decode_all(*data: str) -> list[Any]:
    """Return the decoded chunks, and the number of pending surrogates at the end."""
    decoder = ChunkDecoder()
    chunks = [decoder.decode(text) for text in data]
    return [decoded and decoded.chunk for decoded in chunks] + [len(decoder.pending_surrogates)]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param([f'{{"a": "x{HIGH}"}}', f'{{"a": "{LOW}y"}}'], [{"a": "x"}, {"a": WHOLE + "y"}, 0], id="joined"),
        pytest.param(
            [f'{{"a": "{HIGH}"}}', '{"b": "c"}', '{"a": ""}', f'{{"a": "{LOW}"}}'],
            [{"a": ""}, {"b": "c"}, {"a": ""}, {"a": WHOLE}, 0],
            id="with other texts between",
        ),
        pytest.param([f'{{"a": "{HIGH}"}}', '{"a": "b"}'], [{"a": ""}, {"a": "\ufffdb"}, 0], id="no low surrogate"),
        pytest.param(
            [f'{{"a": "{HIGH}"}}', f'{{"a": "{HIGH}"}}'], [{"a": ""}, {"a": "\ufffd"}, 1], id="two high surrogates"
        ),
        pytest.param([f'{{"a": "{HIGH}"}}'], [{"a": ""}, 1], id="left at the end"),
        pytest.param(
            [f'{{"c": [{{"index": {n}, "t": "{half}"}}]}}' for n, half in ((0, HIGH), (1, HIGH), (1, LOW), (0, LOW))],
            [{"c": [{"index": n, "t": text}]} for n, text in ((0, ""), (1, ""), (1, WHOLE), (0, WHOLE))] + [0],
            id="by index, not by position",
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
def test_split_surrogate_pairs(data: list[str], expected: list[Any]) -> None:
    assert decode_all(*data) == expected


def test_chunk_is_not_exact_while_a_surrogate_is_pending() -> None:
    decoder = ChunkDecoder()
    decoder.decode(f'{{"a": "{HIGH}"}}')
    decoded = decoder.decode('{"b": "plain"}')
    assert decoded is not None
    assert not decoded.exact, "every chunk is rewritten while a surrogate is pending"
