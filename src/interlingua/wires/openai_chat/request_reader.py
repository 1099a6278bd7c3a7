"""Reader for chat completion requests: body → neutral Request."""

from __future__ import annotations

import msgspec

from interlingua.common.jsontext.codec import unwrap_invalid_arguments, write_json
from interlingua.core.options import Options
from interlingua.core.reasoning_signatures import (
    CALL_SIGNATURE,
    call_seal,
    is_envelope,
    read_past_reasoning,
    read_value_envelope,
)
from interlingua.core.reply import Call, Reasoning, Text
from interlingua.core.request import CacheMark, Content, Document, Extra, Image, Message, Piece, Request, Result, Role
from interlingua.core.request import ToolChoice as Choice
from interlingua.events import Seal
from interlingua.upstreams.adapt.tool_files import OpenResults
from interlingua.wires.base import Json
from interlingua.wires.openai_chat.chunk_reader import (
    NAME,
    REASONING_DETAILS,
    detail_text,
    detail_without_text,
    reasoning_text,
)
from interlingua.wires.openai_chat.request_thinking import read_thinking
from interlingua.wires.requests.downgrades import unmark_error
from interlingua.wires.requests.object_reader import ObjectReader
from interlingua.wires.requests.openai_common import FILE_STORE, read_format
from interlingua.wires.requests.source_paths import SourcePaths
from interlingua.wires.requests.tool_reader import read_tools

__all__ = [
    "NUMERIC_SAMPLING_FIELDS",
    "OTHER_SAMPLING_FIELDS",
    "is_from_model",
    "is_system_prompt",
    "read_request",
    "read_turns",
]

NUMERIC_SAMPLING_FIELDS = ("temperature", "top_p", "top_k", "min_p", "seed", "frequency_penalty", "presence_penalty")
OTHER_SAMPLING_FIELDS = ("repetition_penalty", "logit_bias", "logprobs", "top_logprobs", "verbosity")
_TOOL_CHOICE_MODES = {
    "auto": Choice(),
    "required": Choice("required"),
    "any": Choice("required"),
    "none": Choice("none"),
}
"""`any` is Mistral's name for `required`."""
_SYSTEM_ROLES = ("system", "developer")
_ROLES = ("system", "developer", "user", "assistant", "tool", "function")
_FUNCTION_CALL_FIELDS = {"id": "id", "name": "function.name", "arguments": "function.arguments"}
_CUSTOM_CALL_FIELDS = {"id": "id", "name": "custom.name", "arguments": "custom.input"}
_LEGACY_CALL_FIELDS = {"name": "name", "arguments": "arguments"}
"""The names of a call's fields, in each of its forms."""


def read_request(body: Json, options: Options) -> Request:
    fields = ObjectReader(body)
    reader = _MessageReader(options.seal_key)
    for message in fields.required_objects("messages"):
        reader.read(message)
    tools, hosted = read_tools(fields)
    if functions := read_tools(fields, "functions")[0]:
        tools = [*tools, *functions]
    stream = bool(fields.flag("stream"))
    completion_tokens, tokens = fields.integer("max_completion_tokens"), fields.integer("max_tokens")
    sampling = {key: fields.number(key) for key in NUMERIC_SAMPLING_FIELDS} | {
        key: fields.get(key) for key in OTHER_SAMPLING_FIELDS
    }
    sampling["n"] = fields.integer("n")
    return Request(
        wire=NAME,
        file_store=FILE_STORE,
        model=fields.text("model"),
        system=reader.system,
        messages=reader.messages,
        tools=tools,
        hosted=hosted,
        tool_choice=_read_choice(fields),
        parallel=fields.flag("parallel_tool_calls"),
        max_tokens=tokens if completion_tokens is None else completion_tokens,
        sampling={key: value for key, value in sampling.items() if value is not None},
        stop=_read_stop(fields),
        format=read_format(fields.inner("response_format"), "json_schema"),
        thinking=read_thinking(fields),
        stream=stream,
        usage_wanted=not stream or bool(fields.inner("stream_options").flag("include_usage")),
        user=fields.text("user", ""),
        metadata=fields.mapping("metadata"),
        cache_key=fields.text("prompt_cache_key", ""),
        extra=fields.unread_fields(),
        unread=tuple(fields.unread_paths()),
        source_paths=reader.source_paths.request_paths(reader.system, reader.messages, system="messages[0]"),
    )


