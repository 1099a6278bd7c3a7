"""Normal form of a request that does not depend on the wire, to compare requests before and after a translation."""

from __future__ import annotations

import json
from typing import Any

from interlingua.common.jsontext.codec import read_shallow_object
from interlingua.core.findings import FindingCollector
from interlingua.core.reply import Call, Reasoning
from interlingua.core.request import CacheMark, Content, Document, Image, Message, Request, Result
from interlingua.upstreams.profile import Profile
from interlingua.wires import anthropic_messages, openai_chat, openai_responses
from interlingua.wires.requests.downgrades import as_functions, as_text, tools_for_wire

WIRES = {wire.NAME: wire for wire in (openai_chat, anthropic_messages, openai_responses)}
CHAT, MESSAGES, RESPONSES = WIRES
FULL_PROFILE = Profile(name="able", top_k=True, cache_key=True)
"""Profile of an upstream that supports every optional field."""
UNSUPPORTED_FIELDS: dict[str, tuple[str, ...]] = {
    CHAT: (),
    MESSAGES: ("cache_key", "metadata", "verbosity", "seed"),
    RESPONSES: ("stop", "top_k", "seed"),
}
"""Fields that a wire cannot represent."""
COARSE_EFFORTS = {"minimal": "low", "xhigh": "high", "max": "high"}


def normalize_request(request: Request, via_wire: str = CHAT) -> dict[str, Any]:
    """Return the normal form of a request, without fields that `via_wire` cannot represent."""
    thinking = request.thinking
    effort = thinking.as_effort()
    choice = request.tool_choice
    fields = {
        "model": request.model,
        "system": "\n\n".join(_as_text(piece) for piece in request.system if not isinstance(piece, CacheMark)),
        "messages": _normalize_messages(request.messages),
        "tools": [
            (tool.name, tool.description, tool.schema)
            for tool in as_functions(tools_for_wire(request, "no wire's name", FindingCollector()), FindingCollector())
        ],
        "tool_choice": None if choice is None or (choice.mode == "auto" and not choice.names) else choice,
        "parallel": request.parallel is not False or (choice is not None and choice.mode == "none"),
        "max_tokens": request.max_tokens,
        "stop": request.stop,
        "format": None if request.format is None else request.format.schema,
        "thinks": thinking.requested,
        "effort": COARSE_EFFORTS.get(effort, effort) if thinking.requested and effort else None,
        "stream": request.stream,
        "user": request.user,
        "metadata": request.metadata,
        "cache_key": request.cache_key,
        **request.sampling,
    }
    return {key: value for key, value in fields.items() if key not in UNSUPPORTED_FIELDS[via_wire]}


def _as_text(piece: Content) -> str:
    return as_text(piece, FindingCollector(), "") or ""


def _normalize_messages(messages: list[Message]) -> list[Any]:
    """Merge neighbouring messages of one role."""
    merged: list[tuple[str, list[Any]]] = []
    for message in messages:
        if not merged or merged[-1][0] != message.role:
            merged.append((message.role, []))
        merged[-1][1].extend(piece for piece in message.pieces if not isinstance(piece, CacheMark))
    return [[role, *_normalize_pieces(role, pieces)] for role, pieces in merged if pieces]


def _normalize_pieces(role: str, pieces: list[Any]) -> list[Any]:
    results = [
        (piece.id, piece.error, _normalize_content(piece.content, "\n"))
        for piece in pieces
        if isinstance(piece, Result)
    ]
    calls = [(piece.id, piece.name, _arguments(piece)) for piece in pieces if isinstance(piece, Call)]
    thoughts = "".join(piece.text for piece in pieces if isinstance(piece, Reasoning))
    content = [piece for piece in pieces if not isinstance(piece, Result | Call | Reasoning)]
    return [results, thoughts, _normalize_content(content, {"assistant": "", "system": "\n\n"}.get(role)), calls]


def _normalize_content(content: list[Content], gap: str | None) -> list[Any]:
    files = [piece for piece in content if isinstance(piece, Image) or (isinstance(piece, Document) and piece.url)]
    texts = [text for piece in content if piece not in files and (text := _as_text(piece))]
    return (texts if gap is None else [gap.join(texts)] * bool(texts)) + [(type(file), file.url) for file in files]


def _arguments(call: Call) -> Any:
    if not call.arguments:
        return {}
    return call.arguments if read_shallow_object(call.arguments) is None else json.loads(call.arguments)
