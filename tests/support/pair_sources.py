"""Streams and whole bodies of each wire for a scene, written without our emitters.

`size` is the number of characters in each delta.
"""

from __future__ import annotations

import json
from typing import Any

from tests.support import anthropic_scenarios as messages
from tests.support import chat_scenarios as chat
from tests.support import responses_scenarios as responses
from tests.support.pair_scenes import ERROR_MESSAGE, CallPart, RefusalPart, Scene, ScenePart, TextPart, ThinkingPart
from tests.support.sdk import Json

CHAT, MESSAGES, RESPONSES = "openai-chat", "anthropic-messages", "openai-responses"
MODEL = "upstream-model"


def split_text(text: str, size: int) -> list[str]:
    return [text[n : n + size] for n in range(0, len(text), size)]


# ── chat completions ──────────────────────────────────────────────────────────────────────────────────────────────


def chat_usage(scene: Scene) -> Json:
    tokens = scene.tokens
    return {
        "prompt_tokens": tokens.input,
        "completion_tokens": tokens.output,
        "total_tokens": tokens.input + tokens.output,
        "prompt_tokens_details": {"cached_tokens": tokens.cached, "cache_write_tokens": tokens.written},
        "completion_tokens_details": {"reasoning_tokens": tokens.reasoning},
    }


def chat_deltas(part: ScenePart, index: int, size: int) -> list[Json]:
    """Return the deltas of a part. `index` counts the parts of its kind."""
    match part:
        case TextPart():
            return [{"content": piece} for piece in split_text(part.text, size)]
        case RefusalPart():
            return [{"refusal": piece} for piece in split_text(part.text, size)]
        case ThinkingPart() if not part.signature:
            return [{"reasoning_content": piece} for piece in split_text(part.text, size)]
        case ThinkingPart():
            if not part.text:
                return [reasoning_delta({"type": "reasoning.encrypted", "data": part.signature, "index": index})]
            details = [
                {"type": "reasoning.text", "text": piece, "index": index} for piece in split_text(part.text, size)
            ]
            signature_detail = {"type": "reasoning.text", "signature": part.signature, "index": index}
            return [
                *({"reasoning": detail["text"], "reasoning_details": [detail]} for detail in details),
                reasoning_delta(signature_detail),
            ]
        case CallPart():
            pieces = [[chat.call_delta(piece, index)] for piece in split_text(part.args, size)]
            return [{"tool_calls": entries} for entries in ([chat.call_start(part.name, "", index, part.id)], *pieces)]


def reasoning_delta(detail: Json) -> Json:
    return {"reasoning_details": [detail]}


def chat_stream(scene: Scene, size: int = 5) -> bytes:
    def make_chunk(delta: Json, finish: str | None = None) -> Json:
        return chat.chunk(chat.choice(delta, finish), model=MODEL)

    chunks = [make_chunk({"role": "assistant", "content": ""})] if scene.parts or scene.ending == "well" else []
    for n, part in enumerate(scene.parts):
        index = sum(isinstance(earlier, type(part)) for earlier in scene.parts[:n])
        chunks += [make_chunk(delta) for delta in chat_deltas(part, index, size)]
    if scene.ending == "error":
        return chat.sse(*chunks, {"error": {"message": ERROR_MESSAGE, "type": "server_error", "code": 500}}, done=False)
    if scene.ending == "broken off":
        return chat.sse(*chunks, done=False)
    return chat.sse(*chunks, make_chunk({}, scene.stop), chat.chunk(model=MODEL, usage=chat_usage(scene)))


