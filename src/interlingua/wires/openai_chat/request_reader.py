"""A chat completion request → the neutral Request."""

from __future__ import annotations

import msgspec

from interlingua.common.jsontext.codec import unwrapped, write_json
from interlingua.core.options import Options
from interlingua.core.reasoning_signatures import is_ours, open_value, past_thinking
from interlingua.core.reply import Call, Reasoning, Text
from interlingua.core.request import CacheMark, Content, Document, Extra, Image, Message, Piece, Request, Result, Role
from interlingua.core.request import ToolChoice as Choice
from interlingua.events import Seal
from interlingua.upstreams.adapt.tool_files import take_back
from interlingua.wires.base import Json
from interlingua.wires.openai_chat.chunk_reader import DETAILS, NAME, detail_text, reasoning_text, without_text
from interlingua.wires.openai_chat.request_thinking import read_thinking
from interlingua.wires.requests.downgrades import error_read
from interlingua.wires.requests.object_reader import Fields
from interlingua.wires.requests.openai_common import read_format
from interlingua.wires.requests.source_paths import Places
from interlingua.wires.requests.tool_reader import read_tools

__all__ = ["NUMBERS", "SETTINGS", "read_request"]

NUMBERS = ("temperature", "top_p", "top_k", "min_p", "seed", "frequency_penalty", "presence_penalty")
SETTINGS = ("repetition_penalty", "logit_bias", "logprobs", "top_logprobs", "verbosity")
_MODES = {"auto": Choice(), "required": Choice("required"), "any": Choice("required"), "none": Choice("none")}
"""`any` is how Mistral says it."""
_ROLES = ("system", "developer", "user", "assistant", "tool", "function")
_FUNCTION = {"id": "id", "name": "function.name", "arguments": "function.arguments"}
_CUSTOM = {"id": "id", "name": "custom.name", "arguments": "custom.input"}
_LEGACY = {"name": "name", "arguments": "arguments"}
"""What a call's fields are called, in each of its forms."""


def read_request(body: Json, options: Options) -> Request:
    fields = Fields(body)
    messages = _Messages(options.seal_key)
    for message in fields.listed("messages"):
        messages.read(message)
    tools, hosted = read_tools(fields)
    tools += read_tools(fields, "functions")[0]
    stream = bool(fields.flag("stream"))
    completion_tokens, tokens = fields.integer("max_completion_tokens"), fields.integer("max_tokens")
    sampling = {key: fields.number(key) for key in NUMBERS} | {key: fields.get(key) for key in SETTINGS}
    sampling["n"] = fields.integer("n")
    return Request(
        wire=NAME,
        model=fields.text("model"),
        system=messages.system,
        messages=messages.messages,
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
        extra=fields.rest(),
        unread=tuple(fields.unread()),
        places=messages.places.table(messages.system, messages.messages, system="messages[0]"),
    )


