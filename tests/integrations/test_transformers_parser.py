"""The replacement for `parse_response`, with a stand-in for a tokenizer."""

from __future__ import annotations

from typing import Any

import pytest

from interlingua.integrations.transformers_parser import ResponseStreamer, TokenDecoder, parse_response
from tests.support.harness import tool

CALL = '<tool_call>{"name": "ls", "arguments": {"path": "."}}</tool_call>'
TOOLS = [tool("ls", ["path"])]
CALL_ENTRY = {"type": "function", "function": {"name": "ls", "arguments": {"path": "."}}}


class ByteTokenizer:
    """Tokenizer with one token per byte, and one for the end of the turn."""

    name_or_path = "Qwen/Qwen3-8B"
    eos_token, eos_token_id, pad_token = "<|stop|>", 256, "<|pad|>"

    def encode(self, text: str) -> list[int]:
        return list(text.encode())

    def decode(self, tokens: Any) -> Any:
        if tokens and isinstance(tokens[0], list):
            return [self.decode(row) for row in tokens]
        pieces = bytes(token for token in tokens if token < 256).decode(errors="replace")
        return pieces + self.eos_token * sum(token == 256 for token in tokens)


class Tensor(list[Any]):
    """Tokens as `model.generate` passes them."""

    @property
    def shape(self) -> tuple[int, ...]:
        return (1, len(self[0])) if isinstance(self[0], list) else (len(self),)


def without_ids(message: dict[str, Any]) -> dict[str, Any]:
    calls = [{key: value for key, value in call.items() if key != "id"} for call in message.get("tool_calls", ())]
    return {**message, "tool_calls": calls} if calls else message


ROWS = [
    (f"<think>Hm.</think>I will.{CALL}", "", {"thinking": "Hm.", "content": "I will.", "tool_calls": [CALL_ENTRY]}),
    ("Hm.</think>São 🚀", "<think>", {"thinking": "Hm.", "content": "São 🚀"}),
    ("", "", {"content": ""}),
]


@pytest.mark.parametrize(("text", "prompt", "expected"), ROWS)
def test_text_tokens_and_batches(text: str, prompt: str, expected: dict[str, Any]) -> None:
    tokenizer, message = ByteTokenizer(), {"role": "assistant", **expected}
    tokens, prefix = [*tokenizer.encode(text), 256], tokenizer.encode(prompt or " ")
    assert without_ids(parse_response(tokenizer, text, prefix=prompt, tools=TOOLS)) == message
    assert without_ids(parse_response(tokenizer, tokens, prefix=prefix, tools=TOOLS)) == message
    for batch in (
        parse_response(tokenizer, [text, f"{text}<|stop|><|pad|>"], prefix=[prompt, prompt], tools=TOOLS),
        parse_response(tokenizer, [tokens, tokens], prefix=prompt, tools=TOOLS),
    ):
        assert [without_ids(item) for item in batch] == [message] * 2


@pytest.mark.parametrize(("text", "prompt", "expected"), ROWS)
def test_streamed_reply(text: str, prompt: str, expected: dict[str, Any]) -> None:
    tokenizer = ByteTokenizer()
    streamer = ResponseStreamer(tokenizer, TOOLS)
    streamer.put(Tensor([tokenizer.encode(f"user: hi {prompt}")]))
    for token in [*tokenizer.encode(text), 256]:
        streamer.put(Tensor([token]))
    streamer.end()
    deltas = list(streamer)
    assert without_ids(streamer.message) == {"role": "assistant", **expected}
    for key in ("thinking", "content"):
        assert "".join(delta.get(key, "") for delta in deltas) == expected.get(key, "")
    calls = [call for delta in deltas for call in delta.get("tool_calls", ())]
    assert "".join(call["function"]["arguments"] for call in calls) == ('{"path": "."}' if calls else "")
    assert sum("id" in call for call in calls) == len(expected.get("tool_calls", ()))


def test_truncated_call_keeps_its_text() -> None:
    message = parse_response(ByteTokenizer(), '<tool_call>{"name": "ls", "arguments": {"path": "a', tools=TOOLS)
    assert message["tool_calls"][0]["function"]["arguments"] == '{"path": "a'


def test_dialect_by_name() -> None:
    text = '[TOOL_CALLS]ls[ARGS]{"path": "."}'
    assert "tool_calls" in parse_response(ByteTokenizer(), text, tools=TOOLS, dialect="mistral_v13")


def test_streamer_reports_a_failed_generation() -> None:
    with pytest.raises(TimeoutError, match="generate"):
        next(iter(ResponseStreamer(ByteTokenizer(), timeout=0.01)))


def test_streamer_without_tokens_ends() -> None:
    streamer = ResponseStreamer(ByteTokenizer())
    streamer.end()
    assert (list(streamer), streamer.message) == ([], {"role": "assistant", "content": ""})


def test_half_of_a_character_is_decoded_at_the_end() -> None:
    decoder = TokenDecoder(ByteTokenizer())
    first, second, *rest = "🚀".encode()
    assert (decoder.feed([first]), decoder.feed([second]), decoder.close()) == ("", "", "\ufffd")
    assert rest
