"""Writer for Anthropic Messages requests: neutral Request → body."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from interlingua.common.jsontext.codec import read_full_object, wrap_invalid_arguments
from interlingua.core.findings import FindingCollector
from interlingua.core.reply import Call, Reasoning, Text
from interlingua.core.request import CacheMark, Document, Extra, Image, Message, Piece, Request, Result, with_marks
from interlingua.events import Finding
from interlingua.upstreams.profile import Profile
from interlingua.wires.anthropic_messages.content_blocks import NAME
from interlingua.wires.anthropic_messages.reasoning_fields import thinking_blocks
from interlingua.wires.base import Json
from interlingua.wires.reasoning_fields import report_foreign_signature
from interlingua.wires.requests.data_urls import read_data_url
from interlingua.wires.requests.downgrades import (
    as_functions,
    as_text,
    drop_message_name,
    drop_thinking_display,
    extra_fields,
    hosted_tools,
    require_single_choice,
    tools_for_wire,
)
from interlingua.wires.requests.shared_tools import write_shared
from interlingua.wires.safe_ids import encode_id

__all__ = ["write_request", "write_turns"]

_SAMPLING_FIELDS = ("temperature", "top_p", "top_k")
_TOOL_CHOICE_TYPES = {"auto": "auto", "required": "any", "none": "none"}
_SERVICE_TIERS = {"auto": "auto", "default": "standard_only"}
"""Service tiers by their names on other wires."""


def write_request(request: Request, _: Profile) -> tuple[Json, list[Finding]]:
    notes = FindingCollector()
    require_single_choice(request)
    request = _with_user(request)
    writer = _BlockWriter(request.wire, notes)
    body: Json = {"model": request.model}
    if request.max_tokens is not None:
        body["max_tokens"] = request.max_tokens
    if system := writer.write(request.system, "system"):
        body["system"] = system
    body["messages"] = _messages(request, writer)
    body |= _tools(request, notes)
    body |= _thinking(request, notes)
    body |= _sampling(
        request, thinking_enabled=body.get("thinking", {}).get("type") in ("enabled", "adaptive"), notes=notes
    )
    body |= _metadata_fields(request, notes)
    extra = dict(extra_fields(request, NAME, notes, _convert_field))
    output = _output_config(request, notes) | extra.pop("output_config", {})
    return body | extra | ({"output_config": output} if output else {}), notes.findings


def _convert_field(name: str, value: Any) -> Any:
    """Return the value of a field of another wire; None if this wire has no such field or value."""
    return _SERVICE_TIERS.get(value) if name == "service_tier" and isinstance(value, str) else None


def _with_user(request: Request) -> Request:
    """Return the request with the user in the field of that name. OpenAI calls it `safety_identifier` today."""
    identifier = request.extra.get("safety_identifier")
    if request.wire == NAME or request.user or not isinstance(identifier, str):
        return request
    extra = {key: value for key, value in request.extra.items() if key != "safety_identifier"}
    return replace(request, user=identifier, extra=extra)


def write_turns(request: Request, _: Profile) -> tuple[list[Json], list[Finding]]:
    """Write some turns of a conversation. See `TurnCodec`."""
    notes = FindingCollector()
    return _messages(request, _BlockWriter(request.wire, notes)), notes.findings


def _client_tools(request: Request, notes: FindingCollector) -> list[Json]:
    tools: list[Json] = []
    for tool in as_functions(tools_for_wire(request, NAME, notes), notes):
        description = {"description": tool.description} if tool.description else {}
        strict = {"strict": True} if tool.strict else {}
        tools.append({"name": tool.name, **description, "input_schema": dict(tool.schema), **strict, **tool.extra})
    return tools


def _tools(request: Request, notes: FindingCollector) -> Json:
    tools = [*write_shared(request, NAME, notes, _client_tools), *hosted_tools(request, NAME, notes)]
    choice, no_parallel = request.tool_choice, {"disable_parallel_tool_use": True} if request.parallel is False else {}
    if not tools:
        return {}
    if choice is None:
        return {"tools": tools} | ({"tool_choice": {"type": "auto", **no_parallel}} if no_parallel else {})
    if choice.mode == "none":
        return {"tools": tools, "tool_choice": {"type": "none"}}
    if choice.mode == "required" and len(choice.names) == 1:
        return {"tools": tools, "tool_choice": {"type": "tool", "name": choice.names[0], **no_parallel}}
    if choice.names:
        notes.report(
            "choice-relaxed", "this wire cannot restrict tool_choice to several tools: the model may call any tool"
        )
    return {"tools": tools, "tool_choice": {"type": _TOOL_CHOICE_TYPES[choice.mode], **no_parallel}}


def _output_config(request: Request, notes: FindingCollector) -> Json:
    output: Json = {}
    if request.thinking.effort not in (None, "none"):
        output["effort"] = request.thinking.effort
    if request.format is not None and request.format.schema is not None:
        output["format"] = {"type": "json_schema", "schema": request.format.schema}
    elif request.format is not None:
        notes.report("format-dropped", "this wire has no JSON output without a schema: dropped", "response_format")
    return output


def _thinking(request: Request, notes: FindingCollector) -> Json:
    """Return the `thinking` field. A client of this wire may set an effort without it; then none is added."""
    thinking, same_wire = request.thinking, request.wire == NAME
    show = {"display": thinking.show} if same_wire and thinking.show else {}
    if not same_wire:
        drop_thinking_display(thinking, notes)
    if thinking.requested is False:
        return {"thinking": {"type": "disabled"}}
    if thinking.budget is not None:
        return {"thinking": {"type": "enabled", "budget_tokens": thinking.budget, **show}}
    return {"thinking": {"type": "adaptive", **show}} if (thinking.on if same_wire else thinking.requested) else {}


def _sampling(request: Request, thinking_enabled: bool, notes: FindingCollector) -> Json:
    body: Json = {}
    for key, value in request.sampling.items():
        if key == "temperature" and isinstance(value, int | float) and value > 1:
            notes.report("sampling-changed", f"temperature {value} is above the maximum of this wire: sent as 1", key)
            value = 1
        if key not in _SAMPLING_FIELDS and key != "n":
            notes.report("field-dropped", f"{NAME} has no field {key}: dropped", key)
        elif thinking_enabled and ((key == "temperature" and value != 1) or key == "top_k"):
            notes.report("field-dropped", f"{key} cannot be set while thinking is enabled: dropped", key)
        elif key != "n":
            body[key] = value
    if request.stop:
        body["stop_sequences"] = request.stop
    return body


def _metadata_fields(request: Request, notes: FindingCollector) -> Json:
    body: Json = {}
    if request.stream:
        body["stream"] = True
    metadata = {"user_id": request.user} if request.user else {}
    if request.wire == NAME:
        metadata |= request.metadata
    elif request.metadata:
        notes.report("field-dropped", f"{NAME} has no field for this metadata: dropped", "metadata")
    if metadata:
        body["metadata"] = metadata
    if request.cache_key and request.wire != NAME:
        notes.report("field-dropped", f"{NAME} has no field prompt_cache_key: dropped", "prompt_cache_key")
    return body


def _messages(request: Request, writer: _BlockWriter) -> list[Json]:
    """Return the messages. Consecutive messages of one role are merged, and tool results come first."""
    messages: list[Json] = []
    for n, message in enumerate(request.messages):
        content = writer.write_message(message, f"messages[{n}]")
        if messages and messages[-1]["role"] == message.role:
            messages[-1]["content"] += content
        elif content:
            messages.append({"role": message.role, "content": content})
    for message_written in messages:
        message_written["content"].sort(key=lambda block: block["type"] != "tool_result")
    return messages


class _BlockWriter:
    """Writer for content blocks."""

    def __init__(self, wire: str, notes: FindingCollector) -> None:
        self._wire = wire
        self._notes = notes

    def write_message(self, message: Message, path: str) -> list[Json]:
        drop_message_name(message, NAME, self._notes, path)
        return self.write(message.pieces, path)

    def write(self, pieces: Sequence[Piece], path: str) -> list[Json]:
        blocks = []
        for piece, mark in with_marks(pieces):
            block = self._block(piece, path)
            if block is not None:
                blocks.append(block | ({"cache_control": mark.data} if mark is not None else {}))
        return blocks

    def _block(self, piece: Piece, path: str) -> Json | None:
        match piece:
            case Reasoning():
                return self._thinking(piece, path)
            case Call():
                return {
                    "type": "tool_use",
                    "id": encode_id(piece.id),
                    "name": piece.name,
                    "input": self._input(piece, path),
                }
            case Result():
                failed = {"is_error": True} if piece.error else {}
                content = self.write(piece.content, path)
                return {"type": "tool_result", "tool_use_id": encode_id(piece.id), "content": content, **failed}
            case Image():
                if piece.detail not in ("", "auto"):
                    self._notes.report(
                        "field-dropped", "this wire has no field for the detail of an image: dropped", path
                    )
                return {"type": "image", "source": _source(piece.url)}
            case Document():
                return self._document(piece, path)
            case Extra(wire=wire) if wire == NAME:
                return piece.data
            case Text() | Extra() | CacheMark():
                text = as_text(piece, self._notes, path)
                return {"type": "text", "text": text} if text else None

    def _input(self, call: Call, path: str) -> Json:
        arguments = read_full_object(call.arguments) if call.arguments.strip() else {}
        if arguments is None:
            self._notes.report("wrapped-arguments", "the arguments are not a JSON object: wrapped in one", path)
            return wrap_invalid_arguments(call.arguments)
        return arguments

    def _thinking(self, thinking: Reasoning, path: str) -> Json | None:
        if thinking.seal is not None and thinking.seal.wire != NAME:
            report_foreign_signature(thinking, self._notes, path)
            thinking = Reasoning(thinking.text)
        return next(iter(thinking_blocks(thinking)), None)

    def _document(self, document: Document, path: str) -> Json:
        title = {"title": document.name} if document.name else {}
        if document.text:
            source = {"type": "text", "media_type": "text/plain", "data": document.text}
        elif document.url:
            source = _text_source(document.url) or _source(document.url)
        elif self._wire == NAME:
            source = {"type": "file", "file_id": document.file_id}
        else:
            return {"type": "text", "text": as_text(document, self._notes, path)}
        return {"type": "document", "source": source, **title}


def _source(url: str) -> Json:
    if (data := read_data_url(url)) is None:
        return {"type": "url", "url": url}
    media_type = "image/jpeg" if data[0] == "image/jpg" else data[0]
    return {"type": "base64", "media_type": media_type, "data": data[1]}


def _text_source(url: str) -> Json | None:
    """Return a text source for a data URL with text, because base64 documents have to be PDFs; None for other URLs."""
    data = read_data_url(url)
    if data is None or not data[0].startswith("text/"):
        return None
    try:
        return {"type": "text", "media_type": "text/plain", "data": b64decode(data[1]).decode()}
    except ValueError:
        return None
