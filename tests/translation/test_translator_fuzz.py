"""Streams that no server would send: whatever comes in, what goes out is right, and does not depend on the cuts."""

from __future__ import annotations

import random
from typing import Any

import pytest

import interlingua as il
from interlingua.core.options import Limits
from tests.support.chat_scenarios import ARGS, CALL, CLOSE, END, KIMI, SECTION, USAGE, chunk, sse
from tests.support.cuts import random_pieces
from tests.support.harness import tool
from tests.support.sdk import Json, read_strict

MARKERS = [SECTION, CALL, ARGS, END, CLOSE]
WORDS = [
    *MARKERS,
    *MARKERS,
    "<think>",
    "</think>",
    "<|im_end|>",
    "functions.f:0",
    "functions.g:1",
    "call_9",
    "3",
    "hi ",
]
WORDS += ['{"a": 1}', '{"a"', ": 1}", "{", "}", "null", "[", " ", "\n", '"x', "\ud83d", "\ude80", "é", "<|tool_call"]
ARGUMENTS = [
    "",
    '{"a": 1}',
    '{"a"',
    ": 1}",
    "{",
    "}",
    "null",
    None,
    {"a": 1},
    [1],
    5,
    " ",
    '"{}"',
    '{"a": {"a": 1}',
    "x",
]


class Upstream:
    """Says what comes to its mind."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.one_of = self._random.choice

    def stream(self) -> bytes:
        events = [self._event() for _ in range(self._random.randint(1, 9))]
        return sse(*events, done=self._sometimes(0.7))

    def options(self) -> il.Options:
        return il.Options(
            delivery=self.one_of(["stream", "stream", "whole"]),
            reasoning=self.one_of(["keep", "keep", "as_content", "drop"]),
            limits=Limits(
                header=self.one_of([1024, 20]),
                held=self.one_of([1 << 20, 30]),
                args=self.one_of([1 << 20, 12]),
                over=self.one_of(["flush", "error"]),
            ),
        )

    def _sometimes(self, chance: float) -> bool:
        return self._random.random() < chance

    def _some(self, given: dict[str, tuple[float, Any]]) -> Json:
        """Each field with its own chance to be there."""
        return {key: value for key, (chance, value) in given.items() if self._sometimes(chance)}

    def _event(self) -> Json | str:
        if self._sometimes(0.05):
            return self.one_of(["{bad", "", "[1]", "null", '"x"'])
        told = chunk(*(self._choice() for _ in range(self.one_of([0, 1, 1, 1, 1, 2]))))
        told |= self._some(
            {
                "usage": (0.1, self.one_of([USAGE, None, {}])),
                "error": (0.02, self.one_of([{"message": "boom"}, "boom", None, {}, {"code": 1}])),
                "choices": (0.03, self.one_of([None, {}, "x"])),
                "obfuscation": (0.1, "z"),
            }
        )
        if self._sometimes(0.05):
            del told[self.one_of(["id", "object", "created", "choices"])]
        return told

    def _choice(self) -> Any:
        told = self._some(
            {
                "index": (0.95, self.one_of([0, 0, 0, 0, 1, None])),
                "delta": (0.98, self.one_of([self._delta()] * 15 + [None, "x", []])),
                "usage": (0.05, USAGE),
                "error": (0.03, {"message": "boom"}),
            }
        )
        finishes = ["stop", "length", "tool_calls", "content_filter", "", "x", 5, "error"]
        told["finish_reason"] = self.one_of([None] * 8 + finishes)
        return self.one_of([told] * 20 + [None, 5])

    def _delta(self) -> Json:
        parts = [{"type": "text", "text": self._text()}, 3]
        entries = [self._entry() for _ in range(self.one_of([0, 1, 1, 2, 3]))]
        return self._some(
            {
                "role": (0.4, self.one_of(["assistant", None, ""])),
                "content": (0.6, self.one_of([self._text(), self._text(), None, parts, 5])),
                "reasoning": (0.3, self.one_of([self._text(), None])),
                "reasoning_content": (0.2, self._text()),
                "reasoning_details": (0.2, self.one_of([[{"text": self._text()}], [{"data": "x"}], None, []])),
                "tool_calls": (0.5, self.one_of([entries, None, "x"])),
                "function_call": (0.05, self.one_of([{"name": "f", "arguments": "{}"}, {"arguments": "{"}, None, "x"])),
                "refusal": (0.1, self.one_of(["no", None])),
                "extra": (0.1, self._text()),
            }
        )

    def _entry(self) -> Any:
        named = self._some(
            {
                "name": (0.6, self.one_of(["f", "g", "h", None, "", ["x"]])),
                "arguments": (0.9, self.one_of(ARGUMENTS)),
            }
        )
        entry = self._some(
            {
                "index": (0.85, self.one_of([0, 0, 0, 1, 1, 2, 5, None, "0", True, -1])),
                "id": (0.6, self.one_of(["call_1", "call_2", "call_3", None, "", 7])),
                "type": (0.7, self.one_of(["function", "function", None, "", "custom"])),
                "function": (0.95, self.one_of([named] * 6 + [None])),
                "extra": (0.1, 1),
            }
        )
        return self.one_of([entry] * 12 + [None, "x"])

    def _text(self) -> str:
        return "".join(self.one_of(WORDS) for _ in range(self._random.randint(0, 5)))


@pytest.mark.parametrize("start", range(0, 1000, 100))
def test_whatever_comes(start: int) -> None:
    for seed in range(start, start + 100):
        upstream = Upstream(seed)
        stream, options = upstream.stream(), upstream.options()
        offered = upstream.one_of([None, None, [], [tool("f", ["a"])]])
        told = []
        for cut in ([stream], random_pieces(stream, seed)):
            translator = il.Translator(model=KIMI, tools=offered, options=options)
            out = b"".join([*map(translator.feed, cut), translator.close()])
            heard = read_strict(out)
            assert heard.done != (heard.error is not None), f"{seed}: ends with [DONE] or with an error"
            for said in heard.choices.values() if offered != [] else ():  # without tools, text is not changed
                assert not any(marker in said.text + said.reasoning for marker in MARKERS), f"{seed}: {said}"
            told.append((heard, [finding.kind for finding in translator.findings]))
        assert told[0] == told[1], f"{seed}: depends on the cuts"
