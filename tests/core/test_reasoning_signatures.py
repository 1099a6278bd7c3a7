"""Seals: what was sealed comes back as it was, and nothing else does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.core.reasoning_signatures import (
    SignedValue,
    is_envelope,
    read_envelope,
    read_past_reasoning,
    read_value_envelope,
    write_envelope,
    write_value_envelope,
)
from interlingua.core.reply import Reasoning
from interlingua.events import Seal

KEY = b"a key"
MESSAGES = "anthropic-messages"
SIGNED = Reasoning("Two cities. 🙂", Seal(MESSAGES, {"signature": "S"}))


def test_what_was_sealed_comes_back() -> None:
    sealed = write_envelope(SIGNED, "anthropic-messages", KEY)
    assert is_envelope(sealed)
    assert read_envelope(sealed, KEY) == SIGNED


def test_thinking_alone_is_sealed_with_the_wire_that_it_came_on() -> None:
    assert read_envelope(write_envelope(Reasoning("hm"), "openai-chat", KEY), KEY) == Reasoning(
        "hm", Seal("openai-chat", {})
    )


def test_a_seal_has_the_name_of_the_upstream() -> None:
    sealed = write_envelope(SIGNED, MESSAGES, KEY, "kimi")
    assert read_envelope(sealed, KEY) == Reasoning(SIGNED.text, Seal(MESSAGES, {"signature": "S"}, "kimi"))
    assert read_value_envelope(sealed, MESSAGES, KEY) is None


@given(st.text(), st.text())
def test_a_value_is_sealed_in_its_place(value: str, upstream: str) -> None:
    sealed = write_value_envelope(value, MESSAGES, upstream, KEY)
    assert read_value_envelope(sealed, MESSAGES, KEY) == SignedValue(value, upstream)
    assert read_value_envelope(sealed, MESSAGES, b"another key") is None
    assert read_value_envelope(sealed, "openai-chat", KEY) is None
    native = Seal(MESSAGES, {"id": "i", "in": [{"signature": sealed}]})
    came_back = Seal(MESSAGES, {"id": "i", "in": [{"signature": value}]}, upstream)
    assert read_past_reasoning("hm", sealed, native, KEY) == Reasoning("hm", came_back)


def test_a_value_that_came_in_pieces() -> None:
    """A client that joins the pieces joins their seals."""
    first, second = (write_value_envelope(piece, MESSAGES, "kimi", KEY) for piece in ("SI", "G"))
    assert read_value_envelope(first + second, MESSAGES, KEY) == SignedValue("SIG", "kimi")
    for others in (
        write_value_envelope("G", MESSAGES, "glm", KEY),
        write_value_envelope("G", "openai-chat", "kimi", KEY),
        "G",
        "il1.",
    ):
        assert read_envelope(first + others, KEY) is None
    whole = write_envelope(SIGNED, MESSAGES, KEY, "kimi")
    assert read_envelope(first + whole, KEY) is None
    assert read_envelope(whole + first, KEY) is None


def test_half_characters_do_no_harm() -> None:
    """A program may hand in what no JSON text can hold."""
    thinking = Reasoning("\ud83d", Seal("openai-chat", {}))
    assert read_envelope(write_envelope(thinking, "openai-chat", KEY), KEY) == thinking


@given(st.text(), st.dictionaries(st.text(max_size=5), st.text(max_size=5) | st.integers(0, 9), max_size=3))
def test_any_thinking(text: str, data: dict[str, str | int]) -> None:
    thinking = Reasoning(text.encode("utf-8", "replace").decode(), Seal("openai-chat", data))
    assert read_envelope(write_envelope(thinking, "openai-chat", KEY), KEY) == thinking


@pytest.mark.parametrize(
    "text", ["", "il1.", "il1..", "il1.YQ.YQ", "EqQBCgIYAhIM", "il2." + "a" * 99, "il1.\ud800.x", "il1.x.é"]
)
def test_what_is_not_ours(text: str) -> None:
    assert read_envelope(text, KEY) is None


def test_another_key_and_a_changed_seal() -> None:
    sealed = write_envelope(SIGNED, "anthropic-messages", KEY)
    assert read_envelope(sealed, b"another key") is None
    assert [
        n for n in range(len(sealed)) if read_envelope(sealed[:n] + "A" + sealed[n + 1 :], KEY) not in (None, SIGNED)
    ] == []
    assert [n for n in range(len(sealed)) if read_envelope(sealed[:n], KEY) is not None] == []


def test_a_seal_is_the_same_each_time() -> None:
    assert write_envelope(SIGNED, "anthropic-messages", KEY) == write_envelope(SIGNED, "anthropic-messages", KEY)
