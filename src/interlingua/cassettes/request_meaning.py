"""Meaning of a request: what it asks, as labelled facts that do not depend on its wire.

Two requests mean the same if their facts are equal. The labels are words, so that a difference can be shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from typing import Any

from interlingua.cassettes.match_rules import DEFAULT_RULES, MatchRules
from interlingua.cassettes.reply_meaning import MAX_DEPTH
from interlingua.common.jsontext.codec import is_deeper_than, read_json, write_json
from interlingua.core.findings import FindingCollector
from interlingua.core.options import Options
from interlingua.core.reply import Call, Reasoning, Text
from interlingua.core.request import CacheMark, Content, Document, Extra, Image, Message, Piece, Request, Result
from interlingua.core.tools import Tool
from interlingua.errors import BadInput
from interlingua.wires import get_wire
from interlingua.wires.base import Json
from interlingua.wires.requests.downgrades import as_text

__all__ = ["RequestMeaning", "check_depth", "read_request_meaning"]

_UNREAD_NAME = re.compile(r"[^.\[\]]+$")
_PATH_STEP = re.compile(r"\[(\d+)\]|([^.\[\]]+)")
_SCHEMA_NOISE = frozenset({"$schema", "$id"})
"""Keys of a JSON Schema that do not restrict values."""
_DEFAULTS: tuple[tuple[str, Any], ...] = (("type", "object"), ("properties", {}), ("required", []))
"""Keys that the schema of a tool without params may contain."""
_TOOL_EXTRAS_WITHOUT_MEANING = frozenset({"cache_control", "defer_loading", "eager_input_streaming"})

_FILE_KINDS: dict[type, str] = {Image: "image", Document: "document"}

Facts = dict[str, str]


class RequestMeaning:
    """The facts of one request.

    Args:
        wire: The wire of the request.
        conversation: Facts that every wire has: model, system prompt, messages, tools.
        settings: Facts that some wires lack, or that a client of another wire leaves out: `temperature`, `max_tokens`.
        specifics: Facts that only the request's own wire has.
    """

    def __init__(self, wire: str, conversation: Facts, settings: Facts, specifics: Facts) -> None:
        self.wire = wire
        self.conversation = conversation
        self.settings = settings
        self.specifics = specifics

    @cached_property
    def key(self) -> str:
        """Digest of the conversation: requests with another key never mean the same."""
        return sha256(write_json(list(self.conversation.items())).encode()).hexdigest()

    @cached_property
    def opening(self) -> str:
        """Digest of the beginning of the conversation, which all its turns share."""
        first = next((text for label, text in self.conversation.items() if label.startswith("message ")), "")
        return sha256(f"{self.conversation.get('model')}\n{first}".encode(errors="replace")).hexdigest()

    @property
    def facts(self) -> Facts:
        return {**self.conversation, **self.settings, **self.specifics}

    def fits(self, other: RequestMeaning) -> bool:
        """Return whether both requests mean the same.

        A setting of a request on another wire counts only if both have it: each wire has its own set of settings, and
        some are required on one wire and unusual on the other.
        """
        if self.conversation != other.conversation:
            return False
        if self.wire == other.wire:
            return self.settings == other.settings and self.specifics == other.specifics
        return all(other.settings.get(name, text) == text for name, text in self.settings.items())

    def differing_settings(self, other: RequestMeaning) -> int:
        """Return the number of settings that only one of two requests that fit has."""
        return len(self.settings.keys() ^ other.settings.keys())


def read_request_meaning(wire: str, body: Json, rules: MatchRules = DEFAULT_RULES) -> RequestMeaning:
    """Return the meaning of a request. Raises BadRequest if it cannot be read, BadInput if it is nested too deeply."""
    check_depth(body)
    request = get_wire(wire).read_request(body, Options())
    conversation: Facts = {}
    if rules.counts("model"):
        conversation["model"] = request.model
    conversation |= _ConversationFacts(request, rules).read()
    if rules.counts("tools"):
        conversation |= _tool_facts(request.tools, rules)
    conversation |= _choice_facts(request, rules)
    return RequestMeaning(wire, conversation, _settings_facts(request, rules), _specifics(request, body, rules))


def check_depth(body: Json) -> None:
    """Raise BadInput if a request is nested more deeply than recursive functions can read."""
    if is_deeper_than(body, MAX_DEPTH):
        problem = f"the request is nested more than {MAX_DEPTH} levels deep, so it cannot be recorded or replayed"
        raise BadInput(problem, "check the schemas of its tools")


# ── conversation ──────────────────────────────────────────────────────────────────────────────────────────────────


class _ConversationFacts:
    """Reads system prompt and messages. Calls are numbered, because their ids differ from run to run."""

    def __init__(self, request: Request, rules: MatchRules) -> None:
        self._request = request
        self._rules = rules
        self._calls = 0
        self._stray_results = 0
        self._open_calls: dict[str, list[tuple[int, str]]] = {}  # number and name of the unanswered calls of each id

    def read(self) -> Facts:
        facts: Facts = {}
        has_system = self._rules.counts("system")
        if has_system and (system := self._system_text(self._request.system)):
            facts["system prompt"] = system
        number = 0
        for role, name, pieces in _merged_messages(self._request.messages):
            if role == "system" and not has_system:
                continue
            author = f"{role} {name}" if name else role
            found = list(self._message_facts(role, pieces))
            if found:
                number += 1
                facts |= {f"message {number} ({author}){label}": text for label, text in found}
        return facts

    def _system_text(self, pieces: Sequence[Piece]) -> str:
        texts = (self._rules.clean_system(piece.text) for piece in pieces if isinstance(piece, Text))
        extras = (write_json(piece.data) for piece in pieces if isinstance(piece, Extra))
        return "\n\n".join(text for text in (*texts, *extras) if text)

    def _message_facts(self, role: str, pieces: list[Piece]) -> Iterator[tuple[str, str]]:
        """Yield the facts of a message: its results in the order of their calls, its text, its files, its calls."""
        results = [self._result_fact(piece) for piece in pieces if isinstance(piece, Result)]
        yield from ((label, text) for _, label, text in sorted(results))
        files = [piece for piece in pieces if isinstance(piece, Image | Document | Extra)]
        names = [f"{_FILE_KINDS.get(type(piece), 'content')} {number}" for number, piece in enumerate(files, 1)]
        if text := self._message_text(role, pieces, names):
            yield "", text
        yield from ((f", {name}", _file_text(piece, self._rules)) for name, piece in zip(names, files, strict=True))
        yield from (self._call_fact(piece) for piece in pieces if isinstance(piece, Call))

    def _message_text(self, role: str, pieces: list[Piece], file_names: list[str]) -> str:
        """Return the text of a message. In the user's, each file has its place."""
        if role == "system":
            return self._system_text(pieces)
        if role == "assistant":
            return self._rules.clean("".join(piece.text for piece in pieces if isinstance(piece, Text)))
        names = iter(file_names)
        texts = [
            piece.text if isinstance(piece, Text) else f"[{next(names)}]"
            for piece in pieces
            if not isinstance(piece, Result | Call)
        ]
        return self._rules.clean_user(_join(texts))

    def _call_fact(self, call: Call) -> tuple[str, str]:
        self._calls += 1
        self._open_calls.setdefault(call.id, []).append((self._calls, call.name))
        return f", call {self._calls} ({call.name})", self._rules.clean(_canonical(call.arguments))

    def _result_fact(self, result: Result) -> tuple[int, str, str]:
        if waiting := self._open_calls.get(result.id):
            number, name = waiting.pop(0)
            label = f", result of call {number} ({name})"
        else:
            self._stray_results += 1
            number, label = -self._stray_results, f", result {self._stray_results} without a call"
        texts = [piece.text for piece in result.content if isinstance(piece, Text)]
        files = [_file_text(p, self._rules) for p in result.content if isinstance(p, Image | Document | Extra)]
        text = "\n".join([*filter(None, texts), *files])
        return number, f"{label}, an error" if result.error else label, self._rules.clean_result(text)


