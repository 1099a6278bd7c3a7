"""Fuzz test with malformed Anthropic streams: the output is always valid and does not depend on the cuts."""

from __future__ import annotations

import random
from typing import Any

import pytest

import interlingua as il
from interlingua.core.options import Limits
from tests.support import anthropic_client, sdk
from tests.support.anthropic_scenarios import END_USAGE, ERROR_EVENT, PING, message_start, sse
from tests.support.chat_scenarios import ARGS, CALL, CLOSE, END, KIMI, SECTION
from tests.support.cuts import random_pieces
from tests.support.harness import tool
from tests.support.sdk import Json
from tests.translation.test_translator_fuzz import Upstream as ChatUpstream

NAME, CHAT = "anthropic-messages", "openai-chat"
WORDS = [SECTION, CALL, ARGS, END, CLOSE, "<think>", "</think>", "functions.f:0", '{"a": 1}', "{", "}", "hi ", " ", "é"]
INPUTS: list[Any] = [{}, {}, {}, None, {"a": 1}, {"a": {"b": []}}, '{"a": 1}', "x", 5, []]
PARTS = ["", '{"a": 1}', '{"a"', ": 1}", ',"b": 2}', "{", "}", "null", None, {"a": 1}, " ", '"b": 2}', "x", "{}"]


class Upstream:
    """Generator of random, malformed streams."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.one_of = self._random.choice

    def stream(self) -> bytes:
        events = [self._event() for _ in range(self._random.randint(0, 12))]
        first = [message_start(KIMI)] if self._with_probability(0.8) else []
        last = [self._end()] if self._with_probability(0.8) else []
        stop = [{"type": "message_stop"}] if self._with_probability(0.7) else []
        done = b"data: [DONE]\n\n" if self._with_probability(0.2) else b""
        return sse(*first, *events, *last, *stop, named=self._with_probability(0.8)) + done

    def options(self) -> il.Options:
        return il.Options(
            delivery=self.one_of(["stream", "stream", "whole"]),
            reasoning=self.one_of(["keep", "keep", "as_content", "drop"]),
            served_as=self.one_of(["", "", "mine"]),
            limits=Limits(
                held=self.one_of([1 << 20, 30]), args=self.one_of([1 << 20, 12]), over=self.one_of(["flush", "error"])
            ),
        )

    def _with_probability(self, probability: float) -> bool:
        return self._random.random() < probability

    def _text(self) -> str:
        return "".join(self.one_of(WORDS) for _ in range(self._random.randint(0, 4)))

    def _event(self) -> Json:
        index = self.one_of([0, 0, 1, 1, 2, 3, None, "0", [0]])
        odd: list[Json] = [PING, ERROR_EVENT, message_start(), self._end(), {"type": "news"}, {"type": "message_stop"}]
        start: Json = {"type": "content_block_start", "index": index, "content_block": self._block()}
        delta: Json = {"type": "content_block_delta", "index": index, "delta": self._delta()}
        stop: Json = {"type": "content_block_stop", "index": index}
        return self.one_of([start] * 4 + [delta] * 8 + [stop] * 4 + [self.one_of(odd)])

    def _block(self) -> Any:
        named = {"id": self.one_of(["a", "b", "f.g:0", None, ""]), "name": self.one_of(["f", "g", "f", "", None])}
        return self.one_of(
            [{"type": "text", "text": self.one_of(["", "", self._text(), None])}] * 3
            + [{"type": "thinking", "thinking": self.one_of(["", "x"]), "signature": self.one_of(["", "S", None])}] * 2
            + [{"type": "tool_use", **named, "input": self.one_of(INPUTS)}] * 4
            + [{"type": "redacted_thinking", "data": self.one_of(["D", None])}, {"type": "poem"}, None, {"x": 1}]
        )

    def _delta(self) -> Any:
        return self.one_of(
            [{"type": "text_delta", "text": self.one_of([self._text(), self._text(), "", None, 5])}] * 4
            + [{"type": "thinking_delta", "thinking": self.one_of([self._text(), ""])}] * 2
            + [{"type": "input_json_delta", "partial_json": self.one_of(PARTS)}] * 5
            + [{"type": "signature_delta", "signature": self.one_of(["S", ""])}, {"type": "line", "x": 1}, None, {}]
        )

    def _end(self) -> Json:
        reason = self.one_of(["end_turn", "tool_use", "max_tokens", "stop_sequence", "pause_turn", None, "eos", 5])
        usage = self.one_of([END_USAGE, END_USAGE, None, {"output_tokens": None}])
        sequence = "x" if reason == "stop_sequence" else None
        return {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": sequence}, "usage": usage}


PAIRS = [(NAME, NAME), (NAME, CHAT), (CHAT, NAME)]


@pytest.mark.parametrize(("source", "target"), PAIRS)
@pytest.mark.parametrize("start", range(0, 500, 100))
def test_malformed_stream_gives_valid_output(start: int, source: str, target: str) -> None:
    for seed in range(start, start + 100):
        upstream = Upstream(seed) if source == NAME else ChatUpstream(seed)
        stream, options = upstream.stream(), upstream.options()
        offered = upstream.one_of([None, None, [], [tool("f", ["a"])]])
        results = []
        for cut in ([stream], random_pieces(stream, seed)):
            translator = il.Translator(source, target, model=KIMI, tools=offered, options=options)
            out = b"".join([*map(translator.feed, cut), translator.close()])
            view = (anthropic_client if target == NAME else sdk).read_strict(out)
            assert view.done != (view.error is not None), f"{seed}: ends normally or with an error"
            results.append((view, [finding.kind for finding in translator.findings]))
        assert results[0] == results[1], f"{seed}: depends on the cuts"
