"""Sealed thinking in requests unpacks to a limited size: a client can send a small seal a thousand times."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from interlingua.core import reasoning_signatures
from interlingua.core.options import Limits, Options
from interlingua.core.reasoning_signatures import (
    MAX_ENVELOPE_BYTES,
    read_envelope,
    unpacked_size,
    write_envelope,
    write_value_envelope,
)
from interlingua.core.reply import Reasoning
from interlingua.errors import BadRequest
from interlingua.translation.request_translation import prepare_request

KEY = b"k" * 32
WIRES = ("openai-chat", "anthropic-messages", "openai-responses")
KIB, MIB = 1024, 1024 * 1024
PACKED = write_envelope(Reasoning("x" * 300_000), "openai-chat", KEY)
"""A seal of a kilobyte that unpacks to 300 KB."""


def request(wire: str, seal: str, times: int) -> dict[str, Any]:
    """Return a request with this seal in each past turn."""
    if wire == "openai-responses":
        items = [{"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": seal}] * times
        return {"model": "m", "input": [*items, {"role": "user", "content": "hi"}]}
    if wire == "anthropic-messages":
        turn: dict[str, Any] = {"content": [{"type": "thinking", "thinking": "", "signature": seal}]}
    else:
        turn = {"content": "x", "reasoning_details": [{"type": "reasoning.encrypted", "data": seal}]}
    user = {"role": "user", "content": "hi"}
    return {"model": "m", "max_tokens": 9, "messages": [user, *[{"role": "assistant", **turn}, user] * times]}


@pytest.mark.parametrize("target", WIRES)
@pytest.mark.parametrize("source", WIRES)
def test_sealed_thinking_of_a_request_is_limited(source: str, target: str) -> None:
    assert len(PACKED) < 2 * KIB
    options = Options(seal_key=KEY, limits=Limits(seals=2 * MIB))
    prepare_request(request(source, PACKED, 6), source, target, options=options)
    tracemalloc.start()
    try:
        with pytest.raises(BadRequest, match=r"unpacks to more than 2,097,152 bytes") as refused:
            prepare_request(request(source, PACKED, 1600), source, target, options=options)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert refused.value.status == 413
    assert peak < 4 * MIB


def test_seal_in_an_object_of_unknown_type_counts() -> None:
    body = request("openai-chat", PACKED, 20)
    for message in body["messages"]:
        for detail in message.get("reasoning_details", ()):
            detail["type"] = "unknown"
    with pytest.raises(BadRequest, match="unpacks to more than"):
        prepare_request(body, "openai-chat", "openai-chat", options=Options(seal_key=KEY, limits=Limits(seals=2 * MIB)))


def test_joined_seals_count() -> None:
    seal = write_value_envelope("x" * 300_000, "openai-responses", "up", KEY) * 20
    options = Options(seal_key=KEY, limits=Limits(seals=2 * MIB))
    with pytest.raises(BadRequest, match="unpacks to more than"):
        prepare_request(request("openai-responses", seal, 1), "openai-responses", "openai-chat", options=options)


@pytest.mark.parametrize("wire", WIRES)
def test_unreadable_seals_are_not_all_decrypted(wire: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A seal of seven bytes takes as long to decrypt as a long one: a body full of them took minutes."""
    decrypted: list[str] = []
    decrypt = reasoning_signatures._decrypt

    def count(encoded: str, key: bytes) -> bytes | None:
        decrypted.append(encoded)
        return decrypt(encoded, key)

    monkeypatch.setattr(reasoning_signatures, "_decrypt", count)
    prepare_request(request(wire, "il2.AA." * 1000, 1), wire, "openai-chat", options=Options(seal_key=KEY))
    assert 0 < len(decrypted) < 10


def test_size_of_one_seal_is_limited() -> None:
    assert unpacked_size(PACKED, KEY, MIB) > 300_000
    assert MIB < unpacked_size(PACKED * 100, KEY, MIB) < 2 * MIB
    assert unpacked_size(PACKED, b"another key", MIB) == unpacked_size("il2.junk.", KEY, MIB) == 0
    too_large = write_envelope(Reasoning("x" * (MAX_ENVELOPE_BYTES + 1)), "openai-chat", KEY)
    assert read_envelope(too_large, KEY) is None
