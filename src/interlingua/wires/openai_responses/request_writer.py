"""The neutral Request → an OpenAI Responses request."""

from __future__ import annotations

from typing import Any

from interlingua.common.jsontext.codec import read_json
from interlingua.core.findings__notes import Notes
from interlingua.core.reply import Call, Reasoning, Text
from interlingua.core.request import CacheMark, Content, Document, Extra, Image, Message, Request, Result, with_marks
from interlingua.core.tools import Tool, short_name
from interlingua.events import Finding
from interlingua.upstreams.profile import Profile
from interlingua.wires.base import Json
from interlingua.wires.openai_responses.event_types import NAME
from interlingua.wires.reasoning_fields import foreign_seal, thinking_nodes
from interlingua.wires.requests.downgrades import (
    complete_schema,
    error_marked,
    extra_fields,
    hosted_tools,
    in_words,
    inexact_wish,
    joined,
    no_mark,
    no_name,
    no_show,
    offered,
    one_choice,
)
from interlingua.wires.requests.openai_common import SAME_FILES, SHARED, told_name, write_asker, write_schema

__all__ = ["write_request"]

STATELESS: Json = {"store": False, "include": ["reasoning.encrypted_content"]}
"""What a client of another wire cannot ask for: that nothing is held, and that thinking comes as it can go back."""
_SAMPLING = ("temperature", "top_p", "top_logprobs")


def write_request(request: Request, profile: Profile) -> tuple[Json, list[Finding]]:
    notes = Notes()
    one_choice(request)
    items = _Items(request, profile, notes)
    body: Json = {"model": request.model}
    if instructions := joined(request.system, "\n\n", notes, "system"):
        body["instructions"] = instructions
    body["input"] = items.write()
    body |= _tools(request, notes)
    body |= _limits(request, notes)
    body |= _about(request)
    return body | extra_fields(request, NAME, notes, SHARED), notes.findings


# ── tools ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _tools(request: Request, notes: Notes) -> Json:
    tools: list[Json] = []
    spaces: dict[str, Json] = {}
    for tool in offered(request, NAME, notes):
        if tool.found and request.wire == NAME:
            continue  # the conversation has it
        written = _tool(tool, request.wire == NAME, notes)
        if not tool.namespace:
            tools.append(written)
        elif tool.namespace in spaces:
            spaces[tool.namespace]["tools"].append(written)
        else:
            about = {"type": "namespace", "name": tool.namespace, "description": tool.about}
            spaces[tool.namespace] = {**about, "tools": [written]}
            tools.append(spaces[tool.namespace])
    tools += hosted_tools(request, NAME, notes)
    if not tools:
        return {}
    body: Json = {"tools": tools}
    if (choice := request.tool_choice) is not None:
        body["tool_choice"] = choice.mode
        chosen = [_chosen(name, request.tools) for name in choice.names]
        if len(chosen) == 1 and choice.mode == "required":
            body["tool_choice"] = chosen[0]
        elif chosen:
            body["tool_choice"] = {"type": "allowed_tools", "mode": choice.mode, "tools": chosen}
    if request.parallel is not None:
        body["parallel_tool_calls"] = request.parallel
    return body


def _tool(tool: Tool, same_wire: bool, notes: Notes) -> Json:
    about = {"name": tool.local or told_name(tool.name, notes)}
    about |= {"description": tool.description} if tool.description else {}
    if tool.kind == "custom":
        format = {"format": dict(tool.grammar)} if tool.grammar else {}
        return {"type": "custom", **about, **format, **tool.extra}
    # What says nothing of it is strict here, and on no other wire.
    strict = {} if tool.strict is None and same_wire else {"strict": bool(tool.strict)}
    return {"type": "function", **about, "parameters": complete_schema(tool.schema), **strict, **tool.extra}


def _chosen(name: str, tools: list[Tool]) -> Json:
    tool = next((tool for tool in tools if tool.name == name), Tool(name))
    return {"type": tool.kind, **_named(tool)}


def _named(tool: Tool) -> Json:
    """How a choice and a call name a tool."""
    name = {"name": tool.local or short_name(tool.name)}
    return name | ({"namespace": tool.namespace} if tool.namespace else {})


# ── settings ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _limits(request: Request, notes: Notes) -> Json:
    body: Json = {}
    if request.max_tokens is not None:
        body["max_output_tokens"] = request.max_tokens
    for key, value in request.sampling.items():
        if key in _SAMPLING:
            body[key] = value
        elif key not in ("n", "verbosity"):
            notes.report("field-dropped", f"{key} has no place on {NAME}: dropped", key)
    if request.stop:
        notes.report("field-dropped", f"stop sequences have no place on {NAME}: dropped", "stop")
    if text := _text(request):
        body["text"] = text
    if reasoning := _reasoning(request, notes):
        body["reasoning"] = reasoning
    return body


def _text(request: Request) -> Json:
    verbosity = {"verbosity": request.sampling["verbosity"]} if "verbosity" in request.sampling else {}
    if request.format is None:
        return verbosity
    if request.format.schema is None:
        return {"format": {"type": "json_object"}, **verbosity}
    return {"format": {"type": "json_schema", **write_schema(request.format)}, **verbosity}


