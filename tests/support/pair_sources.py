"""How upstreams of each wire tell a scene, as a stream and as a whole body. None of it is written by our emitters.

`size` is how many characters of a text come at once.
"""

from __future__ import annotations

import json
from typing import Any

from tests.support import anthropic_scenarios as messages
from tests.support import chat_scenarios as chat
from tests.support import responses_scenarios as responses
from tests.support.pair_scenes import BOOM, Call, Part, Refusal, Scene, Speech, Thought
from tests.support.sdk import Json

CHAT, MESSAGES, RESPONSES = "openai-chat", "anthropic-messages", "openai-responses"
MODEL = "upstream-model"


def cut(text: str, size: int) -> list[str]:
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


def chat_deltas(part: Part, index: int, size: int) -> list[Json]:
    """`index` is the part's among those of its kind."""
    match part:
        case Speech():
            return [{"content": piece} for piece in cut(part.text, size)]
        case Refusal():
            return [{"refusal": piece} for piece in cut(part.text, size)]
        case Thought() if not part.seal:
            return [{"reasoning_content": piece} for piece in cut(part.text, size)]
        case Thought():
            if not part.text:
                return [sealing({"type": "reasoning.encrypted", "data": part.seal, "index": index})]
            said = [{"type": "reasoning.text", "text": piece, "index": index} for piece in cut(part.text, size)]
            sealed = {"type": "reasoning.text", "signature": part.seal, "index": index}
            return [*({"reasoning": one["text"], "reasoning_details": [one]} for one in said), sealing(sealed)]
        case Call():
            pieces = [[chat.more(piece, index)] for piece in cut(part.args, size)]
            return [{"tool_calls": one} for one in ([chat.start(part.name, "", index, part.id)], *pieces)]


def sealing(detail: Json) -> Json:
    return {"reasoning_details": [detail]}


def chat_stream(scene: Scene, size: int = 5) -> bytes:
    def said(delta: Json, finish: str | None = None) -> Json:
        return chat.chunk(chat.choice(delta, finish), model=MODEL)

    chunks = [said({"role": "assistant", "content": ""})] if scene.parts or scene.ends == "well" else []
    for n, part in enumerate(scene.parts):
        index = sum(isinstance(before, type(part)) for before in scene.parts[:n])
        chunks += [said(delta) for delta in chat_deltas(part, index, size)]
    if scene.ends == "error":
        return chat.sse(*chunks, {"error": {"message": BOOM, "type": "server_error", "code": 500}}, done=False)
    if scene.ends == "broken off":
        return chat.sse(*chunks, done=False)
    return chat.sse(*chunks, said({}, scene.stop), chat.chunk(model=MODEL, usage=chat_usage(scene)))


def chat_body(scene: Scene) -> Json:
    message: Json = {"role": "assistant", "content": None, "refusal": None}
    for part in scene.parts:
        match part:
            case Speech():
                message["content"] = (message["content"] or "") + part.text
            case Refusal():
                message["refusal"] = part.text
            case Thought() if part.seal:
                details = message.setdefault("reasoning_details", [])
                shown = {"type": "reasoning.text", "text": part.text, "signature": part.seal}
                hidden = {"type": "reasoning.encrypted", "data": part.seal}
                details.append({**(shown if part.text else hidden), "index": len(details)})
                message["reasoning"] = message.get("reasoning", "") + part.text
            case Thought():
                message["reasoning_content"] = part.text
            case Call():
                entry = chat.without(chat.start(part.name, part.args, id=part.id), "index")
                message.setdefault("tool_calls", []).append(entry)
    if scene.ends == "error":
        return {"error": {"message": BOOM, "type": "server_error", "code": 500}}
    choice = {"index": 0, "message": message, "finish_reason": scene.stop, "logprobs": None}
    head = {"id": "gen-1", "object": "chat.completion", "created": 1763198400, "model": MODEL}
    return {**head, "choices": [choice], "usage": chat_usage(scene)}


# ── Anthropic Messages ────────────────────────────────────────────────────────────────────────────────────────────

STOPS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}


def messages_stop(scene: Scene) -> Json:
    for part in scene.parts:
        if isinstance(part, Refusal):
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


def messages_blocks(scene: Scene, size: int) -> list[Json]:
    told: list[Json] = []
    parts = [part for part in scene.parts if not isinstance(part, Refusal)]
    for index, part in enumerate(parts):
        match part:
            case Speech():
                told += messages.text(index, *cut(part.text, size))
            case Thought() if not part.text:
                told += [messages.start(index, "redacted_thinking", data=part.seal), messages.stop(index)]
            case Thought():
                told += messages.thinking(index, *cut(part.text, size), signature=part.seal)
            case Call():
                told += messages.call(index, "", *cut(part.args, size), id=part.id, name=part.name)
    return told[:-1] if scene.ends != "well" else told


