"""Plain reading of OpenAI Responses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.common.schema.resolver import as_list, as_mapping
from interlingua.verification.reply_reading.client_reply import ReplyAssembler, as_count, as_text

__all__ = ["read_responses_body", "read_responses_event"]

_LAST_EVENTS = ("response.completed", "response.incomplete", "response.failed")
_REASONING_EVENTS = ("response.reasoning_text.delta", "response.reasoning_summary_text.delta")


def read_responses_event(reply: ReplyAssembler, event: Mapping[str, Any]) -> None:
    event_type, index, item = event.get("type"), event.get("output_index"), as_mapping(event.get("item"))
    if event_type == "response.output_text.delta":
        reply.add_text(as_text(event.get("delta")))
    elif event_type in _REASONING_EVENTS:
        reply.add_reasoning(as_text(event.get("delta")))
    elif event_type == "response.output_item.added" and item.get("type") == "function_call":
        reply.begin_call(index, as_text(item.get("call_id")), as_text(item.get("name")))
    elif event_type == "response.function_call_arguments.delta":
        reply.add_arguments(index, as_text(event.get("delta")))
    elif event_type == "response.output_item.done" and item.get("type") == "function_call":
        reply.begin_call(index, as_text(item.get("call_id")), as_text(item.get("name")))
        reply.set_arguments(index, as_text(item.get("arguments")))
    elif event_type in _LAST_EVENTS:
        _read_end(reply, as_mapping(event.get("response")))
    elif event_type == "error":
        reply.error = as_text(event.get("message")) or as_text(as_mapping(event.get("error")).get("message"))


def read_responses_body(reply: ReplyAssembler, body: Mapping[str, Any]) -> None:
    for key, item in enumerate(map(as_mapping, as_list(body.get("output")))):
        match item.get("type"):
            case "message":
                for part in map(as_mapping, as_list(item.get("content"))):
                    reply.add_text(as_text(part.get("text")))
            case "reasoning":
                for part in map(as_mapping, (*as_list(item.get("content")), *as_list(item.get("summary")))):
                    reply.add_reasoning(as_text(part.get("text")))
            case "function_call":
                reply.begin_call(key, as_text(item.get("call_id")), as_text(item.get("name")))
                reply.set_arguments(key, as_text(item.get("arguments")))
    _read_end(reply, body)


def _read_end(reply: ReplyAssembler, response: Mapping[str, Any]) -> None:
    if error := response.get("error"):
        reply.error = as_text(as_mapping(error).get("message")) or as_text(error)
    details = as_mapping(response.get("incomplete_details"))
    reply.finish_reason = as_text(details.get("reason")) or as_text(response.get("status"))
    reply.has_ended = response.get("status") in ("completed", "incomplete")
    reply.input_tokens = as_count(response.get("usage"), "input_tokens") or reply.input_tokens
    reply.output_tokens = as_count(response.get("usage"), "output_tokens") or reply.output_tokens
