"""An Anthropic Messages request → the neutral Request."""

from __future__ import annotations

from typing import Any

import msgspec

from interlingua.common.jsontext.codec import read_json, unwrapped, write_json
from interlingua.core.options import Options
from interlingua.core.reasoning_signatures import past_thinking
from interlingua.core.reply import Call, Text
from interlingua.core.request import (
    CacheMark,
    Content,
    Document,
    Extra,
    Image,
    JsonFormat,
    Message,
    Piece,
    Request,
    Result,
    Role,
    Thinking,
    ToolChoice,
)
from interlingua.core.tools import Tool
from interlingua.errors import BadRequest
from interlingua.events import Seal
from interlingua.wires.anthropic_messages.content_blocks import NAME
from interlingua.wires.base import Json
from interlingua.wires.requests.data_urls import data_url
from interlingua.wires.requests.object_reader import Fields
from interlingua.wires.requests.source_paths import Places
from interlingua.wires.requests.tool_reader import read_tools
from interlingua.wires.safe_ids import decode

__all__ = ["read_request"]

_SAMPLING = ("temperature", "top_p", "top_k")
_MODES: dict[str, ToolChoice] = {"auto": ToolChoice(), "any": ToolChoice("required"), "none": ToolChoice("none")}
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}
_FIELDS = {Call: {"id": "id", "name": "name", "arguments": "input"}, Result: {"id": "tool_use_id"}}
"""What the wire calls what is in a piece."""


def read_request(body: Json, options: Options) -> Request:
    fields = Fields(body)
    if fields.get("thread"):
        raise BadRequest(
            "thread",
            "conversations are not kept here",
            "send all messages, the system prompt and the tools with each request (thread=False)",
            code="thread_unsupported_request",
        )
    places = Places()
    system = _read_content(fields, "system", places)
    messages = [_read_message(message, options.seal_key, places) for message in fields.listed("messages")]
    tools, hosted = read_tools(fields)
    about = fields.inner("metadata")
    user = about.text("user_id", "")
    choice = fields.inner("tool_choice")
    output = fields.inner("output_config")
    sampling = {key: fields.number(key) for key in _SAMPLING}
    request = Request(
        wire=NAME,
        model=fields.text("model"),
        system=system,
        messages=messages,
        tools=_found(tools, messages),
        hosted=hosted,
        tool_choice=_read_choice(choice) if choice.object else None,
        parallel=False if choice.flag("disable_parallel_tool_use") else None,
        max_tokens=fields.integer("max_tokens"),
        sampling={key: value for key, value in sampling.items() if value is not None},
        stop=fields.texts("stop_sequences"),
        format=_read_format(fields, output),
        thinking=_read_thinking(fields.inner("thinking"), output),
        stream=bool(fields.flag("stream")),
        user=user,
        metadata=about.rest(),
        cache_key=_session(user),
        places=places.table(system, messages),
    )
    beside = {"output_config": rest} if (rest := output.rest()) else {}
    return msgspec.structs.replace(request, extra=fields.rest() | beside, unread=tuple(fields.unread()))


def _session(user: str) -> str:
    """Claude Code tells its session in the user's id: requests of one session share their beginning."""
    about = read_json(user, dict[str, Any]) if user.startswith("{") else None
    session = (about or {}).get("session_id")
    return session if isinstance(session, str) else ""


# ── messages ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _read_message(message: Fields, key: bytes, places: Places) -> Message:
    role = message.text("role")
    if role not in _ROLES:
        message.refuse("role", f"should be 'user', 'assistant' or 'system', not {role!r}")
    if not isinstance(message.get("content"), list):
        said: list[Piece] = [*_read_content(message, "content", places)]
        return Message(_ROLES[role], places.put(said, message.path))
    pieces: list[Piece] = []
    for block in message.objects("content"):
        piece = _read_block(block, key)
        pieces += [places.put(piece, block.path, _FIELDS.get(type(piece))), *_mark(block)]
    return Message(_ROLES[role], places.put(_results_first(pieces), message.path))


def _results_first(pieces: list[Piece]) -> list[Piece]:
    """Each mark stays behind its piece."""
    if len(pieces) < 2:
        return pieces
    groups: list[list[Piece]] = []
    for piece in pieces:
        if isinstance(piece, CacheMark) and groups:
            groups[-1].append(piece)
        else:
            groups.append([piece])
    groups.sort(key=lambda group: not isinstance(group[0], Result))
    return [piece for group in groups for piece in group]


