"""Writer for chat completion requests: neutral Request → body for one upstream."""

from __future__ import annotations

from typing import assert_never

import msgspec

from interlingua.core.findings import FindingCollector
from interlingua.core.reasoning_signatures import call_extra
from interlingua.core.reply import Call, Reasoning, Text
from interlingua.core.request import (
    CacheMark,
    Content,
    Document,
    Extra,
    Image,
    Message,
    Request,
    Result,
    ToolChoice,
    with_marks,
)
from interlingua.core.tools import Tool, shorten_name
from interlingua.events import CallStart, Finding, Seal
from interlingua.upstreams.adapt.tool_files import is_file
from interlingua.upstreams.profile import Profile
from interlingua.wires.base import Json
from interlingua.wires.openai_chat.chunk_reader import NAME, REASONING_DETAILS
from interlingua.wires.openai_chat.emitter import call_entry
from interlingua.wires.openai_chat.request_thinking import write_thinking
from interlingua.wires.reasoning_fields import report_foreign_signature
from interlingua.wires.requests.downgrades import (
    as_functions,
    as_text,
    drop_cache_mark,
    extra_fields,
    hosted_tools,
    join_text,
    mark_error,
    names_of_found_tools,
    tools_for_wire,
)
from interlingua.wires.requests.openai_common import (
    FILE_STORE,
    convert_shared_field,
    wire_tool_name,
    write_schema,
    write_user_fields,
)
from interlingua.wires.requests.shared_tools import write_shared

__all__ = ["write_request", "write_turns"]

_MEANINGFUL_FIELDS = {"tools", "tool_call_id", "tool_calls", "reasoning_content", "reasoning", REASONING_DETAILS}
"""Fields that give a message a meaning even without content."""
_TEXT_DETAIL_TYPES = ("reasoning.text", "reasoning.summary")


def write_request(request: Request, profile: Profile) -> tuple[Json, list[Finding]]:
    notes = FindingCollector()
    body: Json = {"model": request.model, "messages": _MessageWriter(request, profile, notes).write()}
    body |= _tools(request, profile, notes)
    body |= _generation_fields(request, profile)
    body |= _delivery_fields(request, profile)
    thinking = write_thinking(request.thinking, profile, notes)
    extra = extra_fields(request, NAME, notes, convert_shared_field)
    for key, value in extra.items():
        both_objects = isinstance(value, dict) and isinstance(body.get(key) or thinking.get(key), dict)
        body[key] = {**value, **thinking.pop(key, {})} if both_objects else value
    return body | thinking, notes.findings


def write_turns(request: Request, profile: Profile) -> tuple[list[Json], list[Finding]]:
    """Write some turns of a conversation. See `TurnCodec`."""
    notes = FindingCollector()
    return _MessageWriter(request, profile, notes).write(), notes.findings


def _tools(request: Request, profile: Profile, notes: FindingCollector) -> Json:
    if profile.tools_in_messages and request.found_tools:
        first = [tool for tool in request.tools if not _is_declared_later(tool, request, profile)]
        request = msgspec.structs.replace(request, tools=first)
    tools = [*write_shared(request, NAME, notes, _functions), *hosted_tools(request, NAME, notes)]
    if not tools:
        return {}
    body: Json = {"tools": tools}
    if request.tool_choice is not None:
        body["tool_choice"] = _tool_choice(request.tool_choice)
    if request.parallel is not None:
        body["parallel_tool_calls"] = request.parallel
    return body


def _is_declared_later(tool: Tool, request: Request, profile: Profile) -> bool:
    """Return whether a message declares this tool: it is a deferred tool that a search has found."""
    is_deferred = tool.found or tool.extra.get("defer_loading") is True
    return profile.tools_in_messages and is_deferred and tool.name in request.found_tools


def _functions(request: Request, notes: FindingCollector) -> list[Json]:
    functions = []
    for tool in as_functions(tools_for_wire(request, NAME, notes), notes):
        description = {"description": tool.description} if tool.description else {}
        strict_stated = tool.strict or (tool.strict is False and request.wire == NAME)  # false is the default
        strict = {"strict": tool.strict} if strict_stated else {}
        function = {"name": wire_tool_name(tool.name, notes), **description, "parameters": dict(tool.schema), **strict}
        functions.append({"type": "function", "function": function, **tool.extra})
    return functions


def _tool_choice(choice: ToolChoice) -> str | Json:
    functions = [{"type": "function", "function": {"name": shorten_name(name)}} for name in choice.names]
    if not functions:
        return choice.mode
    if choice.mode == "required" and len(functions) == 1:
        return functions[0]
    return {"type": "allowed_tools", "allowed_tools": {"mode": choice.mode, "tools": functions}}


