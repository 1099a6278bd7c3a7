"""An OpenAI Responses request → the neutral Request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from interlingua.common.jsontext.codec import unwrapped, write_json
from interlingua.core.options import Options
from interlingua.core.reasoning_signatures import past_thinking
from interlingua.core.reply import Call, Reasoning, Text
from interlingua.core.request import (
    Content,
    Document,
    Extra,
    Image,
    Message,
    Mode,
    Piece,
    Request,
    Result,
    Role,
    Thinking,
    ToolChoice,
)
from interlingua.core.tools import Tool, flat_name
from interlingua.events import Seal
from interlingua.wires.base import Json
from interlingua.wires.openai_responses.event_types import NAME
from interlingua.wires.requests.downgrades import error_read
from interlingua.wires.requests.object_reader import Fields
from interlingua.wires.requests.openai_common import read_format
from interlingua.wires.requests.source_paths import Places
from interlingua.wires.requests.tool_reader import read_tools

__all__ = ["read_request"]

_SAMPLING = ("temperature", "top_p")
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}
_MODES: dict[str, Mode] = {"auto": "auto", "required": "required", "none": "none"}
_FUNCTION = {"id": "call_id", "name": "name", "arguments": "arguments"}
_CUSTOM = {**_FUNCTION, "arguments": "input"}
"""What the wire calls what is in a call."""
_KEPT = ("previous_response_id", "conversation", "prompt")
_OF_THE_USER = ("mcp_approval_response", "item_reference", "agent_message")
"""Items that are no output of a call, and stand on the user's side all the same. Agents tell each other messages."""


def read_request(body: Json, options: Options) -> Request:
    fields = Fields(body)
    tools, hosted = read_tools(fields)
    items = _Items(options.seal_key)
    if instructions := fields.text("instructions", ""):
        items.system.append(Text(instructions))
    items.read_all(fields)
    text = fields.inner("text")
    sampling: dict[str, Any] = {key: fields.number(key) for key in _SAMPLING}
    sampling |= {"verbosity": text.get("verbosity"), "top_logprobs": fields.integer("top_logprobs")}
    messages = [Message(role, pieces) for role, pieces in items.messages]
    request = Request(
        wire=NAME,
        model=fields.text("model"),
        system=items.system,
        messages=messages,
        tools=_all_tools(tools + items.tools, items.found),
        hosted=hosted,
        tool_choice=_read_choice(fields),
        parallel=fields.flag("parallel_tool_calls"),
        max_tokens=fields.integer("max_output_tokens"),
        sampling={key: value for key, value in sampling.items() if value is not None},
        format=read_format(text.inner("format")),
        thinking=_read_thinking(fields.inner("reasoning")),
        stream=bool(fields.flag("stream")),
        user=fields.text("user", ""),
        metadata=fields.mapping("metadata"),
        cache_key=fields.text("prompt_cache_key", ""),
        continues=next((key for key in _KEPT if fields.object.get(key)), items.continues),
        places=items.places.table(items.system, messages, messages="input", system="instructions"),
    )
    return msgspec.structs.replace(request, extra=fields.rest(), unread=tuple(fields.unread()))


def _all_tools(offered: list[Tool], found: list[Tool]) -> list[Tool]:
    """A tool that is not to be loaded yet is deferred, until a search has found it. Some are known by that alone."""
    names = {tool.name for tool in offered}
    by_name = {tool.name: msgspec.structs.replace(tool, found=True) for tool in found}
    deferred = (tool.extra.get("defer_loading") is True and tool.name not in by_name for tool in offered)
    tools = [msgspec.structs.replace(tool, deferred=later) for tool, later in zip(offered, deferred, strict=True)]
    return tools + [tool for name, tool in by_name.items() if name not in names]


