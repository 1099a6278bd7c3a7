"""The neutral Request → a chat completion request, as one upstream wants it."""

from __future__ import annotations

from typing import assert_never

from interlingua.events import Finding, Seal
from interlingua.profile import Profile
from interlingua.reply import Call, Reasoning, Text
from interlingua.request import CacheMark, Content, Document, Extra, Image, Message, Request, Result, with_marks
from interlingua.wire.downgrades import (
    SEE_NEXT,
    cache_control,
    error_marked,
    extra_fields,
    functions,
    hosted_tools,
    in_words,
    joined,
    moved_from,
    narrowed,
    without_billing,
)
from interlingua.wire.notes import Notes
from interlingua.wire.openai_chat.reader import DETAILS, NAME
from interlingua.wire.openai_chat.request_thinking import write_thinking
from interlingua.wire.wire import Json

__all__ = ["write_request"]

SHARED = ("service_tier", "safety_identifier", "prompt_cache_retention", "moderation")
"""Fields that mean the same on both wires of OpenAI."""
_SAYING = {"tool_call_id", "tool_calls", "reasoning_content", "reasoning", DETAILS}
"""Fields that make a message say something, also without content."""
_SAME_FILES = (NAME, "openai-responses")
"""The wires whose file ids mean the same."""
_MARKED_UP = ("reasoning.text", "reasoning.summary")


def write_request(request: Request, profile: Profile) -> tuple[Json, list[Finding]]:
    notes = Notes()
    body: Json = {"model": request.model, "messages": _Messages(request, profile, notes).write()}
    body |= _tools(request, profile, notes)
    body |= _limits(request, profile, notes)
    body |= _about(request, profile, notes)
    thinking = write_thinking(request.thinking, profile, notes)
    extra = extra_fields(request, NAME, notes, SHARED)
    for key, value in extra.items():
        both = isinstance(value, dict) and isinstance(body.get(key) or thinking.get(key), dict)
        body[key] = {**value, **thinking.pop(key, {})} if both else value
    return body | thinking, notes.findings


def _tools(request: Request, profile: Profile, notes: Notes) -> Json:
    tools = []
    for tool in functions(request, profile, notes, NAME):
        description = {"description": tool.description} if tool.description else {}
        strict = {} if tool.strict is None else {"strict": tool.strict}
        function = {"name": tool.name, **description, "parameters": dict(tool.schema), **strict}
        tools.append({"type": "function", "function": function, **tool.extra})
    tools += hosted_tools(request, NAME, notes)
    if not tools:
        return {}
    body: Json = {"tools": tools}
    if (choice := request.tool_choice) is not None:
        body["tool_choice"] = choice.mode
        if choice.names and not narrowed(request, notes):
            body["tool_choice"] = {"type": "function", "function": {"name": choice.names[0]}}
    if request.parallel is not None and profile.parallel:
        body["parallel_tool_calls"] = request.parallel
    elif request.parallel is False:
        notes.report("field-dropped", "the upstream cannot be told to make one call at a time", "parallel_tool_calls")
    return body


def _limits(request: Request, profile: Profile, notes: Notes) -> Json:
    body: Json = {}
    if request.max_tokens is not None:
        body[profile.max_tokens] = request.max_tokens
    if "top_k" in request.sampling and not profile.top_k:
        notes.report("field-dropped", "top_k is not known to the upstream: dropped", "top_k")
    body |= {key: value for key, value in request.sampling.items() if key != "top_k" or profile.top_k}
    if request.stop:
        body["stop"] = request.stop
    if (format := request.format) is not None:
        strict = {} if format.strict is None else {"strict": format.strict}
        schema = {"name": format.name or "reply", "schema": format.schema, **strict}
        wanted = {"type": "json_object"} if format.schema is None else {"type": "json_schema", "json_schema": schema}
        body["response_format"] = wanted
    return body


def _about(request: Request, profile: Profile, notes: Notes) -> Json:
    """Who asks, and how the reply shall come."""
    body: Json = {}
    if request.stream:
        body["stream"] = True
        if request.usage_wanted and profile.usage_option:
            body["stream_options"] = {"include_usage": True}
    if request.user and profile.user:
        body["user"] = request.user
    elif request.user:
        notes.report("field-dropped", "user is not known to the upstream: dropped", "user")
    if request.metadata:
        body["metadata"] = request.metadata
    if request.cache_key and profile.cache_key:
        body["prompt_cache_key"] = request.cache_key
    elif request.cache_key:
        notes.report(
            "field-dropped", "a key for the prompt cache is not known to the upstream: dropped", "prompt_cache_key"
        )
    return body


