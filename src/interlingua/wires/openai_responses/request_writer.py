"""The neutral Request → an OpenAI Responses request."""

from __future__ import annotations

from typing import Any

from interlingua.common.jsontext.codec import read_json
from interlingua.core.findings import FindingCollector
from interlingua.core.reply import Call, Reasoning, Text
from interlingua.core.request import CacheMark, Content, Document, Extra, Image, Message, Request, Result, with_marks
from interlingua.core.tools import TOOL_SEARCH, Tool, shorten_name
from interlingua.events import Finding
from interlingua.upstreams.profile import Profile
from interlingua.wires.base import Json
from interlingua.wires.openai_responses.event_types import NAME
from interlingua.wires.openai_responses.reasoning_fields import reasoning_items
from interlingua.wires.reasoning_fields import report_foreign_signature
from interlingua.wires.requests.downgrades import (
    as_text,
    complete_schema,
    drop_cache_mark,
    drop_message_name,
    drop_thinking_display,
    extra_fields,
    hosted_tools,
    join_text,
    mark_error,
    note_inexact_effort,
    require_single_choice,
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

STATELESS_FIELDS: Json = {"store": False, "include": ["reasoning.encrypted_content"]}
"""Fields that clients of other wires cannot set: nothing is stored, and reasoning is returned in encrypted form."""
_SAMPLING_FIELDS = ("temperature", "top_p", "top_logprobs")


def write_request(request: Request, profile: Profile) -> tuple[Json, list[Finding]]:
    notes = FindingCollector()
    require_single_choice(request)
    conversation = _ConversationWriter(request, profile, notes)
    body: Json = {"model": request.model}
    if instructions := join_text(request.system, "\n\n", notes, "system"):
        body["instructions"] = instructions
    body["input"] = conversation.write()
    body |= _tool_fields(request, notes)
    body |= _generation_fields(request, notes)
    body |= _metadata_fields(request)
    return body | extra_fields(request, NAME, notes, convert_shared_field), notes.findings


def write_turns(request: Request, profile: Profile) -> tuple[list[Json], list[Finding]]:
    """Write some turns of a conversation. See `TurnCodec`."""
    notes = FindingCollector()
    return _ConversationWriter(request, profile, notes).write(), notes.findings


# ── tools ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _client_tools(request: Request, notes: FindingCollector) -> list[Json]:
    tools: list[Json] = []
    namespaces: dict[str, Json] = {}
    for tool in tools_for_wire(request, NAME, notes):
        if tool.found and request.wire == NAME:
            continue  # the tool is in the conversation already
        tool_object = _tool_object(tool, request.wire == NAME, notes)
        if not tool.namespace:
            tools.append(tool_object)
        elif tool.namespace in namespaces:
            namespaces[tool.namespace]["tools"].append(tool_object)
        else:
            namespace = {"type": "namespace", "name": tool.namespace, "description": tool.about}
            namespaces[tool.namespace] = {**namespace, "tools": [tool_object]}
            tools.append(namespaces[tool.namespace])
    return tools


def _tool_fields(request: Request, notes: FindingCollector) -> Json:
    tools = [*write_shared(request, NAME, notes, _client_tools), *hosted_tools(request, NAME, notes)]
    if not tools:
        return {}
    body: Json = {"tools": tools}
    if (choice := request.tool_choice) is not None:
        body["tool_choice"] = choice.mode
        tools_by_name = {tool.name: tool for tool in reversed(request.tools)}  # the first of several with a name
        chosen_tools = [_chosen_tool(tools_by_name.get(name) or Tool(name)) for name in choice.names]
        if len(chosen_tools) == 1 and choice.mode == "required":
            body["tool_choice"] = chosen_tools[0]
        elif chosen_tools:
            body["tool_choice"] = {"type": "allowed_tools", "mode": choice.mode, "tools": chosen_tools}
    if request.parallel is not None:
        body["parallel_tool_calls"] = request.parallel
    return body


def _tool_object(tool: Tool, same_wire: bool, notes: FindingCollector) -> Json:
    if tool.kind == "search":
        description = {"description": tool.description} if tool.description else {}
        return {"type": TOOL_SEARCH, **description, "parameters": dict(tool.schema), **tool.extra}
    fields = {"name": tool.local or wire_tool_name(tool.name, notes)}
    fields |= {"description": tool.description} if tool.description else {}
    if tool.kind == "custom":
        format_field = {"format": dict(tool.grammar)} if tool.grammar else {}
        return {"type": "custom", **fields, **format_field, **tool.extra}
    # A missing `strict` means true on this wire, and false on all others.
    strict_field = {} if tool.strict is None and same_wire else {"strict": bool(tool.strict)}
    return {"type": "function", **fields, "parameters": complete_schema(tool.schema), **strict_field, **tool.extra}


def _chosen_tool(tool: Tool) -> Json:
    return {"type": TOOL_SEARCH} if tool.kind == "search" else {"type": tool.kind, **_name_fields(tool)}


def _name_fields(tool: Tool) -> Json:
    """Return the fields that name a tool in a tool choice and in a call."""
    name = {"name": tool.local or shorten_name(tool.name)}
    return name | ({"namespace": tool.namespace} if tool.namespace else {})


# ── settings ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _generation_fields(request: Request, notes: FindingCollector) -> Json:
    body: Json = {}
    if request.max_tokens is not None:
        body["max_output_tokens"] = request.max_tokens
    for key, value in request.sampling.items():
        if key in _SAMPLING_FIELDS:
            body[key] = value
        elif key not in ("n", "verbosity"):
            notes.report("field-dropped", f"{key} has no equivalent on {NAME}: dropped", key)
    if request.stop:
        notes.report("field-dropped", f"stop sequences have no equivalent on {NAME}: dropped", "stop")
    if text_config := _text_config(request):
        body["text"] = text_config
    if reasoning_config := _reasoning_config(request, notes):
        body["reasoning"] = reasoning_config
    return body


def _text_config(request: Request) -> Json:
    verbosity = {"verbosity": request.sampling["verbosity"]} if "verbosity" in request.sampling else {}
    if request.format is None:
        return verbosity
    if request.format.schema is None:
        return {"format": {"type": "json_object"}, **verbosity}
    return {"format": {"type": "json_schema", **write_schema(request.format)}, **verbosity}


def _reasoning_config(request: Request, notes: FindingCollector) -> Json:
    thinking = request.thinking
    effort = "none" if thinking.requested is False else thinking.as_effort()
    if thinking.requested and thinking.effort is None:
        note_inexact_effort(thinking, notes)
    reasoning = {"effort": effort} if effort else {}
    if request.wire == NAME:
        return reasoning | ({"summary": thinking.show} if thinking.show else {})
    if thinking.show != "summarized":
        drop_thinking_display(thinking, notes)
    return reasoning | ({"summary": "auto"} if thinking.requested and thinking.show != "omitted" else {})


def _metadata_fields(request: Request) -> Json:
    body: Json = {} if request.wire == NAME else dict(STATELESS_FIELDS)
    if request.stream:
        body["stream"] = True
    return body | write_user_fields(request)


# ── items ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class _ConversationWriter:
    """Writes the conversation as input items. One message may become several items."""

    def __init__(self, request: Request, profile: Profile, notes: FindingCollector) -> None:
        self._request = request
        self._profile = profile
        self._notes = notes
        self._tools = {tool.name: tool for tool in request.tools}
        calls = (piece for message in request.messages for piece in message.pieces if isinstance(piece, Call))
        self._custom_call_ids = {call.id for call in calls if self._custom_tool_text(call) is not None}

    def write(self) -> list[Json]:
        items: list[Json] = []
        for n, message in enumerate(self._request.messages):
            items += self._message_items(message, f"messages[{n}]")
        return items

    def _message_items(self, message: Message, path: str) -> list[Json]:
        drop_message_name(message, NAME, self._notes, path)
        items: list[Json] = []
        parts: list[Json] = []
        phase = ""
        for piece, mark in with_marks(message.pieces):
            drop_cache_mark(mark, self._notes, path)
            if isinstance(piece, Text) and piece.phase != phase:
                parts = self._flush_message(message, parts, items, phase)
                phase = piece.phase
            match piece:
                case Reasoning():
                    parts = self._flush_message(message, parts, items, phase)
                    items += self._reasoning_items(piece, path)
                case Call():
                    parts = self._flush_message(message, parts, items, phase)
                    items.append(self._call_item(piece))
                case Result():
                    items.append(self._result_item(piece, path))
                case Extra() if piece.wire == NAME and not str(piece.data.get("type")).startswith("input_"):
                    parts = self._flush_message(message, parts, items, phase)
                    items.append(piece.data)
                case _:
                    parts += self._content_parts(piece, message.role == "assistant", path)
        self._flush_message(message, parts, items, phase)
        return items

    def _flush_message(self, message: Message, parts: list[Json], items: list[Json], phase: str) -> list[Json]:
        """Append the collected parts as a message item, and return an empty list of parts.

        Text of the assistant is written as a string, because content parts would need the id of a reply.
        """
        role = self._profile.system_role if message.role == "system" else message.role
        content: Any = parts
        if role == "assistant" and all(part["type"] == "output_text" for part in parts):
            content = "".join(part["text"] for part in parts)
        if parts or not message.pieces:
            phase_field = {"phase": phase} if phase else {}
            items.append({"type": "message", "role": role, "content": content, **phase_field})
        return []

    def _content_parts(self, piece: Content, from_assistant: bool, path: str) -> list[Json]:
        match piece:
            case Text() if from_assistant:
                return [{"type": "output_text", "text": piece.text}]
            case Image() if not from_assistant:
                return [{"type": "input_image", "image_url": piece.url, "detail": piece.detail or "auto"}]
            case Document() if not from_assistant and (
                piece.url or (piece.file_id and self._request.file_store == FILE_STORE)
            ):
                field = "file_data" if piece.url.startswith("data:") else "file_url"
                file = {field: piece.url, "file_id": piece.file_id, "filename": piece.name}
                return [{"type": "input_file", **{key: value for key, value in file.items() if value}}]
            case Extra() if piece.wire == NAME:
                return [piece.data]
            case CacheMark():
                return []
        text = as_text(piece, self._notes, path)
        return [{"type": "output_text" if from_assistant else "input_text", "text": text}] if text is not None else []

    def _reasoning_items(self, reasoning: Reasoning, path: str) -> list[Json]:
        if reasoning.seal is not None and reasoning.seal.wire != NAME:
            report_foreign_signature(reasoning, self._notes, path)
            reasoning = Reasoning(reasoning.text)
        return reasoning_items(reasoning)

    def _call_item(self, call: Call) -> Json:
        tool = self._tools.get(call.name, Tool(call.name))
        if tool.kind == "search":
            arguments = read_json(call.arguments, dict[str, Any]) or {}
            return {"type": "tool_search_call", "call_id": call.id, "execution": "client", "arguments": arguments}
        fields = {"call_id": call.id, **_name_fields(tool)}
        if (text := self._custom_tool_text(call)) is not None:
            return {"type": "custom_tool_call", **fields, "input": text}
        return {"type": "function_call", **fields, "arguments": call.arguments or "{}"}

    def _custom_tool_text(self, call: Call) -> str | None:
        """Return the input text of a custom tool call, or None for another tool or if there is no such text."""
        tool = self._tools.get(call.name)
        arguments = read_json(call.arguments, dict[str, Any]) if tool is not None and tool.kind == "custom" else None
        text = (arguments or {}).get("input")
        return text if isinstance(text, str) else None

    def _result_item(self, result: Result, path: str) -> Json:
        match result.content:
            case [Extra(wire=wire, data={"type": "tool_search_output"} as item)] if wire == NAME:
                return {**item, "call_id": result.id}
        item_type = "custom_tool_call_output" if result.id in self._custom_call_ids else "function_call_output"
        if result.error:
            self._notes.report("error-as-text", "a failed tool result has no error flag here: marked in its text", path)
        content = [piece for piece in mark_error(result) if not isinstance(piece, CacheMark)]
        parts = [part for piece in content for part in self._content_parts(piece, False, path)]
        output: Any = parts
        if all(part["type"] == "input_text" for part in parts) and len(parts) <= 1:
            output = parts[0]["text"] if parts else ""
        return {"type": item_type, "call_id": result.id, "output": output}