def _generation_fields(request: Request, profile: Profile) -> Json:
    body: Json = {}
    if request.max_tokens is not None:
        body[profile.max_tokens] = request.max_tokens
    body |= request.sampling
    if request.wire != NAME and "top_logprobs" in request.sampling:
        body["logprobs"] = True  # one setting on other wires, two on this one
    if request.stop:
        body["stop"] = request.stop
    if request.format is not None and request.format.schema is None:
        body["response_format"] = {"type": "json_object"}
    elif request.format is not None:
        body["response_format"] = {"type": "json_schema", "json_schema": write_schema(request.format)}
    return body


def _delivery_fields(request: Request, profile: Profile) -> Json:
    """Return the fields for the user and for streaming."""
    body: Json = {}
    if request.stream:
        body["stream"] = True
        if request.usage_wanted and profile.usage_option:
            body["stream_options"] = {"include_usage": True}
    return body | write_user_fields(request)


class _MessageWriter:
    """Writer for the messages. One neutral message can become several here."""

    def __init__(self, request: Request, profile: Profile, notes: FindingCollector) -> None:
        self._request = request
        self._profile = profile
        self._notes = notes
        self._declared: set[str] = set()  # names of the tools that messages have declared

    def write(self) -> list[Json]:
        system = self._request.system
        messages = [self._system(system, "system")] if system else []
        for n, message in enumerate(self._request.messages):
            path = f"messages[{n}]"
            match message.role:
                case "system":
                    pieces = [piece for piece in message.pieces if isinstance(piece, Content)]
                    written = [self._system(pieces, path)]
                case "user":
                    written = self._user(message, path)
                case "assistant":
                    written = [self._assistant(message, path)]
                case _:
                    assert_never(message.role)
            # A message whose content this wire cannot carry leaves no empty message.
            messages += [
                entry
                for entry in written
                if not message.pieces or entry.keys() & _MEANINGFUL_FIELDS or entry["content"]
            ]
        return messages

    def _system(self, content: list[Content], path: str) -> Json:
        """Return a system message with one text; with parts if the upstream accepts cache marks.

        Marks move from turn to turn. Using parts also without marks keeps the rest of the message constant.
        """
        role = self._profile.system_role
        if self._profile.cache_marks or any(isinstance(piece, CacheMark) for piece in content):
            return {"role": role, "content": self._parts(content, path)}
        return {"role": role, "content": join_text(content, "\n\n", self._notes, path)}

    def _user(self, message: Message, path: str) -> list[Json]:
        """Return the tool messages, which have to follow the calls directly, and then the user message."""
        results: list[Json] = []
        found_names: list[str] = []
        other_pieces: list[Content] = []
        for piece, mark in with_marks(message.pieces):
            if isinstance(piece, Result):
                results.append(self._result(piece, mark, path))
                found_names += names_of_found_tools(piece) if self._profile.tools_in_messages else ()
            elif isinstance(piece, Call | Reasoning):
                self._notes.report("content-dropped", "a call or thinking in a user message: dropped", path)
            else:
                other_pieces += [piece] if mark is None else [piece, mark]
        results += self._declare_tools(found_names)
        parts = self._parts(other_pieces, path)
        name = {"name": message.name} if message.name else {}
        if parts or not results:
            content = parts if parts and self._profile.cache_marks else _collapse_text(parts)
            results.append({"role": "user", "content": content, **name})
        return results

    def _declare_tools(self, names: list[str]) -> list[Json]:
        """Return a system message that declares these tools; none if they are declared already. It has no content."""
        request = self._request
        tools = [
            tool
            for tool in request.tools
            if tool.name in names
            and tool.name not in self._declared
            and _is_declared_later(tool, request, self._profile)
        ]
        self._declared |= {tool.name for tool in tools}
        offered = msgspec.structs.replace(request, tools=tools)
        return [{"role": "system", "tools": _functions(offered, self._notes)}] if tools else []

    def _result(self, result: Result, mark: CacheMark | None, path: str) -> Json:
        """Return a tool message with one text; with parts if it has files or can have cache marks."""
        if result.error:
            self._notes.report("error-as-text", "a tool result is an error: marked in its text", path)
        content = [*mark_error(result), *([mark] if mark else [])]
        message: Json = {"role": "tool", "tool_call_id": result.id}
        has_marks = self._profile.cache_marks or any(isinstance(piece, CacheMark) for piece in content)
        if has_marks or any(map(is_file, content)):
            return {**message, "content": self._parts(content, path) or ""}
        return {**message, "content": join_text(content, "\n", self._notes, path)}

    def _assistant(self, message: Message, path: str) -> Json:
        texts: list[str] = []
        calls: list[Json] = []
        thoughts: list[Reasoning] = []
        signature = self._profile.call_signature  # of the next call
        for piece, mark in with_marks(message.pieces):
            match piece:
                case Reasoning(seal=Seal(wire=wire, data={"thought_signature": str(value)})) if wire == NAME:
                    signature = value
                    thoughts.append(Reasoning(piece.text))
                case Reasoning():
                    thoughts.append(piece)
                case Call():
                    extra = {**(piece.extra or {}), **(call_extra(signature) if signature else {})}
                    start = CallStart(len(calls), piece.id, shorten_name(piece.name), extra or None)
                    calls.append(call_entry(start, piece.arguments or "{}"))
                    signature = ""
                case Result():
                    self._notes.report("content-dropped", "a tool result in an assistant message: dropped", path)
                case _:
                    if calls and isinstance(piece, Text):
                        self._notes.report(
                            "reordered", "text after a call: moved before it, as this wire requires", path
                        )
                    texts.append(as_text(piece, self._notes, path) or "")
            drop_cache_mark(mark, self._notes, path)
        text = "".join(texts)
        written: Json = {"role": "assistant", "content": text or (None if calls else "")}
        written |= self._thinking(thoughts, path)
        return written | ({"tool_calls": calls} if calls else {}) | ({"name": message.name} if message.name else {})

    def _thinking(self, thoughts: list[Reasoning], path: str) -> Json:
        """Return past reasoning in the field that the upstream reads, with `reasoning_details` if it accepts them."""
        replay, takes_details = self._profile.replay, self._profile.accepts_reasoning_details
        if replay == "none":
            return {}
        for thought in thoughts:
            if thought.seal is None or thought.seal.wire != NAME or not takes_details:
                report_foreign_signature(thought, self._notes, path)
        replayed = thoughts if takes_details else []
        details = [
            detail for thought in replayed for detail in _reasoning_details(thought, replay == REASONING_DETAILS)
        ]
        text = "".join(thought.text for thought in thoughts)
        written = {replay: text} if text and replay != REASONING_DETAILS else {}
        return written | ({REASONING_DETAILS: details} if details else {})

    def _parts(self, content: list[Content], path: str) -> list[Json]:
        parts = []
        for piece, mark in with_marks(content):
            if (part := self._part(piece, path)) is not None:
                parts.append(part if mark is None else {**part, "cache_control": mark.data})
        return parts

    def _part(self, piece: Content, path: str) -> Json | None:
        match piece:
            case Image():
                detail = {"detail": piece.detail} if piece.detail else {}
                return {"type": "image_url", "image_url": {"url": piece.url, **detail}}
            case Document() if piece.url.startswith("data:") or (
                piece.file_id and self._request.file_store == FILE_STORE
            ):
                file = {"file_data": piece.url, "file_id": piece.file_id, "filename": piece.name}
                return {"type": "file", "file": {key: value for key, value in file.items() if value}}
            case Extra(wire=wire) if wire == NAME:
                return piece.data
        text = as_text(piece, self._notes, path)
        return None if text is None else {"type": "text", "text": text}


def _collapse_text(parts: list[Json]) -> str | list[Json]:
    """Return a single text as a string, because some chat templates accept nothing else."""
    match parts:
        case []:
            return ""
        case [{"type": "text", "text": str(text), **others}] if not others:
            return text
    return parts


def _reasoning_details(thought: Reasoning, include_unsigned: bool) -> list[Json]:
    """Return `reasoning_details` as the upstream sent them. `include_unsigned`: also for reasoning without details."""
    match thought.seal:
        case Seal(wire=wire, data={"reasoning_details": [*details]}) if wire == NAME:
            pass
        case _:
            return [{"type": "reasoning.text", "text": thought.text}] if include_unsigned and thought.text else []
    text_detail = next((detail for detail in details if detail.get("type") in _TEXT_DETAIL_TYPES), None)
    field = "summary" if text_detail and text_detail["type"] == "reasoning.summary" else "text"
    if not thought.text:
        return details
    if text_detail is None:
        return [{"type": "reasoning.summary", "summary": thought.text}, *details]
    return [{**detail, field: thought.text} if detail is text_detail else detail for detail in details]
