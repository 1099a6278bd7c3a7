"""A request as a readable conversation: settings, system prompt, tools and the pieces of each message, with tokens."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Literal, TypeAlias, assert_never

import msgspec

from interlingua.core.reply import Call, Reasoning, Text
from interlingua.core.request import CacheMark, Content, Document, Extra, Image, Piece, Request, Result
from interlingua.core.tools import Tool
from interlingua.tokens.estimator import TOKENS_PER_MESSAGE, TOKENS_PER_PAGE, TOKENS_PER_TOOL
from interlingua.tokens.image_estimator import UNKNOWN_IMAGE_TOKENS, image_tokens
from interlingua.tokens.text_estimator import text_tokens
from interlingua.wires.requests.data_urls import read_data_url

__all__ = ["Entry", "EntryKind", "PartTokens", "list_entries", "tokens_by_part"]

EntryPart: TypeAlias = Literal["setting", "tool", "system", "message"]
EntryKind: TypeAlias = Literal[
    "setting", "tool", "text", "thinking", "call", "result", "image", "document", "cache mark", "other"
]


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One unit of a request that a reader sees."""

    part: EntryPart
    kind: EntryKind
    path: str
    """Place in the neutral request, such as `messages[2].pieces[0]`."""
    role: str = ""
    message: int | None = None
    """Index of its message; None outside of messages."""
    label: str = ""
    """Name of a setting or tool."""
    text: str = ""
    """Content: text, JSON of arguments and schemas, or the URL of an image."""
    id: str = ""
    """Id of a call, or of the call that a result belongs to."""
    is_error: bool = False
    note: str = ""
    """Facts that the text does not show, such as a signature."""
    tokens: int = 0
    """Estimated tokens."""


class PartTokens(msgspec.Struct, frozen=True):
    """Estimated tokens of one part of the prompt."""

    name: str
    tokens: int
    count: int


def list_entries(request: Request) -> list[Entry]:
    """Return the entries of a request in the order of the prompt."""
    entries = [*_settings(request), *(_tool_entry(index, tool) for index, tool in enumerate(request.tools))]
    entries += [
        Entry(
            part="tool",
            kind="tool",
            path=f"hosted[{index}]",
            label=str(tool.get("name") or tool.get("type") or ""),
            text=_json(tool),
            note="run by the server",
            tokens=TOKENS_PER_TOOL,
        )
        for index, tool in enumerate(request.hosted)
    ]
    for index, content in enumerate(request.system):
        entries += _content_entries(content, "system", f"system[{index}]", "system", None, request.model)
    for number, message in enumerate(request.messages):
        for index, piece in enumerate(message.pieces):
            path = f"messages[{number}].pieces[{index}]"
            entries += _piece_entries(piece, path, message.role, number, request.model)
    return entries


def tokens_by_part(entries: Iterable[Entry]) -> list[PartTokens]:
    """Return the tokens of the system prompt, the tools and each kind of content in messages, the largest first."""
    totals: dict[str, tuple[int, int]] = {}
    messages: set[int] = set()
    for entry in entries:
        if entry.part == "setting" or entry.kind == "cache mark":
            continue
        name = _part_name(entry)
        tokens, count = totals.get(name, (0, 0))
        totals[name] = (tokens + entry.tokens, count + 1)
        if entry.message is not None:
            messages.add(entry.message)
    if messages:
        totals["message frames"] = (TOKENS_PER_MESSAGE * len(messages), len(messages))
    parts = [PartTokens(name, tokens, count) for name, (tokens, count) in totals.items()]
    return sorted(parts, key=lambda part: -part.tokens)


def _part_name(entry: Entry) -> str:
    if entry.part == "tool":
        return "tools"
    if entry.part == "system":
        return "system prompt"
    names = {"call": "calls", "result": "tool results", "image": "images", "document": "documents"}
    return names.get(entry.kind, f"{entry.role} {entry.kind}")


