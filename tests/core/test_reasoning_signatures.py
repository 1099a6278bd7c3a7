"""Envelopes: their content survives a round trip, and anything else is rejected."""

from __future__ import annotations

import hmac
import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode

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


def test_envelope_round_trip() -> None:
    envelope = write_envelope(SIGNED, "anthropic-messages", KEY)
    assert is_envelope(envelope)
    assert read_envelope(envelope, KEY) == SIGNED


def test_thinking_without_seal_gets_the_wire() -> None:
    assert read_envelope(write_envelope(Reasoning("hm"), "openai-chat", KEY), KEY) == Reasoning(
        "hm", Seal("openai-chat", {})
    )


def test_envelope_contains_upstream_name() -> None:
    envelope = write_envelope(SIGNED, MESSAGES, KEY, "kimi")
    assert read_envelope(envelope, KEY) == Reasoning(SIGNED.text, Seal(MESSAGES, {"signature": "S"}, "kimi"))
    assert read_value_envelope(envelope, MESSAGES, KEY) is None


@given(st.text(), st.text())
def test_value_envelope_round_trip(value: str, upstream: str) -> None:
    envelope = write_value_envelope(value, MESSAGES, upstream, KEY)
    assert read_value_envelope(envelope, MESSAGES, KEY) == SignedValue(value, upstream)
    assert read_value_envelope(envelope, MESSAGES, b"another key") is None
    assert read_value_envelope(envelope, "openai-chat", KEY) is None
    native = Seal(MESSAGES, {"id": "i", "in": [{"signature": envelope}]})
    came_back = Seal(MESSAGES, {"id": "i", "in": [{"signature": value}]}, upstream)
    assert read_past_reasoning("hm", envelope, native, KEY) == Reasoning("hm", came_back)


def test_value_in_several_envelopes() -> None:
    """A client that concatenates the pieces of a value concatenates their envelopes."""
    first, second = (write_value_envelope(piece, MESSAGES, "kimi", KEY) for piece in ("SI", "G"))
    assert read_value_envelope(first + second, MESSAGES, KEY) == SignedValue("SIG", "kimi")
    for others in (
        write_value_envelope("G", MESSAGES, "glm", KEY),
        write_value_envelope("G", "openai-chat", "kimi", KEY),
        "G",
        "il2.",
    ):
        assert read_envelope(first + others, KEY) is None
    joined_text = write_envelope(SIGNED, MESSAGES, KEY, "kimi")
    assert read_envelope(first + joined_text, KEY) is None
    assert read_envelope(joined_text + first, KEY) is None


def test_unpaired_surrogates() -> None:
    """A program may pass text that cannot be encoded."""
    thinking = Reasoning("\ud83d", Seal("openai-chat", {}))
    assert read_envelope(write_envelope(thinking, "openai-chat", KEY), KEY) == thinking


@given(st.text(), st.dictionaries(st.text(max_size=5), st.text(max_size=5) | st.integers(0, 9), max_size=3))
def test_round_trip_of_any_thinking(text: str, data: dict[str, str | int]) -> None:
    thinking = Reasoning(text.encode("utf-8", "replace").decode(), Seal("openai-chat", data))
    assert read_envelope(write_envelope(thinking, "openai-chat", KEY), KEY) == thinking


@pytest.mark.parametrize(
    "text", ["", "il2.", "il2..", "il2.YQ.", "il2.a.", "EqQBCgIYAhIM", "il3." + "a" * 99, "il2.\ud800.", "il2.é."]
)
def test_foreign_text_is_not_an_envelope(text: str) -> None:
    assert read_envelope(text, KEY) is None


def test_other_key_or_modified_envelope_is_rejected() -> None:
    envelope = write_envelope(SIGNED, "anthropic-messages", KEY)
    assert read_envelope(envelope, b"another key") is None
    assert [
        n
        for n in range(len(envelope))
        if read_envelope(envelope[:n] + "A" + envelope[n + 1 :], KEY) not in (None, SIGNED)
    ] == []
    assert [n for n in range(len(envelope)) if read_envelope(envelope[:n], KEY) is not None] == []


def test_content_is_encrypted() -> None:
    text = "The password is swordfish. " * 100
    encoded = write_envelope(Reasoning(text), "openai-chat", KEY, "kimi").removeprefix("il2.").removesuffix(".")
    data = urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))
    for start in range(len(data)):
        try:
            unpacked = zlib.decompressobj().decompress(data[start:])
        except zlib.error:
            continue
        assert b"swordfish" not in unpacked
    assert b"swordfish" not in data


def test_envelope_of_an_earlier_version_is_recognised_but_not_read() -> None:
    """It was signed and not encrypted: `il1.`, the deflated JSON, the HMAC."""
    content = urlsafe_b64encode(zlib.compress(b'{"text":"hm","wire":"openai-chat"}')).rstrip(b"=")
    checksum = urlsafe_b64encode(hmac.digest(KEY, content, "sha256")).rstrip(b"=")
    envelope = f"il1.{content.decode()}.{checksum.decode()}"
    assert is_envelope(envelope)
    assert read_envelope(envelope, KEY) is None
    assert read_past_reasoning("hm", envelope, Seal(MESSAGES, {"signature": envelope}), KEY) == Reasoning("hm")


def test_envelope_is_deterministic() -> None:
    assert write_envelope(SIGNED, "anthropic-messages", KEY) == write_envelope(SIGNED, "anthropic-messages", KEY)
