"""Fuzz test with broken Responses streams: nothing raises, and the client's stream ends exactly once."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

import interlingua as il
from tests.support import sdk
from tests.support.responses_scenarios import SCENARIOS
from tests.support.sdk import Json

RESPONSES = "openai-responses"
FINAL_EVENTS = {
    "openai-chat": ("[DONE]", '{"error"'),
    "anthropic-messages": ("message_stop", "error"),
    RESPONSES: ("response.completed", "response.incomplete", "response.failed", "error"),
}
UNEXPECTED_VALUES: list[Any] = [
    None,
    "",
    "x",
    0,
    5,
    -1,
    1.5,
    True,
    [],
    ["x"],
    {},
    {"type": ["x"]},
    [{"type": "output_text"}],
    "\ud83d",
]


class BrokenUpstream:
    """Sends the chunks of a scenario with some of them broken."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        scenario = self._random.choice(SCENARIOS)
        self.tools, self.model = scenario.tools, scenario.model
        self._events = sdk.events(scenario.stream)

    def stream(self) -> bytes:
        chunks: list[Any] = [event if event == "[DONE]" else json.loads(event) for event in self._events]
        for _ in range(self._random.randint(1, 4)):
            at = self._random.randrange(len(chunks))
            mutate = self._random.choice((self._drop, self._double, self._swap, self._break, self._break, self._break))
            mutate(chunks, at)
            chunks = chunks or ["[DONE]"]
        return b"".join(self._frame(chunk) for chunk in chunks)

    def _frame(self, chunk: Any) -> bytes:
        return f"data: {chunk if isinstance(chunk, str) else json.dumps(chunk)}\n\n".encode()

    def _drop(self, chunks: list[Any], at: int) -> None:
        del chunks[at]

    def _double(self, chunks: list[Any], at: int) -> None:
        chunks.insert(self._random.randint(0, len(chunks)), chunks[at])

    def _swap(self, chunks: list[Any], at: int) -> None:
        other = self._random.randrange(len(chunks))
        chunks[at], chunks[other] = chunks[other], chunks[at]

    def _break(self, chunks: list[Any], at: int) -> None:
        """Remove a field somewhere in the chunk, or replace it by a value of another type."""
        chunk = json.loads(json.dumps(chunks[at]))
        if places := _places(chunk):
            owner, key = self._random.choice(places)
            if self._random.random() < 0.4:
                del owner[key]
            else:
                owner[key] = self._random.choice(UNEXPECTED_VALUES)
        chunks[at] = chunk


def _places(value: Any) -> list[tuple[Any, Any]]:
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return [place for key in keys for place in [(value, key), *_places(value[key])]]


def final_events(out: bytes, target: str) -> list[str]:
    """Return the events that end a stream."""
    final = []
    for data in sdk.events(out):
        if target == "openai-chat":
            final += [data] if data.startswith(FINAL_EVENTS[target]) else []
        else:
            frame: Json = json.loads(data)
            final += [str(frame.get("type"))] if frame.get("type") in FINAL_EVENTS[target] else []
    return final


@pytest.mark.one_row_in(7)
@pytest.mark.parametrize("target", FINAL_EVENTS)
@pytest.mark.parametrize("seed", range(400))
def test_broken_stream_ends_exactly_once(seed: int, target: str) -> None:
    upstream = BrokenUpstream(seed)
    stream = upstream.stream()
    translator = il.Translator(RESPONSES, target, model=upstream.model, tools=upstream.tools)
    out = translator.feed(stream) + translator.close()
    assert len(final_events(out, target)) == 1, (stream, out)