class _Messages:
    """The conversation as it is read: leading system messages are apart, and tool messages are results in one message
    of the user."""

    def __init__(self, seal_key: bytes) -> None:
        self.system: list[Content] = []
        self.messages: list[Message] = []
        self.places = Places()
        self._seal_key = seal_key
        self._functions: dict[str, str] = {}  # the id of the last call of each legacy function

    def read(self, message: Fields) -> None:
        role = message.text("role")
        match role:
            case "system" | "developer":
                content = self._read_content(message)
                if self.messages:
                    self._add("system", message, [*content])
                else:
                    self.system += content
            case "user":
                self._read_user(message)
            case "assistant":
                self._add("assistant", message, self._read_assistant(message), message.text("name", ""))
            case "tool":
                self._answer(message.text("tool_call_id"), message, "tool_call_id")
            case "function":
                name = message.text("name")
                self._answer(self._functions.get(name, name), message, "name")
            case _:
                message.refuse("role", f"should be one of {', '.join(_ROLES)}, not {role!r}")

    def _add(self, role: Role, message: Fields, pieces: list[Piece], name: str = "") -> None:
        self.messages.append(Message(role, self.places.put(pieces, message.path), name))

    def _read_user(self, message: Fields) -> None:
        content = self._read_content(message)
        results = self._results()
        before = [*results]
        left = take_back(results, content) if results else content
        if len(left) < len(content):
            for was, now in zip(before, results, strict=True):
                self.places.move(was, now)
            results += left  # the message is only there because of what has moved
        else:
            self._add("user", message, [*content], message.text("name", ""))

    def _results(self) -> list[Piece]:
        """The results that the last message is made of."""
        last = self.messages[-1] if self.messages else None
        if last is None or last.role != "user" or not all(isinstance(it, Result | CacheMark) for it in last.pieces):
            return []
        return last.pieces

    def _answer(self, id: str, message: Fields, id_field: str) -> None:
        message.pass_over("name")
        content, error = error_read(self._read_content(message))
        marks = [piece for piece in content if isinstance(piece, CacheMark)]
        content = [piece for piece in content if not isinstance(piece, CacheMark)]
        results = self._results()
        if not results:
            self._add("user", message, results := [])
        results += [self.places.put(Result(id, content, error), message.path, {"id": id_field}), *marks[-1:]]

    def _read_assistant(self, message: Fields) -> list[Piece]:
        pieces = [*self._read_reasoning(message), *self._read_content(message)]
        if refusal := message.text("refusal", ""):
            pieces.append(Text(refusal))
        pieces += [self._read_call(call) for call in message.objects("tool_calls")]
        if message.get("function_call"):
            call = message.inner("function_call")
            name = call.text("name")
            self._functions[name] = id = f"{name}_{len(self.messages)}"
            pieces.append(self.places.put(Call(id, name, _arguments(call)), call.path, _LEGACY))
        return pieces

    def _read_call(self, given: Fields) -> Call:
        given.pass_over("type", "index")
        if given.object.get("custom"):
            custom = given.inner("custom")
            call = Call(given.text("id"), custom.text("name"), write_json({"input": custom.text("input", "")}))
            return self.places.put(call, given.path, _CUSTOM)
        function = given.inner("function")
        call = Call(given.text("id"), function.text("name"), _arguments(function))
        return self.places.put(call, given.path, _FUNCTION)

    def _read_content(self, message: Fields) -> list[Content]:
        given = message.said("content")
        if isinstance(given, str):
            return [self.places.put(Text(given), message.at("content"))]
        content: list[Content] = []
        for part in given:
            content.append(self.places.put(_read_part(part), part.path))
            if mark := part.mapping("cache_control"):
                content.append(CacheMark(mark))
        return content

    def _read_reasoning(self, message: Fields) -> list[Piece]:
        """Thinking that we have sealed stands for what was shown of it. All else is as it is shown, vouched for by what
        upstreams of this wire had sent behind it."""
        message.pass_over("reasoning_content", "reasoning")
        parts: list[Reasoning] = []
        text = ""
        for detail in message.items(DETAILS):
            text += detail_text(detail)
            silent = without_text(detail)
            if silent is None:
                continue
            native, opaque = Seal(NAME, {DETAILS: [silent]}), str(silent.get("signature") or silent.get("data"))
            if is_ours(opaque) and open_value(opaque, NAME, self._seal_key) is None:
                parts.append(past_thinking("", opaque, None, self._seal_key))
            else:
                parts.append(past_thinking(text, opaque, native, self._seal_key))
                text = ""
        told = "".join(part.text for part in parts)
        shown = reasoning_text(message.object) or text
        if parts and not told:
            parts[-1] = msgspec.structs.replace(parts[-1], text=shown)
        elif rest := shown.removeprefix(told):
            parts.append(Reasoning(rest))
        return list(parts)


def _arguments(function: Fields) -> str:
    """JSON text. Some clients send the object itself."""
    given = function.get("arguments")
    return unwrapped(given) if isinstance(given, str) else write_json(given) if given is not None else ""


# ── content ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _read_part(part: Fields) -> Content:
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
    return Extra(NAME, {key: value for key, value in part.whole().items() if key != "cache_control"})


def _read_image(part: Fields) -> Image:
    if isinstance(url := part.get("image_url"), str):
        return Image(url, part.text("detail", ""))
    image = part.inner("image_url")
    return Image(image.text("url"), image.text("detail", ""))


# ── settings ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _read_stop(fields: Fields) -> list[str]:
    return [stop] if isinstance(stop := fields.get("stop"), str) else fields.texts("stop")


def _read_choice(fields: Fields) -> Choice | None:
    given = fields.get("tool_choice")
    if given is None:
        given = fields.get("function_call")
        if isinstance(given, dict):
            return Choice("required", (fields.inner("function_call").text("name"),))
    if isinstance(given, dict):
        return _read_object_choice(fields.inner("tool_choice"))
    if given is None:
        return None
    if not isinstance(given, str) or given not in _MODES:
        fields.refuse("tool_choice", f"should be 'auto', 'required', 'none' or an object, not {given!r:.40}")
    return _MODES[given]


def _read_object_choice(choice: Fields) -> Choice:
    kind = choice.text("type", "function")
    if kind == "allowed_tools":
        allowed = choice.inner("allowed_tools")
        names = (tool.inner(tool.text("type", "function")).text("name") for tool in allowed.objects("tools"))
        return Choice("required" if allowed.one_of("mode", "auto", "required") == "required" else "auto", tuple(names))
    if kind not in ("function", "custom"):
        choice.refuse("type", f"should be 'function', 'custom' or 'allowed_tools', not {kind!r}")
    return Choice("required", (choice.inner(kind).text("name"),))
