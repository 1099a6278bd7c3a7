"""Reader for Anthropic Messages requests: body → neutral Request."""

from __future__ import annotations

from typing import Any

import msgspec

from interlingua.common.jsontext.codec import read_json, unwrap_invalid_arguments, write_json
from interlingua.core.options import Options
from interlingua.core.reasoning_signatures import read_past_reasoning
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
from interlingua.wires.requests.object_reader import ObjectReader
from interlingua.wires.requests.source_paths import SourcePaths
from interlingua.wires.requests.tool_reader import read_tools
from interlingua.wires.safe_ids import decode_id

__all__ = ["is_from_model", "is_system_prompt", "read_request", "read_turns"]

_SAMPLING_FIELDS = ("temperature", "top_p", "top_k")
_TOOL_CHOICES: dict[str, ToolChoice] = {"auto": ToolChoice(), "any": ToolChoice("required"), "none": ToolChoice("none")}
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}
_PIECE_FIELDS = {Call: {"id": "id", "name": "name", "arguments": "input"}, Result: {"id": "tool_use_id"}}
"""The wire's names for the fields of a piece."""


def read_request(body: Json, options: Options) -> Request:
    fields = ObjectReader(body)
    if fields.get("thread"):
        raise BadRequest(
            "thread",
            "stored conversations (threads) are not supported",
            "send all messages, the system prompt and the tools with each request (thread=False)",
            code="thread_unsupported_request",
        )
    source_paths = SourcePaths()
    system = _read_content(fields, "system", source_paths)
    messages = [
        _read_message(message, options.seal_key, source_paths) for message in fields.required_objects("messages")
    ]
    tools, hosted = read_tools(fields)
    found_tools = _found_tools(messages)
    metadata = fields.inner("metadata")
    user = metadata.text("user_id", "")
    choice = fields.inner("tool_choice")
    output = fields.inner("output_config")
    sampling = {key: fields.number(key) for key in _SAMPLING_FIELDS}
    request = Request(
        wire=NAME,
        model=fields.text("model"),
        system=system,
        messages=messages,
        tools=_with_deferred(tools, found_tools),
        found_tools=found_tools,
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
        metadata=metadata.unread_fields(),
        cache_key=_session_id(user),
        source_paths=source_paths.request_paths(system, messages),
    )
    extra_fields = {"output_config": remainder} if (remainder := output.unread_fields()) else {}
    return msgspec.structs.replace(
        request, extra=fields.unread_fields() | extra_fields, unread=tuple(fields.unread_paths())
    )


def read_turns(messages: list[Json], options: Options, first: int) -> Request:
    """Read some turns of a conversation. See `TurnCodec`."""
    source_paths = SourcePaths()
    objects = [ObjectReader(message, f"messages[{n}]") for n, message in enumerate(messages, first)]
    read = [_read_message(message, options.seal_key, source_paths) for message in objects]
    return Request(
        wire=NAME,
        model="",
        messages=read,
        found_tools=_found_tools(read),
        unread=tuple(path for message in objects for path in message.unread_paths()),
        source_paths=source_paths.request_paths((), read),
    )


def is_from_model(message: Json) -> bool | None:
    """Return whether the model wrote this message; None if it has no valid role."""
    role = message.get("role")
    return role == "assistant" if isinstance(role, str) and role in _ROLES else None


def is_system_prompt(_: Json) -> bool:
    """Return False: the system prompt is not a part of the messages."""
    return False


def _session_id(user: str) -> str:
    """Return the session id that Claude Code puts into the user id; "" if there is none.

    It serves as prompt cache key, because the requests of one session share their prefix.
    """
    metadata = read_json(user, dict[str, Any]) if user.startswith("{") else None
    session = (metadata or {}).get("session_id")
    return session if isinstance(session, str) else ""


# ── messages ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _read_message(message: ObjectReader, key: bytes, source_paths: SourcePaths) -> Message:
    role = message.text("role")
    if role not in _ROLES:
        message.reject("role", f"should be 'user', 'assistant' or 'system', not {role!r}")
    if not isinstance(message.get("content"), list):
        content: list[Piece] = [*_read_content(message, "content", source_paths)]
        return Message(_ROLES[role], source_paths.record(content, message.path))
    pieces: list[Piece] = []
    for block in message.objects("content"):
        piece = _read_block(block, key)
        pieces += [source_paths.record(piece, block.path, _PIECE_FIELDS.get(type(piece))), *_cache_marks(block)]
    return Message(_ROLES[role], source_paths.record(_results_first(pieces), message.path))


def _results_first(pieces: list[Piece]) -> list[Piece]:
    """Move tool results to the front. Each cache mark stays after its piece."""
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