def _merged_messages(messages: Sequence[Message]) -> Iterator[tuple[str, str, list[Piece]]]:
    """Yield the messages. Neighbours of one author are merged: wires split a turn in different ways."""
    author: tuple[str, str] | None = None
    merged: list[Piece] = []
    for message in messages:
        pieces = [piece for piece in message.pieces if not isinstance(piece, CacheMark | Reasoning)]
        if not pieces:
            continue
        if author is not None and author != (message.role, message.name):
            yield *author, merged
            merged = []
        author = message.role, message.name
        merged += pieces
    if author is not None:
        yield *author, merged


def _join(texts: Iterable[str]) -> str:
    """Join the texts of a message. How many parts it has, and whether blank lines separate them, has no meaning."""
    return "\n\n".join(text.strip("\n") for text in texts if text)


def _file_text(piece: Content, rules: MatchRules) -> str:
    match piece:
        case Image(url=url):
            return url
        case Document(text=text, url=url, file_id=file_id, name=name):
            return "\n".join(filter(None, (name, file_id, url, text)))
        case Extra(data=data):  # as another wire would carry it; `_specifics` has all of it
            return rules.clean(as_text(piece, FindingCollector(), "") or _write_sorted(_without_marks(data)))
    return ""


# ── tools and settings ────────────────────────────────────────────────────────────────────────────────────────────


