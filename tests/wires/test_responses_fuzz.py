"""Streams of responses that no server would send: nothing fails, and the client's stream ends exactly once."""

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
ENDS = {
    "openai-chat": ("[DONE]", '{"error"'),
    "anthropic-messages": ("message_stop", "error"),
    RESPONSES: ("response.completed", "response.incomplete", "response.failed", "error"),
}
ODD: list[Any] = [
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


class Upstream:
    """Sends the chunks of a scenario with some of them broken."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        scenario = self._random.choice(SCENARIOS)
        self.tools, self.model = scenario.tools, scenario.model
        self._events = sdk.events(scenario.stream)

    def stream(self) -> bytes:
        chunks: list[Any] = [one if one == "[DONE]" else json.loads(one) for one in self._events]
        for _ in range(self._random.randint(1, 4)):
            at = self._random.randrange(len(chunks))
            how = self._random.choice((self._drop, self._double, self._swap, self._break, self._break, self._break))
            how(chunks, at)
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
        """A field somewhere in the chunk is left out, or of another type."""
        chunk = json.loads(json.dumps(chunks[at]))
        if places := _places(chunk):
            owner, key = self._random.choice(places)
            if self._random.random() < 0.4:
                del owner[key]
            else:
                owner[key] = self._random.choice(ODD)
        chunks[at] = chunk


def _places(value: Any) -> list[tuple[Any, Any]]:
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return [place for key in keys for place in [(value, key), *_places(value[key])]]


def ends(out: bytes, target: str) -> list[str]:
    """The events that end a stream."""
    told = []
    for data in sdk.events(out):
        if target == "openai-chat":
            told += [data] if data.startswith(ENDS[target]) else []
        else:
            frame: Json = json.loads(data)
            told += [str(frame.get("type"))] if frame.get("type") in ENDS[target] else []
    return told


@pytest.mark.parametrize("target", ENDS)
@pytest.mark.parametrize("seed", range(400))
def test_whatever_comes(seed: int, target: str) -> None:
    upstream = Upstream(seed)
    stream = upstream.stream()
    translator = il.Translator(RESPONSES, target, model=upstream.model, tools=upstream.tools)
    out = translator.feed(stream) + translator.close()
    assert len(ends(out, target)) == 1, (stream, out)
