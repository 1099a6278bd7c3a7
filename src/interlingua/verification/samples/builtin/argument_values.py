"""Samples on single values: numbers, and text outside ASCII."""

from __future__ import annotations

from typing import Any

from interlingua.verification.samples.builtin.offered_tools import GET_WEATHER, SAVE_NOTE, SEND_EMAIL
from interlingua.verification.samples.builtin.sample_builder import call, calling, integer, number, obj, string, tool

__all__ = ["SAMPLES"]

_STORE_ID = tool("store_id", "Store an id.", obj({"id": integer("An id, exactly as given")}))
_MEASURE = tool("measure", "Store a measurement.", obj({"value": number(), "unit": string()}))
_DIAL = tool("dial", "Dial a number.", obj({"phone": string("Digits, exactly as given")}))

_NUMBERS: tuple[tuple[str, dict[str, Any], dict[str, Any]], ...] = (
    ("store_id id=9007199254740993", _STORE_ID, {"id": 9007199254740993}),
    ("store_id id=18446744073709551615", _STORE_ID, {"id": 18446744073709551615}),
    ("measure value=-0.00025 unit='mol'", _MEASURE, {"value": -0.00025, "unit": "mol"}),
    ("measure value=1e21 unit='kg'", _MEASURE, {"value": 1e21, "unit": "kg"}),
    ("dial phone='0049301234567'", _DIAL, {"phone": "0049301234567"}),
    ("store_id id=0", _STORE_ID, {"id": 0}),
)
_TEXTS = (
    "Grüße aus Zürich – 5 € für Käse, ß inklusive",
    "東京の天気は晴れです。「明日」も？",
    "Добрый день, Анна! Встреча в 9:00.",
    "مرحبا بالعالم 123",
    "👩‍👩‍👧‍👦 family 🇨🇭 flag 👍🏽",
    "e\u0301 versus é, and a no-break\u00a0space",
    "नमस्ते दुनिया",
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𠮷野家 ‰ ∑ √2 ≈ 1.414",
)

SAMPLES = [
    *(
        calling(
            f"numbers-{n:02d}",
            f"Call the tool with exactly this value, without rounding: {request}",
            [offered, GET_WEATHER],
            call(request.split(" ")[0], **arguments),
        )
        for n, (request, offered, arguments) in enumerate(_NUMBERS, 1)
    ),
    *(
        calling(
            f"non-ascii-{n:02d}",
            f"Save this text unchanged: save_note title='note {n}' text='{text}'",
            [SAVE_NOTE, SEND_EMAIL],
            call("save_note", title=f"note {n}", text=text),
        )
        for n, text in enumerate(_TEXTS, 1)
    ),
]