class _Items:
    """The conversation as it is read: what one side says in several items is one message."""

    def __init__(self, seal_key: bytes) -> None:
        self.system: list[Content] = []
        self.messages: list[tuple[Role, list[Piece]]] = []
        self.tools: list[Tool] = []
        self.found: list[Tool] = []
        self.continues = ""
        self.places = Places()
        self._seal_key = seal_key

    def read_all(self, fields: Fields) -> None:
        if isinstance(given := fields.get("input"), str):
            self.messages.append(("user", [Text(given)]))
            return
        kept = any(fields.object.get(key) for key in _KEPT)
        if given is None and not kept:
            fields.refuse("input", "should be a string or a list, not nothing")
        for item in fields.objects("input", "a string or a list"):
            self._read(item, item.text("type", "message" if "role" in item.object else "item_reference"))

    def _read(self, item: Fields, kind: str) -> None:
        item.pass_over("id", "status")
        match kind:
            case "message":
                self._read_message(item)
            case "function_call" | "custom_tool_call":
                custom = kind == "custom_tool_call"
                self._add("assistant", _read_call(item, custom), item.path, _CUSTOM if custom else _FUNCTION)
            case "function_call_output" | "custom_tool_call_output":
                content, error = error_read(self._read_content(item, "output"))
                self._add_result(Result(item.text("call_id"), content, error), item.path)
            case "reasoning":
                self._add("assistant", self._read_reasoning(item), item.path)
            case "additional_tools":
                item.pass_over("role")
                self.tools += read_tools(item)[0]
            case _:
                if kind == "tool_search_output":
                    self.found += read_tools(item)[0]
                if kind == "item_reference":
                    self.continues = self.continues or item.path
                theirs = kind.endswith("_output") or kind in _OF_THE_USER
                self._add("user" if theirs else "assistant", Extra(NAME, item.whole()), item.path)

    def _read_message(self, item: Fields) -> None:
        role = item.text("role")
        if role not in _ROLES:
            item.refuse("role", f"should be 'user', 'assistant', 'system' or 'developer', not {role!r}")
        content = self._read_content(item, "content")
        if _ROLES[role] == "system" and not self.messages:
            self.system += content
        elif role == "assistant":
            for piece in content:
                self._add("assistant", piece, item.path)
        else:
            self._begin(_ROLES[role], item.path).extend(content)

    def _begin(self, role: Role, path: str) -> list[Piece]:
        pieces: list[Piece] = []
        self.messages.append((role, self.places.put(pieces, path)))
        return pieces

    def _add(self, role: Role, piece: Piece, path: str, fields: Mapping[str, str] | None = None) -> None:
        """What the model says is one message until somebody else speaks."""
        goes_on = self.messages and self.messages[-1][0] == role == "assistant"
        pieces = self.messages[-1][1] if goes_on else self._begin(role, path)
        pieces.append(self.places.put(piece, path, fields))

    def _add_result(self, result: Result, path: str) -> None:
        last = self.messages[-1] if self.messages else None
        goes_on = last is not None and last[0] == "user" and all(isinstance(piece, Result) for piece in last[1])
        pieces = self.messages[-1][1] if goes_on else self._begin("user", path)
        pieces.append(self.places.put(result, path, {"id": "call_id"}))

    def _read_content(self, item: Fields, key: str) -> list[Content]:
        given = item.said(key)
        if isinstance(given, str):
            return [self.places.put(Text(given), item.at(key))]
        return [self.places.put(_read_part(part), part.path) for part in given]

    def _read_reasoning(self, item: Fields) -> Reasoning:
        """The thinking itself, if it is there, else its summary."""
        parts = item.objects("content") or item.objects("summary")
        for part in parts:
            part.pass_over("type")
        texts = [part.text("text", "") for part in parts]
        opaque = item.text("encrypted_content", "")
        sealed = {key: item.object[key] for key in ("id", "encrypted_content", "summary", "content") if item.get(key)}
        return past_thinking("\n\n".join(texts), opaque, Seal(NAME, sealed) if opaque else None, self._seal_key)


def _read_call(item: Fields, custom: bool) -> Call:
    name = item.text("name")
    if namespace := item.text("namespace", ""):
        name = flat_name(namespace, name)
    if custom:
        return Call(item.text("call_id"), name, write_json({"input": item.text("input", "")}))
    return Call(item.text("call_id"), name, unwrapped(item.text("arguments", "")))


# ── content ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _read_part(part: Fields) -> Content:
    match part.text("type", "input_text"):
        case "input_text" | "output_text" | "text" | "summary_text":
            return Text(part.text("text"))
        case "refusal":
            return Text(part.text("refusal"))
        case "input_image" if part.get("image_url"):
            return Image(part.text("image_url"), part.text("detail", "").removeprefix("auto"))
        case "input_file":
            url = part.text("file_data", "") or part.text("file_url", "")
            return Document(url, part.text("file_id", ""), name=part.text("filename", ""))
    return Extra(NAME, part.whole())


# ── settings ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _read_choice(fields: Fields) -> ToolChoice | None:
    """A choice of tools that the server runs is left where it is. Beside others they stay unread, so that a finding
    tells of it if they are lost."""
    given = fields.object.get("tool_choice")
    if not isinstance(given, dict):
        mode = fields.one_of("tool_choice", "auto", "required", "none")
        return None if given is None else ToolChoice(_MODES[mode])
    match given:
        case {"type": "function" | "custom"}:
            return ToolChoice("required", (_chosen(fields.inner("tool_choice")),))
        case {"type": "allowed_tools", "tools": [_, *_] as tools} if not any(map(_is_named, tools)):
            return None
        case {"type": "allowed_tools"}:
            choice = fields.inner("tool_choice")
            choice.pass_over("type")
            named = [tool for tool in choice.objects("tools") if _is_named(tool.object)]
            return ToolChoice(_MODES[choice.one_of("mode", "auto", "required")], tuple(map(_chosen, named)))
    return None


def _is_named(tool: object) -> bool:
    """Whether it is chosen by its name, as tools of the client are."""
    return isinstance(tool, dict) and tool.get("type") in ("function", "custom")


def _chosen(tool: Fields) -> str:
    tool.pass_over("type")
    name, namespace = tool.text("name"), tool.text("namespace", "")
    return flat_name(namespace, name) if namespace else name


def _read_thinking(reasoning: Fields) -> Thinking:
    show = reasoning.text("summary", "") or reasoning.text("generate_summary", "")
    return Thinking(effort=reasoning.text("effort", "") or None, show=show or None)
