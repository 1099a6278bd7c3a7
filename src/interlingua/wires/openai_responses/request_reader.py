"""An OpenAI Responses request → the neutral Request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from interlingua.common.jsontext.codec import unwrap_invalid_arguments, write_json
from interlingua.core.options import Options
from interlingua.core.reasoning_signatures import read_past_reasoning
from interlingua.core.reply import Call, Reasoning, Text
from interlingua.core.request import (
    Content,
    Document,
    Extra,
    Image,
    Message,
    Piece,
    Request,
    Result,
    Role,
    Thinking,
    ToolChoice,
    ToolChoiceMode,
)
from interlingua.core.tools import TOOL_SEARCH, Tool, qualified_name
from interlingua.events import Seal
from interlingua.wires.base import Json
from interlingua.wires.openai_responses.event_types import NAME
from interlingua.wires.requests.downgrades import unmark_error
from interlingua.wires.requests.object_reader import ObjectReader
from interlingua.wires.requests.openai_common import FILE_STORE, read_format
from interlingua.wires.requests.source_paths import SourcePaths
from interlingua.wires.requests.tool_reader import read_tools

__all__ = ["is_from_model", "is_system_prompt", "read_request", "read_turns"]

_SAMPLING_FIELDS = ("temperature", "top_p")
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}
_TOOL_CHOICE_MODES: dict[str, ToolChoiceMode] = {"auto": "auto", "required": "required", "none": "none"}
_FUNCTION_CALL_FIELDS = {"id": "call_id", "name": "name", "arguments": "arguments"}
_CUSTOM_CALL_FIELDS = {**_FUNCTION_CALL_FIELDS, "arguments": "input"}
"""Wire names of the fields of a call, for source paths."""
_SERVER_STATE_FIELDS = ("previous_response_id", "conversation", "prompt")
_TOOL_ITEM_TYPES = ("additional_tools", "tool_search_output")
"""Items that offer further tools."""
_USER_ITEM_TYPES = ("mcp_approval_response", "item_reference", "agent_message")
"""Items of the user's side other than the output of a call. Agents send each other `agent_message` items."""


def read_request(body: Json, options: Options) -> Request:
    fields = ObjectReader(body)
    tools, hosted = read_tools(fields)
    conversation = _ConversationReader(options.seal_key)
    if instructions := fields.text("instructions", ""):
        conversation.system.append(Text(instructions))
    conversation.read_all(fields)
    text = fields.inner("text")
    sampling: dict[str, Any] = {key: fields.number(key) for key in _SAMPLING_FIELDS}
    sampling |= {"verbosity": text.get("verbosity"), "top_logprobs": fields.integer("top_logprobs")}
    messages = [Message(role, pieces) for role, pieces in conversation.messages]
    request = Request(
        wire=NAME,
        file_store=FILE_STORE,
        model=fields.text("model"),
        system=conversation.system,
        messages=messages,
        tools=_merge_tools(
            [*tools, *conversation.tools] if conversation.tools else tools, conversation.discovered_tools
        ),
        found_tools=tuple(tool.name for tool in conversation.discovered_tools),
        hosted=hosted,
        tool_choice=_read_tool_choice(fields),
        parallel=fields.flag("parallel_tool_calls"),
        max_tokens=fields.integer("max_output_tokens"),
        sampling={key: value for key, value in sampling.items() if value is not None},
        format=read_format(text.inner("format")),
        thinking=_read_thinking(fields.inner("reasoning")),
        stream=bool(fields.flag("stream")),
        user=fields.text("user", ""),
        metadata=fields.mapping("metadata"),
        cache_key=fields.text("prompt_cache_key", ""),
        continues=next((key for key in _SERVER_STATE_FIELDS if fields.object.get(key)), conversation.continues),
        source_paths=conversation.source_paths.request_paths(
            conversation.system, messages, messages="input", system="instructions"
        ),
    )
    return msgspec.structs.replace(request, extra=fields.unread_fields(), unread=tuple(fields.unread_paths()))


def read_turns(items: list[Json], options: Options, first: int) -> Request:
    """Read some turns of a conversation. See `TurnCodec`."""
    conversation = _ConversationReader(options.seal_key)
    objects = [ObjectReader(item, f"input[{n}]") for n, item in enumerate(items, first)]
    for item in objects:
        conversation.read(item)
    messages = [Message(role, pieces) for role, pieces in conversation.messages]
    return Request(
        wire=NAME,
        file_store=FILE_STORE,
        model="",
        messages=messages,
        unread=tuple(path for item in objects for path in item.unread_paths()),
        source_paths=conversation.source_paths.request_paths((), messages, messages="input"),
    )