def read_turns(messages: list[Json], options: Options, first: int) -> Request:
    """Read some turns of a conversation. See `TurnCodec`."""
    reader = _MessageReader(options.seal_key)
    objects = [ObjectReader(message, f"messages[{n}]") for n, message in enumerate(messages, first)]
    for message in objects:
        reader.read(message)
    return Request(
        wire=NAME,
        file_store=FILE_STORE,
        model="",
        messages=reader.messages,
        unread=tuple(path for message in objects for path in message.unread_paths()),
        source_paths=reader.source_paths.request_paths((), reader.messages),
    )


def is_from_model(message: Json) -> bool | None:
    """Return whether the model wrote this message; None for legacy calls, whose ids depend on earlier messages."""
    role = message.get("role")
    if role not in _ROLES or role == "function" or "function_call" in message:
        return None
    return bool(role == "assistant")


def is_system_prompt(message: Json) -> bool:
    return message.get("role") in _SYSTEM_ROLES


class _MessageReader:
    """Reader for the messages.

    Leading system messages become `system`. Consecutive tool messages become results in one user message.
    """

    def __init__(self, seal_key: bytes) -> None:
        self.system: list[Content] = []
        self.messages: list[Message] = []
        self.source_paths = SourcePaths()
        self._seal_key = seal_key
        self._legacy_call_ids: dict[str, str] = {}  # name of a legacy function → id of its last call
        self._open_results: OpenResults | None = None  # of the last message, if it holds only results

    def read(self, message: ObjectReader) -> None:
        role = message.text("role")
        match role:
            case "system" | "developer":
                content = self._read_content(message)
                if self.messages:
                    self._append_message("system", message, [*content])
                else:
                    self.system += content
            case "user":
                self._read_user(message)
            case "assistant":
                self._append_message("assistant", message, self._read_assistant(message), message.text("name", ""))
            case "tool":
                self._read_result(message.text("tool_call_id"), message, "tool_call_id")
            case "function":
                name = message.text("name")
                self._read_result(self._legacy_call_ids.get(name, name), message, "name")
            case _:
                message.reject("role", f"should be one of {', '.join(_ROLES)}, not {role!r}")

    def _append_message(self, role: Role, message: ObjectReader, pieces: list[Piece], name: str = "") -> None:
        self.messages.append(Message(role, self.source_paths.record(pieces, message.path), name))
        self._open_results = None

    def _read_user(self, message: ObjectReader) -> None:
        content, results = self._read_content(message), self._open_results
        unmoved = content if results is None else results.restore_files(content)
        if results is None or len(unmoved) == len(content):
            self._append_message("user", message, [*content], message.text("name", ""))
            return
        results.pieces += unmoved  # this message exists only to carry the files
        if not all(isinstance(piece, CacheMark) for piece in unmoved):
            self._open_results = None

    def _read_result(self, id: str, message: ObjectReader, id_field: str) -> None:
        message.ignore("name")
        content, error = unmark_error(self._read_content(message))
        marks = [piece for piece in content if isinstance(piece, CacheMark)]
        content = [piece for piece in content if not isinstance(piece, CacheMark)]
        if (results := self._open_results) is None:
            pieces: list[Piece] = []
            self._append_message("user", message, pieces)
            results = self._open_results = OpenResults(pieces)
        results.add(self.source_paths.record(Result(id, content, error), message.path, {"id": id_field}), marks[-1:])

    def _read_assistant(self, message: ObjectReader) -> list[Piece]:
        pieces = [*self._read_reasoning(message), *self._read_content(message)]
        if refusal := message.text("refusal", ""):
            pieces.append(Text(refusal))
        for call in message.objects("tool_calls"):
            pieces += [*self._read_call_signature(call), self._read_call(call)]
        if message.get("function_call"):
            call = message.inner("function_call")
            name = call.text("name")
            self._legacy_call_ids[name] = id = f"{name}_{len(self.messages)}"
            pieces.append(
                self.source_paths.record(Call(id, name, _read_arguments(call)), call.path, _LEGACY_CALL_FIELDS)
            )
        return pieces

    def _read_call_signature(self, raw_call: ObjectReader) -> list[Reasoning]:
        """Return the signature of the thinking before a call, which an upstream has sent with the call."""
        native = call_seal(raw_call.object)
        if native is None:
            return []
        signature = raw_call.inner("extra_content").inner("google").text(CALL_SIGNATURE)
        return [read_past_reasoning("", signature, native, self._seal_key)]

    def _read_call(self, raw_call: ObjectReader) -> Call:
        raw_call.ignore("type", "index")
        if raw_call.object.get("custom"):
            custom = raw_call.inner("custom")
            call = Call(raw_call.text("id"), custom.text("name"), write_json({"input": custom.text("input", "")}))
            return self.source_paths.record(call, raw_call.path, _CUSTOM_CALL_FIELDS)
        function = raw_call.inner("function")
        call = Call(raw_call.text("id"), function.text("name"), _read_arguments(function))
        return self.source_paths.record(call, raw_call.path, _FUNCTION_CALL_FIELDS)

    def _read_content(self, message: ObjectReader) -> list[Content]:
        raw_content = message.content("content")
        if isinstance(raw_content, str):
            return [self.source_paths.record(Text(raw_content), message.path_of("content"))]
        content: list[Content] = []
        for part in raw_content:
            content.append(self.source_paths.record(_read_part(part), part.path))
            if mark := part.mapping("cache_control"):
                content.append(CacheMark(mark))
        return content

    def _read_reasoning(self, message: ObjectReader) -> list[Piece]:
        """Return past reasoning.

        An envelope replaces the visible text. Other reasoning keeps its visible text, with the signatures that an
        upstream of this wire sent after it.
        """
        message.ignore("reasoning_content", "reasoning")
        parts: list[Reasoning] = []
        text = ""
        for detail in message.items(REASONING_DETAILS):
            text += detail_text(detail)
            stripped = detail_without_text(detail)
            if stripped is None:
                continue
            native, opaque = (
                Seal(NAME, {REASONING_DETAILS: [stripped]}),
                str(stripped.get("signature") or stripped.get("data")),
            )
            if is_envelope(opaque) and read_value_envelope(opaque, NAME, self._seal_key) is None:
                parts.append(read_past_reasoning("", opaque, None, self._seal_key))
            else:
                parts.append(read_past_reasoning(text, opaque, native, self._seal_key))
                text = ""
        signed_text = "".join(part.text for part in parts)
        visible = reasoning_text(message.object) or text
        if parts and not signed_text:
            parts[-1] = msgspec.structs.replace(parts[-1], text=visible)
        elif remainder := visible.removeprefix(signed_text):
            parts.append(Reasoning(remainder))
        return list(parts)