def messages_stream(scene: Scene, size: int = 5) -> bytes:
    if scene.ends == "broken off" and not scene.parts:
        return b""
    usage = messages_usage(scene)
    first = messages.begin(MODEL, usage={**usage, "output_tokens": 1})
    error = {"type": "error", "error": {"type": "overloaded_error", "message": BOOM}, "request_id": "req_1"}
    if scene.ends == "error":
        return messages.sse(*([first, *messages_blocks(scene, size)] if scene.parts else []), error)
    if scene.ends == "broken off":
        return messages.sse(first, *messages_blocks(scene, size))
    last = {"type": "message_delta", "delta": messages_stop(scene), "usage": usage}
    return messages.sse(first, messages.PING, *messages_blocks(scene, size), last, {"type": "message_stop"})


def messages_body(scene: Scene) -> Json:
    if scene.ends == "error":
        return {"type": "error", "error": {"type": "overloaded_error", "message": BOOM}, "request_id": "req_1"}
    content: list[Json] = []
    for part in scene.parts:
        match part:
            case Speech():
                content.append({"type": "text", "text": part.text})
            case Thought() if not part.text:
                content.append({"type": "redacted_thinking", "data": part.seal})
            case Thought():
                content.append({"type": "thinking", "thinking": part.text, "signature": part.seal})
            case Call():
                given = json.loads(part.args or "{}")
                content.append({"type": "tool_use", "id": part.id, "name": part.name, "input": given})
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": MODEL, "content": content}
    return {**head, **messages_stop(scene), "usage": messages_usage(scene)}


# ── Responses ─────────────────────────────────────────────────────────────────────────────────────────────────────


def response(kind: str, *output: Json, **fields: Any) -> Json:
    told = responses.response(kind, list(output), **fields)
    return {**told, "response": {**told["response"], "model": MODEL}}


def responses_usage(scene: Scene) -> Json:
    tokens = scene.tokens
    return {
        "input_tokens": tokens.input,
        "input_tokens_details": {"cached_tokens": tokens.cached, "cache_write_tokens": tokens.written},
        "output_tokens": tokens.output,
        "output_tokens_details": {"reasoning_tokens": tokens.reasoning},
        "total_tokens": tokens.input + tokens.output,
    }


def responses_item(part: Part, index: int, size: int) -> list[Json]:
    """The events of one item, all but for the last of them in the order: begun, deltas."""
    match part:
        case Speech():
            return responses.told_message(cut(part.text, size), index, f"msg_{index}")
        case Refusal():
            return responses.told_refusal(cut(part.text, size), index, f"msg_{index}")
        case Thought():
            texts = [cut(part.text, size)] if part.text else []
            return responses.told_thought(texts, index, f"rs_{index}", part.seal or None)
        case Call() if part.text is not None:
            pieces = cut(part.text, size)
            return responses.told_custom(pieces, index, id=f"ctc_{index}", call_id=part.id, name=part.name)
        case Call():
            named: Json = {"name": part.local or part.name, **({"namespace": part.space} if part.space else {})}
            return responses.told_call(cut(part.args, size), index, id=f"fc_{index}", call_id=part.id, **named)


def unfinished(told: list[Json]) -> list[Json]:
    """An item that ends behind its last delta."""
    return told[: 1 + max(n for n, event in enumerate(told) if event["type"].endswith((".delta", ".added")))]


def responses_output(scene: Scene, size: int = 1000) -> tuple[list[Json], list[Json]]:
    """The events of the items, and the items as they end."""
    told = [responses_item(part, index, size) for index, part in enumerate(scene.parts)]
    output = [events[-1]["item"] for events in told]
    if scene.inside:
        told[-1] = unfinished(told[-1])
        output[-1] = {**output[-1], "status": "incomplete"}
    return [event for events in told for event in events], output


def responses_end(scene: Scene, output: list[Json]) -> Json:
    usage = responses_usage(scene)
    if scene.ends == "error":
        return response("failed", *output, error={"code": "server_error", "message": BOOM})
    if scene.stop in ("length", "content_filter"):
        reason = "max_output_tokens" if scene.stop == "length" else "content_filter"
        return response("incomplete", *output, usage=usage, incomplete_details={"reason": reason})
    return response("completed", *output, usage=usage)


def responses_stream(scene: Scene, size: int = 5) -> bytes:
    told, output = responses_output(scene, size)
    begun = [response("created"), response("in_progress")]
    if scene.ends == "broken off":
        return responses.sse(*(begun if scene.parts else []), *told)
    if scene.ends == "error" and not scene.parts:
        return responses.sse({"type": "error", "code": "server_error", "message": BOOM, "param": None})
    return responses.sse(*begun, *told, responses_end(scene, output))


def responses_body(scene: Scene) -> Json:
    if scene.ends == "error":
        return {"error": {"type": "server_error", "code": "server_error", "message": BOOM, "param": None}}
    body: Json = responses_end(scene, responses_output(scene)[1])["response"]
    return body


STREAMS = {CHAT: chat_stream, MESSAGES: messages_stream, RESPONSES: responses_stream}
BODIES = {CHAT: chat_body, MESSAGES: messages_body, RESPONSES: responses_body}