def _settings(request: Request) -> Iterator[Entry]:
    thinking = {
        name: value
        for name, value in msgspec.to_builtins(request.thinking).items()
        if value is not None and name != "effort_is_general"
    }
    choice = msgspec.to_builtins(request.tool_choice) if request.tool_choice is not None else None
    settings: dict[str, Any] = {
        "model": request.model,
        "stream": request.stream or None,
        "max_tokens": request.max_tokens,
        "tool_choice": choice,
        "parallel": request.parallel,
        "thinking": thinking or None,
        "format": msgspec.to_builtins(request.format) if request.format else None,
        "stop": request.stop or None,
        "user": request.user or None,
        "metadata": request.metadata or None,
        "cache_key": request.cache_key or None,
        "continues": request.continues or None,
        **request.sampling,
        **request.extra,
    }
    for name, value in settings.items():
        if value is not None:
            text = value if isinstance(value, str) else _json(value)
            yield Entry(part="setting", kind="setting", path=name, label=name, text=text)


def _tool_entry(index: int, tool: Tool) -> Entry:
    notes = [
        words
        for words, holds in (
            (f"a {tool.kind} tool", tool.kind != "function"),
            (f"namespace {tool.namespace}", bool(tool.namespace)),
            ("deferred: the model has to search for it", tool.deferred),
            ("strict", tool.strict is True),
        )
        if holds
    ]
    text = "\n\n".join(part for part in (tool.description, _json(tool.schema) if tool.schema else "") if part)
    return Entry(
        part="tool",
        kind="tool",
        path=f"tools[{index}]",
        label=tool.name,
        text=text,
        note=", ".join(notes),
        tokens=_tokens(tool.name, text) + TOKENS_PER_TOOL,
    )


def _piece_entries(piece: Piece, path: str, role: str, message: int, model: str) -> Iterator[Entry]:
    match piece:
        case Reasoning():
            seal = f"signed by {piece.seal.upstream or piece.seal.wire}" if piece.seal is not None else ""
            yield _message_entry("thinking", path, role, message, piece.text, note=seal)
        case Call():
            yield _message_entry("call", path, role, message, piece.arguments, label=piece.name, id=piece.id)
        case Result():
            yield from _result_entries(piece, path, role, message, model)
        case _:
            yield from _content_entries(piece, "message", path, role, message, model)


def _result_entries(result: Result, path: str, role: str, message: int, model: str) -> Iterator[Entry]:
    text = "\n".join(content.text for content in result.content if isinstance(content, Text))
    yield Entry(
        part="message",
        kind="result",
        path=path,
        role=role,
        message=message,
        text=text,
        id=result.id,
        is_error=result.error,
        tokens=_tokens(text),
    )
    for index, content in enumerate(result.content):
        if not isinstance(content, Text):
            place = f"{path}.content[{index}]"
            for entry in _content_entries(content, "message", place, role, message, model):
                yield msgspec.structs.replace(entry, id=result.id)


def _content_entries(
    content: Content, part: EntryPart, path: str, role: str, message: int | None, model: str
) -> Iterator[Entry]:
    match content:
        case Text():
            kind: EntryKind = "text"
            text, note, tokens = content.text, content.phase, _tokens(content.text)
        case Image():
            kind, text, note = "image", content.url, content.detail
            tokens = _image_tokens(content, model)
        case Document():
            kind, text = "document", content.text or content.url or content.file_id
            note, tokens = content.name, _tokens(content.text) or TOKENS_PER_PAGE
        case CacheMark():
            kind, text, note, tokens = "cache mark", _json(content.data), "", 0
        case Extra():
            kind, text, note = "other", _json(content.data), f"only on {content.wire}"
            tokens = _tokens(text)
        case _:
            assert_never(content)
    yield Entry(part=part, kind=kind, path=path, role=role, message=message, text=text, note=note, tokens=tokens)


def _message_entry(
    kind: EntryKind, path: str, role: str, message: int, text: str, *, label: str = "", id: str = "", note: str = ""
) -> Entry:
    return Entry(
        part="message",
        kind=kind,
        path=path,
        role=role,
        message=message,
        label=label,
        text=text,
        id=id,
        note=note,
        tokens=_tokens(label, text),
    )


def _tokens(*texts: str) -> int:
    return max(round(text_tokens(texts)), 1) if any(texts) else 0


def _image_tokens(image: Image, model: str) -> int:
    data_url = read_data_url(image.url)
    return image_tokens(data_url[1], model, image.detail) if data_url else UNKNOWN_IMAGE_TOKENS


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, default=msgspec.to_builtins)