def chat_body(scene: Scene) -> Json:
    message: Json = {"role": "assistant", "content": None, "refusal": None}
    for part in scene.parts:
        match part:
            case TextPart():
                message["content"] = (message["content"] or "") + part.text
            case RefusalPart():
                message["refusal"] = part.text
            case ThinkingPart() if part.signature:
                details = message.setdefault("reasoning_details", [])
                visible = {"type": "reasoning.text", "text": part.text, "signature": part.signature}
                hidden = {"type": "reasoning.encrypted", "data": part.signature}
                details.append({**(visible if part.text else hidden), "index": len(details)})
                message["reasoning"] = message.get("reasoning", "") + part.text
            case ThinkingPart():
                message["reasoning_content"] = part.text
            case CallPart():
                entry = chat.without_keys(chat.call_start(part.name, part.args, id=part.id), "index")
                message.setdefault("tool_calls", []).append(entry)
    if scene.ending == "error":
        return {"error": {"message": ERROR_MESSAGE, "type": "server_error", "code": 500}}
    choice = {"index": 0, "message": message, "finish_reason": scene.stop, "logprobs": None}
    head = {"id": "gen-1", "object": "chat.completion", "created": 1763198400, "model": MODEL}
    return {**head, "choices": [choice], "usage": chat_usage(scene)}


# ── Anthropic Messages ────────────────────────────────────────────────────────────────────────────────────────────

STOPS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}


def messages_stop(scene: Scene) -> Json:
    for part in scene.parts:
        if isinstance(part, RefusalPart):
            details = {"type": "refusal", "category": None, "explanation": part.text}
            return {"stop_reason": "refusal", "stop_sequence": None, "stop_details": details}
    reason = "stop_sequence" if scene.sequence else STOPS[scene.stop]
    return {"stop_reason": reason, "stop_sequence": scene.sequence}


def messages_usage(scene: Scene) -> Json:
    tokens = scene.tokens
    details = {"output_tokens_details": {"thinking_tokens": tokens.reasoning}} if tokens.reasoning else {}
    return {
        "input_tokens": tokens.input - tokens.cached - tokens.written,
        "cache_creation_input_tokens": tokens.written,
        "cache_read_input_tokens": tokens.cached,
        "output_tokens": tokens.output,
        **details,
    }


def messages_block_events(scene: Scene, size: int) -> list[Json]:
    events: list[Json] = []
    parts = [part for part in scene.parts if not isinstance(part, RefusalPart)]
    for index, part in enumerate(parts):
        match part:
            case TextPart():
                events += messages.text_block(index, *split_text(part.text, size))
            case ThinkingPart() if not part.text:
                events += [
                    messages.block_start(index, "redacted_thinking", data=part.signature),
                    messages.block_stop(index),
                ]
            case ThinkingPart():
                events += messages.thinking_block(index, *split_text(part.text, size), signature=part.signature)
            case CallPart():
                events += messages.tool_use_block(index, "", *split_text(part.args, size), id=part.id, name=part.name)
    return events[:-1] if scene.ending != "well" else events


def messages_stream(scene: Scene, size: int = 5) -> bytes:
    if scene.ending == "broken off" and not scene.parts:
        return b""
    usage = messages_usage(scene)
    first = messages.message_start(MODEL, usage={**usage, "output_tokens": 1})
    error = {"type": "error", "error": {"type": "overloaded_error", "message": ERROR_MESSAGE}, "request_id": "req_1"}
    if scene.ending == "error":
        return messages.sse(*([first, *messages_block_events(scene, size)] if scene.parts else []), error)
    if scene.ending == "broken off":
        return messages.sse(first, *messages_block_events(scene, size))
    last = {"type": "message_delta", "delta": messages_stop(scene), "usage": usage}
    return messages.sse(first, messages.PING, *messages_block_events(scene, size), last, {"type": "message_stop"})


def messages_body(scene: Scene) -> Json:
    if scene.ending == "error":
        return {"type": "error", "error": {"type": "overloaded_error", "message": ERROR_MESSAGE}, "request_id": "req_1"}
    content: list[Json] = []
    for part in scene.parts:
        match part:
            case TextPart():
                content.append({"type": "text", "text": part.text})
            case ThinkingPart() if not part.text:
                content.append({"type": "redacted_thinking", "data": part.signature})
            case ThinkingPart():
                content.append({"type": "thinking", "thinking": part.text, "signature": part.signature})
            case CallPart():
                arguments = json.loads(part.args or "{}")
                content.append({"type": "tool_use", "id": part.id, "name": part.name, "input": arguments})
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": MODEL, "content": content}
    return {**head, **messages_stop(scene), "usage": messages_usage(scene)}