def is_from_model(item: Json) -> bool | None:
    """Return whether the model wrote this item; None for items that offer tools or refer to stored items."""
    item_type = item.get("type", "message" if "role" in item else None)
    if item_type == "message":
        role = item.get("role")
        return role == "assistant" if isinstance(role, str) and role in _ROLES else None
    if not isinstance(item_type, str) or item_type in _TOOL_ITEM_TYPES or item_type == "item_reference":
        return None
    return not _is_user_item(item_type)


def is_system_prompt(item: Json) -> bool:
    return item.get("role") in ("system", "developer") and item.get("type", "message") == "message"


def _is_user_item(item_type: str) -> bool:
    return item_type.endswith("_output") or item_type in _USER_ITEM_TYPES


def _merge_tools(offered: list[Tool], discovered: list[Tool]) -> list[Tool]:
    """Merge the offered tools with those that a tool search has discovered.

    A tool with `defer_loading` stays deferred until a search discovers it. Some tools appear only in search results.
    """
    if not discovered and not any(tool.extra.get("defer_loading") is True for tool in offered):
        return offered
    names = {tool.name for tool in offered}
    by_name = {tool.name: msgspec.structs.replace(tool, found=True) for tool in discovered}
    deferred = (tool.extra.get("defer_loading") is True and tool.name not in by_name for tool in offered)
    tools = [
        msgspec.structs.replace(tool, deferred=is_deferred) for tool, is_deferred in zip(offered, deferred, strict=True)
    ]
    return tools + [tool for name, tool in by_name.items() if name not in names]


class _ConversationReader:
    """Reads the input items. Several items of one side in a row become one message."""

    def __init__(self, seal_key: bytes) -> None:
        self.system: list[Content] = []
        self.messages: list[tuple[Role, list[Piece]]] = []
        self.tools: list[Tool] = []
        self.discovered_tools: list[Tool] = []
        self.continues = ""
        self.source_paths = SourcePaths()
        self._seal_key = seal_key
        self._open_results: list[Piece] | None = None  # pieces of the last message, if results can be added to it

    def read_all(self, fields: ObjectReader) -> None:
        if isinstance(raw_input := fields.get("input"), str):
            self.messages.append(("user", [Text(raw_input)]))
            return
        has_server_state = any(fields.object.get(key) for key in _SERVER_STATE_FIELDS)
        if raw_input is None and not has_server_state:
            fields.reject("input", "should be a string or a list, but is missing")
        for item in fields.objects("input", "a string or a list"):
            self.read(item)

    def read(self, item: ObjectReader) -> None:
        item_type = item.text("type", "message" if "role" in item.object else "item_reference")
        item.ignore("id", "status")
        match item_type:
            case "message":
                self._read_message(item)
            case "function_call" | "custom_tool_call":
                custom = item_type == "custom_tool_call"
                self._add(
                    "assistant",
                    _read_call(item, custom),
                    item.path,
                    _CUSTOM_CALL_FIELDS if custom else _FUNCTION_CALL_FIELDS,
                )
            case "function_call_output" | "custom_tool_call_output":
                content, error = unmark_error(self._read_content(item, "output"))
                self._add_result(Result(item.text("call_id"), content, error), item.path)
            case "reasoning":
                self._add("assistant", self._read_reasoning(item), item.path)
            case "tool_search_call" if _is_client_search(item.object):
                call = Call(item.text("call_id"), TOOL_SEARCH, write_json(item.get("arguments") or {}))
                item.ignore("execution")
                self._add("assistant", call, item.path, _FUNCTION_CALL_FIELDS)
            case "tool_search_output" if _is_client_search(item.object):
                self.discovered_tools += read_tools(item)[0]
                self._add_result(Result(item.text("call_id"), [Extra(NAME, item.raw())]), item.path)
            case "additional_tools":
                item.ignore("role")
                self.tools += read_tools(item)[0]
            case _:
                if item_type == "tool_search_output":
                    self.discovered_tools += read_tools(item)[0]
                if item_type == "item_reference":
                    self.continues = self.continues or item.path
                self._add("user" if _is_user_item(item_type) else "assistant", Extra(NAME, item.raw()), item.path)

    def _read_message(self, item: ObjectReader) -> None:
        role = item.text("role")
        if role not in _ROLES:
            item.reject("role", f"should be 'user', 'assistant', 'system' or 'developer', not {role!r}")
        content = self._read_content(item, "content")
        if _ROLES[role] == "system" and not self.messages:
            self.system += content
        elif role == "assistant":
            phase = item.get("phase")
            for piece in content:
                in_phase = Text(piece.text, phase) if isinstance(piece, Text) and isinstance(phase, str) else piece
                self._add("assistant", in_phase, item.path)
        else:
            pieces = self._start_message(_ROLES[role], item.path)
            pieces.extend(content)
            self._open_results = pieces if role == "user" and not content else None

    def _start_message(self, role: Role, path: str) -> list[Piece]:
        pieces: list[Piece] = []
        self.messages.append((role, self.source_paths.record(pieces, path)))
        self._open_results = None
        return pieces

    def _add(self, role: Role, piece: Piece, path: str, fields: Mapping[str, str] | None = None) -> None:
        """Add a piece. Consecutive pieces of the assistant form one message."""
        continues_message = self.messages and self.messages[-1][0] == role == "assistant"
        pieces = self.messages[-1][1] if continues_message else self._start_message(role, path)
        pieces.append(self.source_paths.record(piece, path, fields))

    def _add_result(self, result: Result, path: str) -> None:
        pieces = self._start_message("user", path) if self._open_results is None else self._open_results
        pieces.append(self.source_paths.record(result, path, {"id": "call_id"}))
        self._open_results = pieces

    def _read_content(self, item: ObjectReader, key: str) -> list[Content]:
        content = item.content(key)
        if isinstance(content, str):
            return [self.source_paths.record(Text(content), item.path_of(key))]
        return [self.source_paths.record(_read_part(part), part.path) for part in content]

    def _read_reasoning(self, item: ObjectReader) -> Reasoning:
        """Read the reasoning text if the item has it, otherwise its summary."""
        parts = item.objects("content") or item.objects("summary")
        for part in parts:
            part.ignore("type")
        texts = [part.text("text", "") for part in parts]
        encrypted_content = item.text("encrypted_content", "")
        signature_fields = {
            key: item.object[key] for key in ("id", "encrypted_content", "summary", "content") if item.get(key)
        }
        return read_past_reasoning(
            "\n\n".join(texts),
            encrypted_content,
            Seal(NAME, signature_fields) if encrypted_content else None,
            self._seal_key,
        )


