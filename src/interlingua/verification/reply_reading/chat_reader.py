"""Plain reading of Chat Completions. Calls are joined by their index, as SDKs do it; a missing index is 0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.common.schema.resolver import as_list, as_mapping
from interlingua.verification.reply_reading.client_reply import ReplyAssembler, as_count, as_text

__all__ = ["read_chat_body", "read_chat_event"]

_REASONING_FIELDS = ("reasoning_content", "reasoning")


def read_chat_event(reply: ReplyAssembler, chunk: Mapping[str, Any]) -> None:
    _read_common(reply, chunk)
    for choice in _first_choice(chunk):
        delta = as_mapping(choice.get("delta"))
        reply.add_text(as_text(delta.get("content")))
        reply.add_reasoning(_reasoning_of(delta))
        for call in map(as_mapping, as_list(delta.get("tool_calls"))):
            function = as_mapping(call.get("function"))
            key = call.get("index") if isinstance(call.get("index"), int) else 0
            reply.begin_call(key, as_text(call.get("id")), as_text(function.get("name")))
            reply.add_arguments(key, as_text(function.get("arguments")))
        _read_finish(reply, choice)


def read_chat_body(reply: ReplyAssembler, body: Mapping[str, Any]) -> None:
    _read_common(reply, body)
    for choice in _first_choice(body):
        message = as_mapping(choice.get("message"))
        reply.add_text(as_text(message.get("content")))
        reply.add_reasoning(_reasoning_of(message))
        for key, call in enumerate(map(as_mapping, as_list(message.get("tool_calls")))):
            function = as_mapping(call.get("function"))
            reply.begin_call(key, as_text(call.get("id")), as_text(function.get("name")))
            reply.set_arguments(key, as_text(function.get("arguments")))
        _read_finish(reply, choice)
        reply.has_ended = True


def _first_choice(chunk: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    choices = [as_mapping(choice) for choice in as_list(chunk.get("choices"))]
    return [choice for choice in choices if not choice.get("index")][:1]


def _read_common(reply: ReplyAssembler, chunk: Mapping[str, Any]) -> None:
    if error := chunk.get("error"):
        reply.error = reply.error or as_text(as_mapping(error).get("message")) or as_text(error)
    choice_usages = [as_mapping(choice).get("usage") for choice in as_list(chunk.get("choices"))]
    for usage in filter(None, (*choice_usages, chunk.get("usage"))):  # Moonshot reports it inside the choice
        reply.input_tokens = as_count(usage, "prompt_tokens") or reply.input_tokens
        reply.output_tokens = as_count(usage, "completion_tokens") or reply.output_tokens


def _reasoning_of(message: Mapping[str, Any]) -> str:
    """Return the thinking. Servers that send both fields send the same text in both."""
    return next((text for field in _REASONING_FIELDS if (text := as_text(message.get(field)))), "")


def _read_finish(reply: ReplyAssembler, choice: Mapping[str, Any]) -> None:
    if finish_reason := choice.get("finish_reason"):
        reply.finish_reason = as_text(finish_reason)
        reply.has_ended = True