def _reasoning(request: Request, notes: Notes) -> Json:
    thinking = request.thinking
    effort = "none" if thinking.wanted is False else thinking.as_effort()
    if thinking.wanted and thinking.effort is None:
        inexact_wish(thinking, notes)
    reasoning = {"effort": effort} if effort else {}
    if request.wire == NAME:
        return reasoning | ({"summary": thinking.show} if thinking.show else {})
    if thinking.show != "summarized":
        no_show(thinking, notes)
    return reasoning | ({"summary": "auto"} if thinking.wanted and thinking.show != "omitted" else {})


def _about(request: Request) -> Json:
    body: Json = {} if request.wire == NAME else dict(STATELESS)
    if request.stream:
        body["stream"] = True
    return body | write_asker(request)


# ── items ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class _Items:
    """Writes the conversation: what was one message is several items here."""

    def __init__(self, request: Request, profile: Profile, notes: Notes) -> None:
        self._request = request
        self._profile = profile
        self._notes = notes
        self._tools = {tool.name: tool for tool in request.tools}
        calls = (piece for message in request.messages for piece in message.pieces if isinstance(piece, Call))
        self._custom = {call.id for call in calls if self._text_for(call) is not None}

    def write(self) -> list[Json]:
        items: list[Json] = []
        for n, message in enumerate(self._request.messages):
            items += self._message(message, f"messages[{n}]")
        return items

    def _message(self, message: Message, place: str) -> list[Json]:
        no_name(message, NAME, self._notes, place)
        items: list[Json] = []
        said: list[Json] = []
        for piece, mark in with_marks(message.pieces):
            no_mark(mark, self._notes, place)
            match piece:
                case Reasoning():
                    said = self._say(message, said, items)
                    items += self._thinking(piece, place)
                case Call():
                    said = self._say(message, said, items)
                    items.append(self._call(piece))
                case Result():
                    items.append(self._result(piece, place))
                case Extra() if piece.wire == NAME and not str(piece.data.get("type")).startswith("input_"):
                    said = self._say(message, said, items)
                    items.append(piece.data)
                case _:
                    said += self._part(piece, message.role == "assistant", place)
        self._say(message, said, items)
        return items

    def _say(self, message: Message, said: list[Json], items: list[Json]) -> list[Json]:
        """What was said up to here becomes an item; nothing is left of it. The model's words are a string: parts of
        it would need a reply's id."""
        role = self._profile.system_role if message.role == "system" else message.role
        content: Any = said
        if role == "assistant" and all(part["type"] == "output_text" for part in said):
            content = "".join(part["text"] for part in said)
        if said or not message.pieces:
            items.append({"type": "message", "role": role, "content": content})
        return []

    def _part(self, piece: Content, model: bool, place: str) -> list[Json]:
        match piece:
            case Text() if model:
                return [{"type": "output_text", "text": piece.text}]
            case Image() if not model:
                return [{"type": "input_image", "image_url": piece.url, "detail": piece.detail or "auto"}]
            case Document() if not model and (piece.url or (piece.file_id and self._request.wire in SAME_FILES)):
                field = "file_data" if piece.url.startswith("data:") else "file_url"
                file = {field: piece.url, "file_id": piece.file_id, "filename": piece.name}
                return [{"type": "input_file", **{key: value for key, value in file.items() if value}}]
            case Extra() if piece.wire == NAME:
                return [piece.data]
            case CacheMark():
                return []
        text = in_words(piece, self._notes, place)
        return [{"type": "output_text" if model else "input_text", "text": text}] if text is not None else []

    def _thinking(self, thinking: Reasoning, place: str) -> list[Json]:
        if thinking.seal is not None and thinking.seal.wire != NAME:
            foreign_seal(thinking, self._notes, place)
            thinking = Reasoning(thinking.text)
        return thinking_nodes(thinking, NAME)

    def _call(self, call: Call) -> Json:
        tool = self._tools.get(call.name, Tool(call.name))
        about = {"call_id": call.id, **_named(tool)}
        if (text := self._text_for(call)) is not None:
            return {"type": "custom_tool_call", **about, "input": text}
        return {"type": "function_call", **about, "arguments": call.arguments or "{}"}

    def _text_for(self, call: Call) -> str | None:
        """The text for a custom tool; None for any other, or if there is no such text."""
        tool = self._tools.get(call.name)
        given = read_json(call.arguments, dict[str, Any]) if tool is not None and tool.kind == "custom" else None
        text = (given or {}).get("input")
        return text if isinstance(text, str) else None

    def _result(self, result: Result, place: str) -> Json:
        kind = "custom_tool_call_output" if result.id in self._custom else "function_call_output"
        if result.error:
            self._notes.report("error-as-text", "a tool has failed, which is told in its text", place)
        content = [piece for piece in error_marked(result) if not isinstance(piece, CacheMark)]
        parts = [part for piece in content for part in self._part(piece, False, place)]
        output: Any = parts
        if all(part["type"] == "input_text" for part in parts) and len(parts) <= 1:
            output = parts[0]["text"] if parts else ""
        return {"type": kind, "call_id": result.id, "output": output}