def _is_client_search(item: Json) -> bool:
    """Return whether a search for tools was run by the client: to the model it is the call of a function."""
    return item.get("execution") == "client" and isinstance(item.get("call_id"), str)


def _read_call(item: ObjectReader, custom: bool) -> Call:
    name = item.text("name")
    if namespace := item.text("namespace", ""):
        name = qualified_name(namespace, name)
    if custom:
        return Call(item.text("call_id"), name, write_json({"input": item.text("input", "")}))
    return Call(item.text("call_id"), name, unwrap_invalid_arguments(item.text("arguments", "")))


# ── content ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _read_part(part: ObjectReader) -> Content:
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
    return Extra(NAME, part.raw())


# ── settings ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _read_tool_choice(fields: ObjectReader) -> ToolChoice | None:
    """Read `tool_choice`.

    A choice of server-run tools only is not read and stays an extra field. In a list with other tools, they stay
    unread, so that a finding reports them if they are lost.
    """
    raw_choice = fields.object.get("tool_choice")
    if not isinstance(raw_choice, dict):
        mode = fields.one_of("tool_choice", "auto", "required", "none")
        return None if raw_choice is None else ToolChoice(_TOOL_CHOICE_MODES[mode])
    match raw_choice:
        case {"type": "function" | "custom"}:
            return ToolChoice("required", (_read_tool_name(fields.inner("tool_choice")),))
        case {"type": "allowed_tools", "tools": [_, *_] as tools} if not any(map(_is_named, tools)):
            return None
        case {"type": "allowed_tools"}:
            choice = fields.inner("tool_choice")
            choice.ignore("type")
            named_tools = [tool for tool in choice.objects("tools") if _is_named(tool.object)]
            return ToolChoice(
                _TOOL_CHOICE_MODES[choice.one_of("mode", "auto", "required")], tuple(map(_read_tool_name, named_tools))
            )
    return None


def _is_named(tool: object) -> bool:
    """Return whether the entry names a tool of the client, and not one that the server runs."""
    return isinstance(tool, dict) and tool.get("type") in ("function", "custom")


def _read_tool_name(tool: ObjectReader) -> str:
    tool.ignore("type")
    name, namespace = tool.text("name"), tool.text("namespace", "")
    return qualified_name(namespace, name) if namespace else name


def _read_thinking(reasoning: ObjectReader) -> Thinking:
    show = reasoning.text("summary", "") or reasoning.text("generate_summary", "")
    return Thinking(effort=reasoning.text("effort", "") or None, show=show or None)
