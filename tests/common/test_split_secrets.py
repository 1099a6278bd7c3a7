"""Secrets that the events of a stream have only together."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import pytest

from interlingua.common.redaction import Redactor
from interlingua.common.split_secrets import Replacement, redact_split_secrets, replace_in_pieces
from interlingua.translation.translator import Translator
from interlingua.wires import WIRES
from tests.support.captured_exchanges import chat_stream
from tests.support.growth import check_growth
from tests.support.inspector_scenes import kimi_call, section

KEY = "sk-proj-AbCdEfGhIjKlMnOpQrStUvWx"
OWN = "a secret of the settings, with “quotes”"
CALL = section(kimi_call("run", 0, json.dumps({"command": f"curl -H 'x: {KEY}' host"})))
TEXT = f"<think>The key is {KEY}.</think>It is {KEY}, and not {OWN}.{CALL}"


def pieces_of(text: str, seed: int) -> list[str]:
    chooser = random.Random(seed)
    pieces: list[str] = []
    while text:
        size = chooser.randint(1, 9)
        pieces.append(text[:size])
        text = text[size:]
    return pieces


def stream_of(wire: str, seed: int) -> bytes:
    """Return the reply on this wire."""
    translator = Translator(source="openai-chat", target=wire, dialect="kimi_k2", tools=None)
    return translator.feed(b"".join(chat_stream(pieces_of(TEXT, seed)))) + translator.close()


def joined_texts(stream: bytes) -> dict[str, str]:
    """Return the joined texts of each field of the events."""
    joined: dict[str, str] = {}

    def add(value: Any, path: str) -> None:
        if isinstance(value, str):
            joined[path] = joined.get(path, "") + value
        elif isinstance(value, dict | list):
            for key, item in value.items() if isinstance(value, dict) else enumerate(value):
                add(item, f"{path}.{key}")

    for line in stream.splitlines():
        if line.startswith(b"data: {"):
            add(json.loads(line[6:]), "")
    return joined


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("wire", WIRES)
def test_no_field_has_a_secret_in_its_joined_texts(wire: str, seed: int) -> None:
    redactor = Redactor([OWN])
    stream = stream_of(wire, seed)
    assert any(KEY in text for text in joined_texts(stream).values())
    redacted = redact_split_secrets(redactor.redact_bytes(stream), redactor)
    texts = joined_texts(redacted)
    assert all(KEY not in text and OWN not in text for text in texts.values())
    assert any("It is ***, and not ***." in text for text in texts.values())
    assert redacted.count(b"\n\n") == stream.count(b"\n\n"), "no event is lost"


def test_stream_without_secrets_is_not_changed() -> None:
    stream = b"".join(chat_stream(pieces_of("Ask sk-ip or task-force-one-two-three.", 1)))
    assert redact_split_secrets(stream, Redactor(["another secret"])) == stream


SURROGATE = b'data: {"a": "\\ud800"}\n\n'


@pytest.mark.parametrize("stream", [b"", b"data: [DONE]\n\n", b"data: {broken\n\n", b"{}", SURROGATE])
def test_odd_streams_are_not_changed(stream: bytes) -> None:
    assert redact_split_secrets(stream, Redactor(["another secret"])) == stream


def test_very_deep_events_are_read_to_some_level() -> None:
    deep = b'data: {"a": ' + b"[" * 500 + b"]" * 500 + b"}\n\n"
    assert redact_split_secrets(deep * 2, Redactor()) == deep * 2


TEXT_OF_PIECES = b"one two three four"
REPLACEMENTS = [Replacement(0, 3, b"1"), Replacement(4, 7, b""), Replacement(7, 8, b"--"), Replacement(14, 18, b"4")]


def test_replaced_parts_are_the_same_at_every_cut() -> None:
    for first, second in itertools.combinations_with_replacement(range(len(TEXT_OF_PIECES) + 1), 2):
        pieces = [TEXT_OF_PIECES[:first], TEXT_OF_PIECES[first:second], TEXT_OF_PIECES[second:]]
        assert b"".join(replace_in_pieces(pieces, REPLACEMENTS)) == b"1 --three 4", pieces


def test_time_does_not_grow_with_pieces_times_secrets() -> None:
    def redact(count: int) -> None:
        stream = b"".join(
            b'data: {"a": "%d ghp_"}\n\ndata: {"a": "0123456789abcdefghijklmno "}\n\n' % n for n in range(count)
        )
        assert redact_split_secrets(stream, Redactor()).count(b"***") == count

    check_growth(redact, 500, 4000, limit=20)