def _read_block(block: Fields, key: bytes) -> Piece:
    match block.text("type"):
        case "tool_use":
            return Call(decode(block.text("id")), block.text("name"), _read_input(block))
        case "tool_result":
            id = decode(block.text("tool_use_id"))
            return Result(id, _read_content(block, "content", Places()), bool(block.flag("is_error")))
        case "thinking":
            signature = block.text("signature", "")
            native = Seal(NAME, {"signature": signature}) if signature else None
            return past_thinking(block.text("thinking", ""), signature, native, key)
        case "redacted_thinking":
            data = block.text("data")
            return past_thinking("", data, Seal(NAME, {"redacted": data}), key)
    return _read_piece(block)


def _read_input(block: Fields) -> str:
    """Arguments are text. What is no object here was none when it was sent."""
    given = block.get("input")
    return "{}" if given is None else unwrapped(write_json(given))


def _read_content(fields: Fields, key: str, places: Places) -> list[Content]:
    """A string or blocks."""
    given = fields.said(key)
    if isinstance(given, str):
        return [places.put(Text(given), fields.at(key))]
    content: list[Content] = []
    for block in given:
        content += [places.put(_read_piece(block), block.path), *_mark(block)]
    return content


def _mark(block: Fields) -> list[CacheMark]:
    return [CacheMark(mark)] if (mark := block.mapping("cache_control")) else []


def _read_piece(block: Fields) -> Content:
    piece: Content | None = None
    match block.text("type"):
        case "text" if not block.items("citations"):
            piece = Text(block.text("text"))
        case "image":
            piece = _read_image(block.inner("source"))
        case "document":
            piece = _read_document(block.inner("source"), block.text("title", ""))
        case "tool_reference":
            block.text("tool_name")
    return piece or Extra(NAME, {key: value for key, value in block.whole().items() if key != "cache_control"})


def _read_image(source: Fields) -> Image | None:
    match source.text("type"):
        case "base64":
            return Image(data_url(source.text("media_type"), source.text("data")))
        case "url":
            return Image(source.text("url"))
    return None


def _read_document(source: Fields, name: str) -> Document | None:
    match source.text("type"):
        case "base64":
            return Document(data_url(source.text("media_type"), source.text("data")), name=name)
        case "url":
            return Document(source.text("url"), name=name)
        case "file":
            return Document(file_id=source.text("file_id"), name=name)
        case "text":
            source.pass_over("media_type")  # it is plain text
            return Document(text=source.text("data"), name=name)
    return None


# ── tools and settings ────────────────────────────────────────────────────────────────────────────────────────────


def _found(tools: list[Tool], messages: list[Message]) -> list[Tool]:
    """A tool that is not to be loaded yet is deferred, until a search has found it."""
    results = (piece for message in messages for piece in message.pieces if isinstance(piece, Result))
    pieces = (piece.data for result in results for piece in result.content if isinstance(piece, Extra))
    found = {data.get("tool_name") for data in pieces if data.get("type") == "tool_reference"}
    deferred = (tool.extra.get("defer_loading") is True and tool.name not in found for tool in tools)
    return [
        msgspec.structs.replace(tool, deferred=True) if later else tool
        for tool, later in zip(tools, deferred, strict=True)
    ]


def _read_choice(choice: Fields) -> ToolChoice:
    kind = choice.text("type")
    if kind == "tool":
        return ToolChoice("required", (choice.text("name"),))
    if kind not in _MODES:
        choice.refuse("type", f"should be 'auto', 'any', 'tool' or 'none', not {kind!r}")
    return _MODES[kind]


def _read_format(fields: Fields, output: Fields) -> JsonFormat | None:
    """`output_format` is what it was called at first."""
    format = output.inner("format") if output.get("format") else fields.inner("output_format")
    format.pass_over("type")
    return JsonFormat(format.mapping("schema")) if format.object else None


def _read_thinking(thinking: Fields, output: Fields) -> Thinking:
    kind = thinking.text("type", "")
    return Thinking(
        on=kind != "disabled" if kind else None,
        effort=output.text("effort", "") or None,
        budget=thinking.integer("budget_tokens"),
        show=thinking.text("display", "") or None,
    )
