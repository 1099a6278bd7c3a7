"""Short constructors for requests and messages, and a strategy for histories in property tests."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from interlingua.core.reply import Call, Reasoning, Text
from interlingua.core.request import CacheMark, Document, Extra, Image, Message, Piece, Request, Result
from interlingua.events import Seal

__all__ = ["call", "message_lists", "model", "request", "result", "system", "user"]


def request(messages: list[Message], **fields: Any) -> Request:
    return Request(wire="openai-chat", model="m", messages=messages, **{"max_tokens": 8000, **fields})


def _as_pieces(pieces: tuple[Piece | str, ...]) -> list[Piece]:
    return [Text(piece) if isinstance(piece, str) else piece for piece in pieces]


def system(*pieces: Piece | str) -> Message:
    return Message("system", _as_pieces(pieces))


def user(*pieces: Piece | str, name: str = "") -> Message:
    return Message("user", _as_pieces(pieces), name)


def model(*pieces: Piece | str) -> Message:
    return Message("assistant", _as_pieces(pieces))


def call(id: str, name: str = "f", arguments: str = "{}") -> Call:
    return Call(id, name, arguments)


def result(id: str, text: str = "ok") -> Result:
    return Result(id, [Text(text)])


IDS = st.sampled_from(["", "a", "b", "a_2", "f:0", "f:1", "VvvODy9mT"])
TEXTS = st.sampled_from(["", " ", "x", "y", "z\n"])
CONTENT = st.one_of(
    st.builds(Text, TEXTS),
    st.builds(Text, TEXTS),
    st.just(Image("data:image/png;base64,AAAA")),
    st.just(Document(text="d")),
    st.just(CacheMark({"type": "ephemeral"})),
    st.just(Extra("w", {"type": "x"})),
)
SIGNATURES = st.sampled_from(
    [
        None,
        Seal("openai-chat", {}),
        Seal("openai-chat", {"reasoning_details": [{"type": "reasoning.text"}]}),
        Seal("anthropic-messages", {"signature": "s"}),
        Seal("openai-responses", {"encrypted_content": "e"}),
    ]
)
RESULTS = st.builds(Result, IDS, st.lists(CONTENT, max_size=3), st.booleans())
CALLS = st.builds(
    Call,
    IDS,
    st.sampled_from(["f", "g", "", "a.b"]),
    st.sampled_from(["{}", '{"a": 1}', "", "null", "{'a': 1}", '{"a', "[1]", '"{}"']),
)
THINKING = st.builds(Reasoning, TEXTS, SIGNATURES)
ANYTHING = st.one_of(CONTENT, RESULTS, CALLS, THINKING)
MESSAGES = st.one_of(
    st.builds(Message, st.just("assistant"), st.lists(st.one_of(CONTENT, CALLS, CALLS, THINKING), max_size=4)),
    st.builds(
        Message,
        st.just("user"),
        st.lists(st.one_of(CONTENT, RESULTS, RESULTS), max_size=4),
        st.sampled_from(["", "Bo"]),
    ),
    st.builds(Message, st.sampled_from(["system", "user", "assistant"]), st.lists(ANYTHING, max_size=3)),
)


def message_lists() -> st.SearchStrategy[list[Message]]:
    """Return a strategy for histories with any piece at any position."""
    return st.lists(MESSAGES, max_size=8)
