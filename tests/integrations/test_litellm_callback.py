"""The LiteLLM callback with stand-ins for LiteLLM's classes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import ModuleType
from typing import Any

import pytest

from tests.integrations.stand_ins import Record, import_plugin
from tests.support.harness import tool

CALL = '<tool_call>{"name": "ls", "arguments": {"path": "."}}</tool_call>'
REQUEST = {
    "model": "my-model",
    "messages": [],
    "tools": [tool("ls", ["path"])],
    "metadata": {"deployment": "openai/Qwen/Qwen3-8B"},
}


class Whole(Record):
    pass


class Chunk(Record):
    pass


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.delenv("INTERLINGUA_DIALECT", raising=False)
    modules: dict[str, dict[str, Any]] = {
        "litellm.integrations.custom_logger": {"CustomLogger": object},
        "litellm.types.utils": {"ModelResponse": Whole, "ModelResponseStream": Chunk},
    }
    return import_plugin(monkeypatch, "litellm_callback", modules)


def chunk(finish: str | None = None, **delta: Any) -> Chunk:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return Chunk(id="chatcmpl-1", object="chat.completion.chunk", created=1, model="m", choices=[choice])


def stream(plugin: ModuleType, chunks: list[Any], request: dict[str, Any]) -> list[Any]:
    async def replies() -> AsyncIterator[Any]:
        for item in chunks:
            yield item

    async def collect() -> list[Any]:
        hook = plugin.callback.async_post_call_streaming_iterator_hook
        return [item async for item in hook(None, replies(), request)]

    return asyncio.run(collect())


def test_streamed_reply(plugin: ModuleType) -> None:
    pieces = [chunk(content=CALL[start : start + 9]) for start in range(0, len(CALL), 9)]
    sent = stream(plugin, [chunk(role="assistant", content="Look."), *pieces, chunk(finish="stop")], REQUEST)
    deltas = [choice["delta"] for item in sent for choice in item.choices]
    assert "".join(delta.get("content") or "" for delta in deltas) == "Look."
    calls = [call["function"] for delta in deltas for call in delta.get("tool_calls", ())]
    assert calls[0]["name"] == "ls"
    assert "".join(call["arguments"] for call in calls) == '{"path": "."}'
    assert [choice["finish_reason"] for item in sent for choice in item.choices if choice["finish_reason"]] == [
        "tool_calls"
    ]


def test_complete_reply(plugin: ModuleType) -> None:
    message = {"role": "assistant", "content": f"Look.{CALL}"}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    body = Whole(id="chatcmpl-1", object="chat.completion", created=1, model="m", choices=choices)
    reply = asyncio.run(plugin.callback.async_post_call_success_hook(REQUEST, None, body))
    (choice,) = reply.choices
    assert (choice["message"]["content"], choice["finish_reason"]) == ("Look.", "tool_calls")


def test_other_replies_pass(plugin: ModuleType) -> None:
    other = Record(data=[])
    assert asyncio.run(plugin.callback.async_post_call_success_hook({}, None, other)) is other
    assert stream(plugin, [b"data: x\n\n"], {}) == [b"data: x\n\n"]
