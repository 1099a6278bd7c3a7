"""The neutral Request → a chat completion request, as one upstream wants it."""

from __future__ import annotations

from typing import assert_never

from interlingua.core.findings__notes import Notes
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
from interlingua.core.tools import short_name
from interlingua.events import CallStart, Finding, Seal
from interlingua.upstreams.adapt.tool_files import is_file
from interlingua.upstreams.profile import Profile
from interlingua.wires.base import Json
from interlingua.wires.openai_chat.chunk_reader import DETAILS, NAME
from interlingua.wires.openai_chat.emitter import call_entry
from interlingua.wires.openai_chat.request_thinking import write_thinking
from interlingua.wires.reasoning_fields import foreign_seal
from interlingua.wires.requests.downgrades import (
    as_functions,
    error_marked,
    extra_fields,
    hosted_tools,
    in_words,
    joined,
    no_mark,
    offered,
)
from interlingua.wires.requests.openai_common import SAME_FILES, SHARED, told_name, write_asker, write_schema

__all__ = ["write_request"]

_SAYING = {"tool_call_id", "tool_calls", "reasoning_content", "reasoning", DETAILS}
"""Fields that make a message say something, also without content."""
_MARKED_UP = ("reasoning.text", "reasoning.summary")


def write_request(request: Request, profile: Profile) -> tuple[Json, list[Finding]]:
    notes = Notes()
    body: Json = {"model": request.model, "messages": _Messages(request, profile, notes).write()}
    body |= _tools(request, notes)
    body |= _limits(request, profile)
    body |= _about(request, profile)
    thinking = write_thinking(request.thinking, profile, notes)
    extra = extra_fields(request, NAME, notes, SHARED)
    for key, value in extra.items():
        both = isinstance(value, dict) and isinstance(body.get(key) or thinking.get(key), dict)
        body[key] = {**value, **thinking.pop(key, {})} if both else value
    return body | thinking, notes.findings


def _tools(request: Request, notes: Notes) -> Json:
    tools = []
    for tool in as_functions(offered(request, NAME, notes), notes):
        description = {"description": tool.description} if tool.description else {}
        said = tool.strict or (tool.strict is False and request.wire == NAME)  # else it goes without saying
        strict = {"strict": tool.strict} if said else {}
        function = {"name": told_name(tool.name, notes), **description, "parameters": dict(tool.schema), **strict}
        tools.append({"type": "function", "function": function, **tool.extra})
    tools += hosted_tools(request, NAME, notes)
    if not tools:
        return {}
    body: Json = {"tools": tools}
    if request.tool_choice is not None:
        body["tool_choice"] = _choice(request.tool_choice)
    if request.parallel is not None:
        body["parallel_tool_calls"] = request.parallel
    return body


def _choice(choice: ToolChoice) -> str | Json:
    named = [{"type": "function", "function": {"name": short_name(name)}} for name in choice.names]
    if not named:
        return choice.mode
    if choice.mode == "required" and len(named) == 1:
        return named[0]
    return {"type": "allowed_tools", "allowed_tools": {"mode": choice.mode, "tools": named}}


def _limits(request: Request, profile: Profile) -> Json:
    body: Json = {}
    if request.max_tokens is not None:
        body[profile.max_tokens] = request.max_tokens
    body |= request.sampling
    if request.stop:
        body["stop"] = request.stop
    if request.format is not None and request.format.schema is None:
        body["response_format"] = {"type": "json_object"}
    elif request.format is not None:
        body["response_format"] = {"type": "json_schema", "json_schema": write_schema(request.format)}
    return body


def _about(request: Request, profile: Profile) -> Json:
    """Who asks, and how the reply shall come."""
    body: Json = {}
    if request.stream:
        body["stream"] = True
        if request.usage_wanted and profile.usage_option:
            body["stream_options"] = {"include_usage": True}
    return body | write_asker(request)