def _tool_facts(tools: Sequence[Tool], rules: MatchRules) -> Facts:
    """Return the facts of the tools, in the order of their names. Deferred tools are not shown to the model yet."""
    facts: Facts = {}
    for tool in sorted((tool for tool in tools if not tool.deferred), key=lambda tool: tool.name):
        name = f"tool {tool.name}"
        while f"{name}, parameters" in facts:
            name += " (again)"
        facts[f"{name}, parameters"] = _write_sorted(_without_defaults(tool.schema))
        if tool.description and rules.counts("tool_descriptions"):
            facts[f"{name}, description"] = rules.clean_system(tool.description)
        if tool.kind != "function":
            facts[f"{name}, kind"] = tool.kind
        if tool.grammar:
            facts[f"{name}, grammar"] = _write_sorted(tool.grammar)
    return facts


def _choice_facts(request: Request, rules: MatchRules) -> Facts:
    """Return the facts about calls and format. The default of a wire and a field that is left out are the same."""
    facts: Facts = {}
    choice = request.tool_choice
    if rules.counts("tool_choice") and choice is not None and (choice.mode != "auto" or choice.names):
        facts["tool choice"] = " ".join((choice.mode, *sorted(choice.names)))
    if rules.counts("parallel_tool_calls") and request.parallel is False:
        facts["parallel tool calls"] = "false"
    if rules.counts("response_format") and request.format is not None:
        facts["response format"] = _write_sorted(request.format.schema or {})
    return facts


def _settings_facts(request: Request, rules: MatchRules) -> Facts:
    thinking, wanted = request.thinking, request.thinking.requested
    settings: dict[str, Any] = {
        "max_tokens": request.max_tokens,
        **request.sampling,
        "stop": request.stop or None,
        "thinking": wanted,
        "effort": thinking.as_effort() if wanted is not False else None,
    }
    return {
        name: _write_number(value) if isinstance(value, float) else write_json(value)
        for name, value in settings.items()
        if value is not None and rules.counts(name)
    }


def _specifics(request: Request, body: Json, rules: MatchRules) -> Facts:
    """Return what only the wire of the request has."""
    redactor = rules.redactor
    fields: dict[str, Any] = {name: value for name, value in request.extra.items() if rules.counts(name)}
    if request.thinking.budget is not None and rules.counts("thinking"):
        fields["thinking budget"] = request.thinking.budget
    if request.hosted and rules.counts("tools"):
        fields["server tools"] = [_without_marks(tool) for tool in request.hosted]
    for tool in request.tools if rules.counts("tools") else ():
        extra = {key: value for key, value in tool.extra.items() if key not in _TOOL_EXTRAS_WITHOUT_MEANING}
        fields |= {f"tool {tool.name}, {name}": value for name, value in extra.items()}
        fields |= {f"tool {tool.name}, strict": True} if tool.strict else {}
        fields |= {f"tool {tool.name}, deferred": True} if tool.deferred else {}
    pieces = [piece for message in request.messages for piece in message.pieces]
    pieces += [part for piece in pieces if isinstance(piece, Result) for part in piece.content]
    if extras := [piece.data for piece in pieces if isinstance(piece, Extra)]:
        fields["content"] = _without_marks(extras)
    for path in request.unread:
        name = _UNREAD_NAME.search(path)
        if name is not None and name[0] != "cache_control" and rules.counts(name[0]):
            fields[path] = _value_at(body, path)
    return {
        name: rules.clean(_write_sorted(redactor.redact_value({name: value})[name])) for name, value in fields.items()
    }


def _value_at(body: Any, path: str) -> Any:
    """Return the value at a path such as `messages[2].content[0].citations`; None if a name contains a dot."""
    for index, name in _PATH_STEP.findall(path):
        if index and isinstance(body, list) and int(index) < len(body):
            body = body[int(index)]
        else:
            body = body.get(name) if isinstance(body, dict) else None
    return body


# ── values ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _canonical(arguments: str) -> str:
    """Return the arguments of a call with sorted keys; unchanged if they are not a JSON object, or a very deep one."""
    value = read_json(arguments or "{}", dict[str, Any])
    return arguments if value is None or is_deeper_than(value, MAX_DEPTH) else _write_sorted(value)


def _write_sorted(value: Any) -> str:
    return write_json(_sorted(value))


def _sorted(value: Any) -> Any:
    match value:
        case Mapping():
            return {name: _sorted(value[name]) for name in sorted(value)}
        case list() | tuple():
            return [_sorted(item) for item in value]
        case float() if value.is_integer() and abs(value) < 2**53:
            return int(value)
    return value


def _write_number(value: float) -> str:
    return write_json(_sorted(value))


def _without_defaults(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a tool without what wires add to it or leave out."""
    return {
        name: value for name, value in schema.items() if name not in _SCHEMA_NOISE and (name, value) not in _DEFAULTS
    }


def _without_marks(value: Any) -> Any:
    """Return a JSON value without cache marks."""
    match value:
        case dict():
            return {name: _without_marks(item) for name, item in value.items() if name != "cache_control"}
        case list():
            return [_without_marks(item) for item in value]
    return value