def _read_arguments(function: ObjectReader) -> str:
    """Return the arguments as JSON text. Some clients send the object itself."""
    value = function.get("arguments")
    return unwrap_invalid_arguments(value) if isinstance(value, str) else write_json(value) if value is not None else ""


# ── content ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _read_part(part: ObjectReader) -> Content:
    match part.text("type", "text"):
        case "text":
            return Text(part.text("text"))
        case "refusal":
            return Text(part.text("refusal"))
        case "image_url":
            return _read_image(part)
        case "file":
            file = part.inner("file")
            return Document(file.text("file_data", ""), file.text("file_id", ""), name=file.text("filename", ""))
    return Extra(NAME, {key: value for key, value in part.raw().items() if key != "cache_control"})


def _read_image(part: ObjectReader) -> Image:
    if isinstance(url := part.get("image_url"), str):
        return Image(url, part.text("detail", ""))
    image = part.inner("image_url")
    return Image(image.text("url"), image.text("detail", ""))


# ── settings ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _read_stop(fields: ObjectReader) -> list[str]:
    return [stop] if isinstance(stop := fields.get("stop"), str) else fields.texts("stop")


def _read_choice(fields: ObjectReader) -> Choice | None:
    value = fields.get("tool_choice")
    if value is None:
        value = fields.get("function_call")
        if isinstance(value, dict):
            return Choice("required", (fields.inner("function_call").text("name"),))
    if isinstance(value, dict):
        return _read_object_choice(fields.inner("tool_choice"))
    if value is None:
        return None
    if not isinstance(value, str) or value not in _TOOL_CHOICE_MODES:
        fields.reject("tool_choice", f"should be 'auto', 'required', 'none' or an object, not {value!r:.40}")
    return _TOOL_CHOICE_MODES[value]


def _read_object_choice(choice: ObjectReader) -> Choice:
    choice_type = choice.text("type", "function")
    if choice_type == "allowed_tools":
        allowed = choice.inner("allowed_tools")
        names = (tool.inner(tool.text("type", "function")).text("name") for tool in allowed.objects("tools"))
        return Choice("required" if allowed.one_of("mode", "auto", "required") == "required" else "auto", tuple(names))
    if choice_type not in ("function", "custom"):
        choice.reject("type", f"should be 'function', 'custom' or 'allowed_tools', not {choice_type!r}")
    return Choice("required", (choice.inner(choice_type).text("name"),))