class _Messages:
    """Writes the conversation: what was one message may be several here."""

    def __init__(self, request: Request, profile: Profile, notes: Notes) -> None:
        self._request = request
        self._profile = profile
        self._notes = notes

    def write(self) -> list[Json]:
        system = self._request.system
        messages = [self._system(system, "system")] if system else []
        for n, message in enumerate(self._request.messages):
            place = f"messages[{n}]"
            match message.role:
                case "system":
                    pieces = [piece for piece in message.pieces if isinstance(piece, Content)]
                    written = [self._system(pieces, place)]
                case "user":
                    written = self._user(message, place)
                case "assistant":
                    written = [self._assistant(message, place)]
                case _:
                    assert_never(message.role)
            # What was said and cannot be carried leaves no empty message.
            messages += [one for one in written if not message.pieces or one.keys() & _SAYING or one["content"]]
        return messages

    def _system(self, content: list[Content], place: str) -> Json:
        """One text, unless parts of it may be marked: marks move from turn to turn, and all else stays."""
        role = self._profile.system_role
        if self._profile.cache_marks or any(isinstance(piece, CacheMark) for piece in content):
            return {"role": role, "content": self._parts(content, place)}
        return {"role": role, "content": joined(content, "\n\n", self._notes, place)}

    def _user(self, message: Message, place: str) -> list[Json]:
        """Results first, right behind the calls, then what was said."""
        results: list[Json] = []
        said: list[Content] = []
        for piece, mark in with_marks(message.pieces):
            if isinstance(piece, Result):
                results.append(self._result(piece, mark, place))
            elif isinstance(piece, Call | Reasoning):
                self._notes.report("content-dropped", "a call or thinking in a message of the user: dropped", place)
            else:
                said += [piece] if mark is None else [piece, mark]
        parts = self._parts(said, place)
        name = {"name": message.name} if message.name else {}
        if parts or not results:
            content = parts if parts and self._profile.cache_marks else _collapsed(parts)
            results.append({"role": "user", "content": content, **name})
        return results

    def _result(self, result: Result, mark: CacheMark | None, place: str) -> Json:
        """One text, unless there are files in it, or may be marks."""
        if result.error:
            self._notes.report("error-as-text", "a tool has failed, which is told in its text", place)
        content = [*error_marked(result), *([mark] if mark else [])]
        message: Json = {"role": "tool", "tool_call_id": result.id}
        marked = self._profile.cache_marks or any(isinstance(piece, CacheMark) for piece in content)
        if marked or any(map(is_file, content)):
            return {**message, "content": self._parts(content, place) or ""}
        return {**message, "content": joined(content, "\n", self._notes, place)}

    def _assistant(self, message: Message, place: str) -> Json:
        texts: list[str] = []
        calls: list[Json] = []
        thoughts: list[Reasoning] = []
        for piece, mark in with_marks(message.pieces):
            match piece:
                case Reasoning():
                    thoughts.append(piece)
                case Call():
                    start = CallStart(len(calls), piece.id, short_name(piece.name), piece.extra or None)
                    calls.append(call_entry(start, piece.arguments or "{}"))
                case Result():
                    self._notes.report("content-dropped", "a result in a message of the model: dropped", place)
                case _:
                    if calls and isinstance(piece, Text):
                        self._notes.report("reordered", "text behind a call stands before it on this wire", place)
                    texts.append(in_words(piece, self._notes, place) or "")
            no_mark(mark, self._notes, place)
        text = "".join(texts)
        written: Json = {"role": "assistant", "content": text or (None if calls else "")}
        written |= self._thinking(thoughts, place)
        return written | ({"tool_calls": calls} if calls else {}) | ({"name": message.name} if message.name else {})

    def _thinking(self, thoughts: list[Reasoning], place: str) -> Json:
        """Past thinking, in the field that the upstream takes it from; with what was sent beside it, where that may be
        the upstream's own."""
        replay, takes_details = self._profile.replay, self._profile.takes_details
        if replay == "none":
            return {}
        for thought in thoughts:
            if thought.seal is None or thought.seal.wire != NAME or not takes_details:
                foreign_seal(thought, self._notes, place)
        given = thoughts if takes_details else []
        details = [detail for thought in given for detail in _details(thought, replay == DETAILS)]
        text = "".join(thought.text for thought in thoughts)
        written = {replay: text} if text and replay != DETAILS else {}
        return written | ({DETAILS: details} if details else {})

    def _parts(self, content: list[Content], place: str) -> list[Json]:
        parts = []
        for piece, mark in with_marks(content):
            if (part := self._part(piece, place)) is not None:
                parts.append(part if mark is None else {**part, "cache_control": mark.data})
        return parts

    def _part(self, piece: Content, place: str) -> Json | None:
        match piece:
            case Image():
                detail = {"detail": piece.detail} if piece.detail else {}
                return {"type": "image_url", "image_url": {"url": piece.url, **detail}}
            case Document() if piece.url.startswith("data:") or (piece.file_id and self._request.wire in SAME_FILES):
                file = {"file_data": piece.url, "file_id": piece.file_id, "filename": piece.name}
                return {"type": "file", "file": {key: value for key, value in file.items() if value}}
            case Extra(wire=wire) if wire == NAME:
                return piece.data
        text = in_words(piece, self._notes, place)
        return None if text is None else {"type": "text", "text": text}


def _collapsed(parts: list[Json]) -> str | list[Json]:
    """A single text as a string: some templates take nothing else."""
    match parts:
        case []:
            return ""
        case [{"type": "text", "text": str(text), **others}] if not others:
            return text
    return parts


def _details(thought: Reasoning, every: bool) -> list[Json]:
    """`reasoning_details` as the upstream had sent them; `every`: also for thinking that came without."""
    match thought.seal:
        case Seal(wire=wire, data={"reasoning_details": [*details]}) if wire == NAME:
            pass
        case _:
            return [{"type": "reasoning.text", "text": thought.text}] if every and thought.text else []
    spoken = next((detail for detail in details if detail.get("type") in _MARKED_UP), None)
    field = "summary" if spoken and spoken["type"] == "reasoning.summary" else "text"
    if not thought.text:
        return details
    if spoken is None:
        return [{"type": "reasoning.summary", "summary": thought.text}, *details]
    return [{**detail, field: thought.text} if detail is spoken else detail for detail in details]
