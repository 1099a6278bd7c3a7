"""Plain reading of Anthropic Messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.common.schema.resolver import as_list, as_mapping
from interlingua.verification.reply_reading.client_reply import ReplyAssembler, as_count, as_text

__all__ = ["read_messages_body", "read_messages_event"]


def read_messages_event(reply: ReplyAssembler, event: Mapping[str, Any]) -> None:
    index = event.get("index")
    match event.get("type"):
        case "message_start":
            _read_usage(reply, as_mapping(event.get("message")).get("usage"))
        case "content_block_start":
            _begin_block(reply, index, as_mapping(event.get("content_block")))
        case "content_block_delta":
            delta = as_mapping(event.get("delta"))
            reply.add_text(as_text(delta.get("text")))
            reply.add_reasoning(as_text(delta.get("thinking")))
            if delta.get("type") == "input_json_delta":
                reply.add_arguments(index, as_text(delta.get("partial_json")))
        case "message_delta":
            reply.finish_reason = as_text(as_mapping(event.get("delta")).get("stop_reason")) or reply.finish_reason
            _read_usage(reply, event.get("usage"))
        case "message_stop":
            reply.has_ended = True
        case "error":
            reply.error = as_text(as_mapping(event.get("error")).get("message")) or as_text(event.get("error"))


def _begin_block(reply: ReplyAssembler, index: object, block: Mapping[str, Any]) -> None:
    if block.get("type") == "tool_use":
        reply.begin_call(index, as_text(block.get("id")), as_text(block.get("name")))
        if block.get("input"):  # the SDK starts with it and appends the deltas
            reply.add_arguments(index, as_text(block["input"]))
    reply.add_text(as_text(block.get("text")))
    reply.add_reasoning(as_text(block.get("thinking")))


def read_messages_body(reply: ReplyAssembler, body: Mapping[str, Any]) -> None:
    if error := body.get("error"):
        reply.error = as_text(as_mapping(error).get("message")) or as_text(error)
        return
    for key, block in enumerate(map(as_mapping, as_list(body.get("content")))):
        _begin_block(reply, key, {**block, "input": None})
        if block.get("type") == "tool_use":
            reply.set_arguments(key, as_text(block.get("input")))
    reply.finish_reason = as_text(body.get("stop_reason"))
    reply.has_ended = bool(reply.finish_reason)
    _read_usage(reply, body.get("usage"))


def _read_usage(reply: ReplyAssembler, usage: object) -> None:
    cached = as_count(usage, "cache_read_input_tokens") + as_count(usage, "cache_creation_input_tokens")
    reply.input_tokens = (as_count(usage, "input_tokens") + cached) or reply.input_tokens
    reply.output_tokens = as_count(usage, "output_tokens") or reply.output_tokens