class _Messages:
    """Writes the conversation: what was one message may be several here."""

    def __init__(self, request: Request, profile: Profile, notes: Notes) -> None:
        self._request = request
        self._profile = profile
        self._notes = notes

    def write(self) -> list[Json]:
        system = without_billing(self._request.system, self._notes)
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
        role = self._profile.system_role
        if self._profile.cache_marks and all(isinstance(piece, Text | CacheMark) for piece in content):
            return {"role": role, "content": self._parts(content, place)}
        for _, mark in with_marks(content):
            cache_control(mark, self._profile.cache_marks, self._notes, place)
        return {"role": role, "content": joined(content, "\n\n", self._notes, place)}

    def _user(self, message: Message, place: str) -> list[Json]:
        """Results first, right behind the calls, then what was said and what had to move out of the results."""
        results: list[Json] = []
        moved: list[Json] = []
        said: list[Content] = []
        for piece, mark in with_marks(message.pieces):
            if isinstance(piece, Result):
                results.append(self._result(piece, mark, moved, place))
            elif isinstance(piece, Call | Reasoning):
                self._notes.report("content-dropped", "a call or thinking in a message of the user: dropped", place)
            else:
                said += [piece] if mark is None else [piece, mark]
        parts = moved + self._parts(said, place)
        name = {"name": message.name} if message.name else {}
        if parts or not results:
            results.append({"role": "user", "content": self._collapsed(parts), **name})
        return results

    def _result(self, result: Result, mark: CacheMark | None, moved: list[Json], place: str) -> Json:
        profile, notes = self._profile, self._notes
        content = error_marked(result)
        if result.error:
            notes.report("error-as-text", "a tool has failed, which is told in its text", place)
        message: Json = {"role": "tool", "tool_call_id": result.id}
        files = [piece for piece in content if isinstance(piece, Image) or (isinstance(piece, Document) and piece.url)]
        if profile.cache_marks or (files and profile.images_in_results):
            return {**message, "content": self._parts([*content, *([mark] if mark else [])], place) or ""}
        for inner in (mark, *(inner for _, inner in with_marks(content))):
            cache_control(inner, profile.cache_marks, notes, place)
        for file in files:
            notes.report("image-moved", "images of a tool's result: moved to a message of the user", place)
            moved += [{"type": "text", "text": moved_from(file, result.id)}, *self._parts([file], place)]
        text = joined([piece for piece in content if piece not in files], "\n", notes, place)
        return {**message, "content": text or (SEE_NEXT if files else "")}

    def _assistant(self, message: Message, place: str) -> Json:
        texts: list[str] = []
        calls: list[Json] = []
        thoughts: list[Reasoning] = []
        for piece, mark in with_marks(message.pieces):
            match piece:
                case Reasoning():
                    thoughts.append(piece)
                case Call():
                    function = {"name": piece.name, "arguments": piece.arguments or "{}"}
                    calls.append({"id": piece.id, "type": "function", "function": function})
                case Result():
                    self._notes.report("content-dropped", "a result in a message of the model: dropped", place)
                case _:
                    if calls and isinstance(piece, Text):
                        self._notes.report("reordered", "text behind a call stands before it on this wire", place)
                    texts.append(in_words(piece, self._notes, place) or "")
            cache_control(mark, False, self._notes, place)
        text = "".join(texts)
        written: Json = {"role": "assistant", "content": text or (None if calls else "")}
        written |= self._thinking(thoughts, place)
        return written | ({"tool_calls": calls} if calls else {}) | ({"name": message.name} if message.name else {})

    def _thinking(self, thoughts: list[Reasoning], place: str) -> Json:
        """Past thinking, in the field that the upstream takes it from; with what it had sent beside it, if it had."""
        replay = self._profile.replay
        if thoughts and replay == "none":
            self._notes.report("thinking-dropped", "past thinking: the upstream does not take it back", place)
        if not thoughts or replay == "none":
            return {}
        for thought in thoughts:
            if thought.seal is not None and thought.seal.wire != NAME and thought.seal.data:
                self._notes.report("seal-dropped", "what vouches for thinking of another upstream: dropped", place)
        details = [detail for thought in thoughts for detail in _details(thought, replay == DETAILS)]
        text = "".join(thought.text for thought in thoughts)
        written = {replay: text} if text and replay != DETAILS else {}
        return written | ({DETAILS: details} if details else {})

    def _parts(self, content: list[Content], place: str) -> list[Json]:
        parts = []
        for piece, mark in with_marks(content):
            if (part := self._part(piece, place)) is not None:
                parts.append(part | cache_control(mark, self._profile.cache_marks, self._notes, place))
        return parts

    def _part(self, piece: Content, place: str) -> Json | None:
        match piece:
            case Image():
                detail = {"detail": piece.detail} if piece.detail else {}
                return {"type": "image_url", "image_url": {"url": piece.url, **detail}}
            case Document() if piece.url.startswith("data:") or (piece.file_id and self._request.wire in _SAME_FILES):
                file = {"file_data": piece.url, "file_id": piece.file_id, "filename": piece.name}
                return {"type": "file", "file": {key: value for key, value in file.items() if value}}
            case Extra(wire=wire) if wire == NAME:
                return piece.data
        text = in_words(piece, self._notes, place)
        return None if text is None else {"type": "text", "text": text}

    def _collapsed(self, parts: list[Json]) -> str | list[Json]:
        """A single text as a string: some templates take nothing else."""
        if not parts:
            return ""
        if len(parts) == 1 and parts[0].keys() == {"type", "text"} and not self._profile.cache_marks:
            return str(parts[0]["text"])
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
