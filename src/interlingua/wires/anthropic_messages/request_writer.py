"""The neutral Request → an Anthropic Messages request."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Sequence

from interlingua.common.jsontext.codec import read_values, wrapped
from interlingua.core.findings__notes import Notes
from interlingua.core.reply import Call, Reasoning, Text
from interlingua.core.request import CacheMark, Document, Extra, Image, Message, Piece, Request, Result, with_marks
from interlingua.events import Finding
from interlingua.upstreams.profile import Profile
from interlingua.wires.anthropic_messages.content_blocks import NAME
from interlingua.wires.base import Json
from interlingua.wires.reasoning_fields import foreign_seal, thinking_nodes
from interlingua.wires.requests.data_urls import read_data_url
from interlingua.wires.requests.downgrades import (
    as_functions,
    extra_fields,
    hosted_tools,
    in_words,
    no_name,
    no_show,
    offered,
    one_choice,
)
from interlingua.wires.safe_ids import encode

__all__ = ["write_request"]

_SAMPLING = ("temperature", "top_p", "top_k")
_MODES = {"auto": "auto", "required": "any", "none": "none"}


def write_request(request: Request, _: Profile) -> tuple[Json, list[Finding]]:
    notes = Notes()
    one_choice(request)
    blocks = _Blocks(request.wire, notes)
    body: Json = {"model": request.model}
    if request.max_tokens is not None:
        body["max_tokens"] = request.max_tokens
    if system := blocks.write(request.system, "system"):
        body["system"] = system
    body["messages"] = _messages(request, blocks)
    body |= _tools(request, notes)
    body |= _thinking(request, notes)
    body |= _sampling(request, thinks=body.get("thinking", {}).get("type") in ("enabled", "adaptive"), notes=notes)
    body |= _about(request, notes)
    extra = dict(extra_fields(request, NAME, notes))
    output = _output(request, notes) | extra.pop("output_config", {})
    return body | extra | ({"output_config": output} if output else {}), notes.findings


def _tools(request: Request, notes: Notes) -> Json:
    tools: list[Json] = []
    for tool in as_functions(offered(request, NAME, notes), notes):
        description = {"description": tool.description} if tool.description else {}
        strict = {"strict": True} if tool.strict else {}
        tools.append({"name": tool.name, **description, "input_schema": dict(tool.schema), **strict, **tool.extra})
    tools += hosted_tools(request, NAME, notes)
    choice, one_only = request.tool_choice, {"disable_parallel_tool_use": True} if request.parallel is False else {}
    if not tools:
        return {}
    if choice is None:
        return {"tools": tools} | ({"tool_choice": {"type": "auto", **one_only}} if one_only else {})
    if choice.mode == "none":
        return {"tools": tools, "tool_choice": {"type": "none"}}
    if choice.mode == "required" and len(choice.names) == 1:
        return {"tools": tools, "tool_choice": {"type": "tool", "name": choice.names[0], **one_only}}
    if choice.names:
        notes.report("choice-relaxed", "a choice of several tools has no place on this wire: any may be called")
    return {"tools": tools, "tool_choice": {"type": _MODES[choice.mode], **one_only}}


def _output(request: Request, notes: Notes) -> Json:
    output: Json = {}
    if request.thinking.effort not in (None, "none"):
        output["effort"] = request.thinking.effort
    if request.format is not None and request.format.schema is not None:
        output["format"] = {"type": "json_schema", "schema": request.format.schema}
    elif request.format is not None:
        notes.report("format-dropped", "JSON of no schema cannot be asked for on this wire", "response_format")
    return output


def _thinking(request: Request, notes: Notes) -> Json:
    """A client of this wire may tell an effort, and nothing of thinking."""
    thinking, own = request.thinking, request.wire == NAME
    show = {"display": thinking.show} if own and thinking.show else {}
    if not own:
        no_show(thinking, notes)
    if thinking.wanted is False:
        return {"thinking": {"type": "disabled"}}
    if thinking.budget is not None:
        return {"thinking": {"type": "enabled", "budget_tokens": thinking.budget, **show}}
    return {"thinking": {"type": "adaptive", **show}} if (thinking.on if own else thinking.wanted) else {}


def _sampling(request: Request, thinks: bool, notes: Notes) -> Json:
    body: Json = {}
    for key, value in request.sampling.items():
        if key == "temperature" and isinstance(value, int | float) and value > 1:
            notes.report("sampling-changed", f"temperature {value} is over this wire's 1: sent as 1", key)
            value = 1
        if key not in _SAMPLING and key != "n":
            notes.report("field-dropped", f"{key} has no place on {NAME}: dropped", key)
        elif thinks and ((key == "temperature" and value != 1) or key == "top_k"):
            notes.report("field-dropped", f"{key} cannot be chosen for a model that thinks: dropped", key)
        elif key != "n":
            body[key] = value
    if request.stop:
        body["stop_sequences"] = request.stop
    return body


def _about(request: Request, notes: Notes) -> Json:
    body: Json = {}
    if request.stream:
        body["stream"] = True
    about = {"user_id": request.user} if request.user else {}
    if request.wire == NAME:
        about |= request.metadata
    elif request.metadata:
        notes.report("field-dropped", f"metadata has no place on {NAME}: dropped", "metadata")
    if about:
        body["metadata"] = about
    if request.cache_key and request.wire != NAME:
        notes.report("field-dropped", f"prompt_cache_key has no place on {NAME}: dropped", "prompt_cache_key")
    return body


def _messages(request: Request, blocks: _Blocks) -> list[Json]:
    """Neighbours of one role are one message here."""
    messages: list[Json] = []
    for n, message in enumerate(request.messages):
        content = blocks.of(message, f"messages[{n}]")
        if messages and messages[-1]["role"] == message.role:
            messages[-1]["content"] += content
        elif content:
            messages.append({"role": message.role, "content": content})
    for message_written in messages:
        message_written["content"].sort(key=lambda block: block["type"] != "tool_result")
    return messages


class _Blocks:
    """Writes pieces as content blocks."""

    def __init__(self, wire: str, notes: Notes) -> None:
        self._wire = wire
        self._notes = notes

    def of(self, message: Message, place: str) -> list[Json]:
        no_name(message, NAME, self._notes, place)
        return self.write(message.pieces, place)

    def write(self, pieces: Sequence[Piece], place: str) -> list[Json]:
        blocks = []
        for piece, mark in with_marks(pieces):
            block = self._block(piece, place)
            if block is not None:
                blocks.append(block | ({"cache_control": mark.data} if mark is not None else {}))
        return blocks

    def _block(self, piece: Piece, place: str) -> Json | None:
        match piece:
            case Reasoning():
                return self._thinking(piece, place)
            case Call():
                return {
                    "type": "tool_use",
                    "id": encode(piece.id),
                    "name": piece.name,
                    "input": self._input(piece, place),
                }
            case Result():
                failed = {"is_error": True} if piece.error else {}
                content = self.write(piece.content, place)
                return {"type": "tool_result", "tool_use_id": encode(piece.id), "content": content, **failed}
            case Image():
                if piece.detail not in ("", "auto"):
                    self._notes.report("field-dropped", "how closely to look at an image: cannot be said", place)
                return {"type": "image", "source": _source(piece.url)}
            case Document():
                return self._document(piece, place)
            case Extra(wire=wire) if wire == NAME:
                return piece.data
            case Text() | Extra() | CacheMark():
                text = in_words(piece, self._notes, place)
                return {"type": "text", "text": text} if text else None

    def _input(self, call: Call, place: str) -> Json:
        given = read_values(call.arguments) if call.arguments.strip() else {}
        if given is None:
            self._notes.report("wrapped-arguments", "arguments that are no JSON object: wrapped in one", place)
            return wrapped(call.arguments)
        return given

    def _thinking(self, thinking: Reasoning, place: str) -> Json | None:
        if thinking.seal is not None and thinking.seal.wire != NAME:
            foreign_seal(thinking, self._notes, place)
            thinking = Reasoning(thinking.text)
        return next(iter(thinking_nodes(thinking, NAME)), None)

    def _document(self, document: Document, place: str) -> Json:
        title = {"title": document.name} if document.name else {}
        if document.text:
            source = {"type": "text", "media_type": "text/plain", "data": document.text}
        elif document.url:
            source = _text_source(document.url) or _source(document.url)
        elif self._wire == NAME:
            source = {"type": "file", "file_id": document.file_id}
        else:
            return {"type": "text", "text": in_words(document, self._notes, place)}
        return {"type": "document", "source": source, **title}


def _source(url: str) -> Json:
    if (data := read_data_url(url)) is None:
        return {"type": "url", "url": url}
    media_type = "image/jpeg" if data[0] == "image/jpg" else data[0]
    return {"type": "base64", "media_type": media_type, "data": data[1]}


def _text_source(url: str) -> Json | None:
    """Documents in base64 are PDFs here, and text is text."""
    data = read_data_url(url)
    if data is None or not data[0].startswith("text/"):
        return None
    try:
        return {"type": "text", "media_type": "text/plain", "data": b64decode(data[1]).decode()}
    except ValueError:
        return None
