"""ReplyStats: independent of cuts, with estimated tokens if the upstream reports no usage."""

from __future__ import annotations

import json
from typing import Any

import pytest

import interlingua as il
from interlingua import events as ev
from interlingua.core.reply_stats import ReplyStats
from tests.support import upstream_server as up

WIRES = ("openai-chat", "anthropic-messages", "openai-responses")
WORDS = ["Nobody ", "has ", "heard ", "all ", "of it. ", "Никто. ", "没有人。"] * 30
STREAM = [up.ROLE, *map(up.delta, WORDS), up.delta(finish="stop"), up.DONE]
SIZE = len("".join(WORDS).encode())


def translated(target: str, pieces: list[bytes], input_tokens: int = 50) -> tuple[il.Translator, bytes]:
    translator = il.Translator("openai-chat", target, "standard", options=il.Options(input_tokens=input_tokens))
    return translator, b"".join(map(translator.feed, pieces)) + translator.close()


@pytest.mark.parametrize("target", WIRES)
def test_estimate_does_not_depend_on_cuts(target: str) -> None:
    data = b"".join(STREAM)
    for pieces in (STREAM, [data], [data[n : n + 7] for n in range(0, len(data), 7)]):
        translator, output = translated(target, pieces)
        usage = translator.tally.usage
        assert usage == ev.Usage(input=50, output=-(-SIZE // 4), estimated=True)
        assert [finding.kind for finding in translator.findings] == ["usage-estimated"]
        assert str(usage.output).encode() in output


@pytest.mark.parametrize("target", WIRES)
def test_whole_replies_have_the_same_estimate(target: str) -> None:
    message = {"role": "assistant", "content": "".join(WORDS)}
    body: dict[str, Any] = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
    body["choices"] = [{"index": 0, "message": message, "finish_reason": "stop"}]
    for reply in (
        il.translate_reply(body, "openai-chat", target, "standard", options=il.Options(input_tokens=50)),
        il.Translator("openai-chat", target, "standard", options=il.Options(input_tokens=50)).fold(b"".join(STREAM)),
    ):
        assert [n for n in reply["usage"].values() if isinstance(n, int) and n][:2] == [50, -(-SIZE // 4)]


@pytest.mark.parametrize("target", WIRES)
def test_no_reply_estimate_without_request_estimate(target: str) -> None:
    translator, _ = translated(target, STREAM, input_tokens=0)
    assert (translator.tally.usage, translator.findings) == (None, [])


def test_passthrough_adds_only_the_usage() -> None:
    _, output = translated("openai-chat", STREAM)
    usage = output.removeprefix(b"".join(STREAM[:-1])).removesuffix(STREAM[-1])
    chunk = json.loads(usage.removeprefix(b"data: "))
    assert (chunk["choices"], chunk["id"], chunk["usage"]["prompt_tokens"]) == ([], "chatcmpl-1", 50)


def test_calls_are_counted() -> None:
    tally = ReplyStats()
    for event in (ev.CallStart(0, "a", "read"), ev.ArgsDelta(0, '{"a": 1}'), ev.CallEnd(0), ev.ReasoningDelta("四")):
        tally.count(event)
    assert (tally.calls, tally.content_bytes, tally.estimated_tokens) == (1, 11, 11)