def _read_block(block: ObjectReader, key: bytes) -> Piece:
    match block.text("type"):
        case "tool_use":
            return Call(decode_id(block.text("id")), block.text("name"), _read_input(block))
        case "tool_result":
            id = decode_id(block.text("tool_use_id"))
            return Result(id, _read_content(block, "content", SourcePaths()), bool(block.flag("is_error")))
        case "thinking":
            signature = block.text("signature", "")
            native = Seal(NAME, {"signature": signature}) if signature else None
            return read_past_reasoning(block.text("thinking", ""), signature, native, key)
        case "redacted_thinking":
            data = block.text("data")
            return read_past_reasoning("", data, Seal(NAME, {"redacted": data}), key)
    return _read_piece(block)


def _read_input(block: ObjectReader) -> str:
    """Return the arguments as JSON text. An object that wraps invalid arguments is unwrapped."""
    value = block.get("input")
    return "{}" if value is None else unwrap_invalid_arguments(write_json(value))


def _read_content(fields: ObjectReader, key: str, source_paths: SourcePaths) -> list[Content]:
    """Read content that is a string or a list of blocks."""
    raw_content = fields.content(key)
    if isinstance(raw_content, str):
        return [source_paths.record(Text(raw_content), fields.path_of(key))]
    content: list[Content] = []
    for block in raw_content:
        content += [source_paths.record(_read_piece(block), block.path), *_cache_marks(block)]
    return content


def _cache_marks(block: ObjectReader) -> list[CacheMark]:
    return [CacheMark(mark)] if (mark := block.mapping("cache_control")) else []


def _read_piece(block: ObjectReader) -> Content:
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
    return piece or Extra(NAME, {key: value for key, value in block.raw().items() if key != "cache_control"})


def _read_image(source: ObjectReader) -> Image | None:
    match source.text("type"):
        case "base64":
            return Image(data_url(source.text("media_type"), source.text("data")))
        case "url":
            return Image(source.text("url"))
    return None


def _read_document(source: ObjectReader, name: str) -> Document | None:
    match source.text("type"):
        case "base64":
            return Document(data_url(source.text("media_type"), source.text("data")), name=name)
        case "url":
            return Document(source.text("url"), name=name)
        case "file":
            return Document(file_id=source.text("file_id"), name=name)
        case "text":
            source.ignore("media_type")  # always text/plain
            return Document(text=source.text("data"), name=name)
    return None


# ── tools and settings ────────────────────────────────────────────────────────────────────────────────────────────


def _with_deferred(tools: list[Tool], found_names: tuple[str, ...]) -> list[Tool]:
    """Mark tools with `defer_loading` as deferred, unless a tool search has already found them."""
    if not any(tool.extra.get("defer_loading") is True for tool in tools):
        return tools
    found = frozenset(found_names)
    deferred = (tool.extra.get("defer_loading") is True and tool.name not in found for tool in tools)
    return [
        msgspec.structs.replace(tool, deferred=True) if is_deferred else tool
        for tool, is_deferred in zip(tools, deferred, strict=True)
    ]


def _found_tools(messages: list[Message]) -> tuple[str, ...]:
    """Return the names of the tools that a tool search in these messages has found."""
    results = (piece for message in messages for piece in message.pieces if isinstance(piece, Result))
    pieces = (piece.data for result in results for piece in result.content if isinstance(piece, Extra))
    return tuple(str(data.get("tool_name")) for data in pieces if data.get("type") == "tool_reference")


def _read_choice(choice: ObjectReader) -> ToolChoice:
    choice_type = choice.text("type")
    if choice_type == "tool":
        return ToolChoice("required", (choice.text("name"),))
    if choice_type not in _TOOL_CHOICES:
        choice.reject("type", f"should be 'auto', 'any', 'tool' or 'none', not {choice_type!r}")
    return _TOOL_CHOICES[choice_type]


def _read_format(fields: ObjectReader, output: ObjectReader) -> JsonFormat | None:
    """Read the response format. `output_format` is the older name of `output_config.format`."""
    format = output.inner("format") if output.get("format") else fields.inner("output_format")
    format.ignore("type")
    return JsonFormat(format.mapping("schema")) if format.object else None


def _read_thinking(thinking: ObjectReader, output: ObjectReader) -> Thinking:
    thinking_type = thinking.text("type", "")
    return Thinking(
        on=thinking_type != "disabled" if thinking_type else None,
        effort=output.text("effort", "") or None,
        budget=thinking.integer("budget_tokens"),
        show=thinking.text("display", "") or None,
        effort_is_general=True,
    )