# ── Responses ─────────────────────────────────────────────────────────────────────────────────────────────────────


def response_event(event_type: str, *output: Json, **fields: Any) -> Json:
    event = responses.response_event(event_type, list(output), **fields)
    return {**event, "response": {**event["response"], "model": MODEL}}


def responses_usage(scene: Scene) -> Json:
    tokens = scene.tokens
    return {
        "input_tokens": tokens.input,
        "input_tokens_details": {"cached_tokens": tokens.cached, "cache_write_tokens": tokens.written},
        "output_tokens": tokens.output,
        "output_tokens_details": {"reasoning_tokens": tokens.reasoning},
        "total_tokens": tokens.input + tokens.output,
    }


def responses_item_events(part: ScenePart, index: int, size: int) -> list[Json]:
    """Return the events of one item, from `output_item.added` to `output_item.done`."""
    match part:
        case TextPart():
            return responses.message_events(split_text(part.text, size), index, f"msg_{index}")
        case RefusalPart():
            return responses.refusal_events(split_text(part.text, size), index, f"msg_{index}")
        case ThinkingPart():
            texts = [split_text(part.text, size)] if part.text else []
            return responses.reasoning_events(texts, index, f"rs_{index}", part.signature or None)
        case CallPart() if part.text is not None:
            pieces = split_text(part.text, size)
            return responses.custom_call_events(pieces, index, id=f"ctc_{index}", call_id=part.id, name=part.name)
        case CallPart():
            name_fields: Json = {
                "name": part.local_name or part.name,
                **({"namespace": part.namespace} if part.namespace else {}),
            }
            return responses.call_events(
                split_text(part.args, size), index, id=f"fc_{index}", call_id=part.id, **name_fields
            )


def truncate_item(events: list[Json]) -> list[Json]:
    """Return the events of an item up to its last delta."""
    return events[: 1 + max(n for n, event in enumerate(events) if event["type"].endswith((".delta", ".added")))]


def responses_output(scene: Scene, size: int = 1000) -> tuple[list[Json], list[Json]]:
    """Return the events of all items, and the items in their final form."""
    item_events = [responses_item_events(part, index, size) for index, part in enumerate(scene.parts)]
    output = [events[-1]["item"] for events in item_events]
    if scene.ends_inside_part:
        item_events[-1] = truncate_item(item_events[-1])
        output[-1] = {**output[-1], "status": "incomplete"}
    return [event for events in item_events for event in events], output


def responses_final_event(scene: Scene, output: list[Json]) -> Json:
    usage = responses_usage(scene)
    if scene.ending == "error":
        return response_event("failed", *output, error={"code": "server_error", "message": ERROR_MESSAGE})
    if scene.stop in ("length", "content_filter"):
        reason = "max_output_tokens" if scene.stop == "length" else "content_filter"
        return response_event("incomplete", *output, usage=usage, incomplete_details={"reason": reason})
    return response_event("completed", *output, usage=usage)


def responses_stream(scene: Scene, size: int = 5) -> bytes:
    events, output = responses_output(scene, size)
    opening = [response_event("created"), response_event("in_progress")]
    if scene.ending == "broken off":
        return responses.sse(*(opening if scene.parts else []), *events)
    if scene.ending == "error" and not scene.parts:
        return responses.sse({"type": "error", "code": "server_error", "message": ERROR_MESSAGE, "param": None})
    return responses.sse(*opening, *events, responses_final_event(scene, output))


def responses_body(scene: Scene) -> Json:
    if scene.ending == "error":
        return {"error": {"type": "server_error", "code": "server_error", "message": ERROR_MESSAGE, "param": None}}
    body: Json = responses_final_event(scene, responses_output(scene)[1])["response"]
    return body


STREAMS = {CHAT: chat_stream, MESSAGES: messages_stream, RESPONSES: responses_stream}
BODIES = {CHAT: chat_body, MESSAGES: messages_body, RESPONSES: responses_body}
