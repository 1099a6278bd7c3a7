"""Events → chunks of a chat completion stream.

Where the upstream speaks this wire too, each frame is made *like* the chunk that its events came from, so that ids,
model, fingerprints and everything that we do not know stay as the upstream sent them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from interlingua import events as ev
from interlingua.common.coerce import as_dict, as_list
from interlingua.core.options import Options
from interlingua.core.reasoning_signatures import seal
from interlingua.core.reply import Reasoning
from interlingua.wires.base import Json, Said
from interlingua.wires.openai_chat.chunk_reader import (
    DETAILS,
    NAME,
    OBJECT,
    STOP_REASONS,
    choice_index,
    detail_saying,
    detail_text,
    reasoning_text,
    unwrapped,
)
from interlingua.wires.openai_chat.custom_tools import as_input
from interlingua.wires.streaming.delta_template import More
from interlingua.wires.streaming.sse import encode

__all__ = ["FINISH", "Emitter", "call_entry", "envelope", "failure_object", "seal_details", "usage_object"]

FINISH = {reason: finish for finish, reason in STOP_REASONS.items()}
_LASTING = ("id", "object", "created", "model", "system_fingerprint", "service_tier", "provider")
"""What an upstream says of the whole reply, in each of its chunks."""
_STATED = {*_LASTING, "choices", "usage"}
_SPOKEN = {"role", "content", "refusal", "reasoning", "reasoning_content", "tool_calls", "function_call", DETAILS}
_REPLACED = {"index", "delta", "message", "finish_reason", "usage"}
_ANSWER = {"role", "content", "refusal", "tool_calls", "function_call"}
_PLAIN = b'data: %b,"choices":[{"index":%d,"delta":{%b},"finish_reason":null}]}\n\n'
_PLAIN_ARGS = b'"tool_calls":[{"index":%d,"function":{"arguments":%b}}]'
_MODEL = re.compile(rb'"model"\s*:\s*("[^"\\]*"|)')
SEALED = "reasoning.encrypted"
SEAL_FORMAT = "interlingua-v1"


class _Choice:
    """A choice that has begun: the form in which its upstream sends thinking."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._fields: tuple[str, ...] = ("reasoning_content",)
        self._detail: Json | None = None
        self._thought: list[str] = []
        self._seals = 0
        self._custom: set[int] = set()

    def learn(self, delta: Json) -> None:
        """Thinking goes out in the fields that it came in."""
        if reasoning_text(delta):
            self._fields = tuple(field for field in ("reasoning_content", "reasoning") if delta.get(field))
            self._detail = next((detail for detail in as_list(delta.get(DETAILS)) if detail_text(detail)), None)

    def plain(self, event: ev.Event) -> bytes:
        """The delta of an event, written; nothing if it is not as plain as most are."""
        if type(event) is ev.TextDelta:
            return b'"content":%b' % msgspec.json.encode(event.text)
        if type(event) is ev.ArgsDelta and event.index not in self._custom:
            return _PLAIN_ARGS % (event.index, msgspec.json.encode(event.text))
        if type(event) is ev.ReasoningDelta and self._detail is None and len(self._fields) == 1:
            self._thought.append(event.text)
            return b'"%b":%b' % (self._fields[0].encode(), msgspec.json.encode(event.text))
        return b""

    def more(self, event: ev.TextDelta | ev.ReasoningDelta) -> tuple[bytes, list[str] | None]:
        """The field of a text that is plain, and where it is kept; no field if it is not."""
        if type(event) is ev.TextDelta:
            return b"content", None
        plain = self._detail is None and len(self._fields) == 1
        return self._fields[0].encode() if plain else b"", self._thought

    def text(self, said: ev.TextDelta) -> Json:
        return {"content": said.text}

    def refusal(self, said: ev.RefusalDelta) -> Json:
        return {"refusal": said.text}

    def reasoning(self, said: ev.ReasoningDelta) -> Json:
        delta: Json = dict.fromkeys(self._fields, said.text)
        if self._detail is not None:
            delta[DETAILS] = [detail_saying(said.text, self._detail)]
        self._thought.append(said.text)
        return delta

    def start(self, start: ev.CallStart) -> Json:
        if "custom" in (start.extra or {}):
            self._custom.add(start.index)
        return {"tool_calls": [{"index": start.index, **call_entry(start, "")}]}

    def args(self, args: ev.ArgsDelta) -> Json | None:
        if args.index not in self._custom:
            return {"tool_calls": [{"index": args.index, "function": {"arguments": args.text}}]}
        text = as_input(args.text)
        return {"tool_calls": [{"index": args.index, "custom": {"input": text}}]} if text else None

    def seal(self, seal: ev.Seal) -> Json:
        """What vouches for the thinking since the last one."""
        text, self._thought = "".join(self._thought), []
        self._seals += 1
        return {DETAILS: seal_details(Reasoning(text, seal), self._seals - 1, self._options)}


class Emitter:
    """Writes one reply: `emit` what was made anew, `pass_on` what needs no change."""

    def __init__(self, options: Options | None = None) -> None:
        options = options or Options()
        self.findings: list[ev.Finding] = []
        self._served_as = options.served_as
        self._options = options
        self._choices: dict[int, _Choice] = {}
        self._envelope = envelope(options) | {"object": OBJECT}
        self._lasting: tuple[Any, ...] = ()  # what the upstream has said of it last
        self._head = msgspec.json.encode(self._envelope)[:-1]

    def pass_on(self, chunk: Json, raw: bytes) -> bytes | None:
        """The chunk as it came but for the model's name, behind a role for each choice that begins without one."""
        self._keep_envelope(chunk)
        if self._served_as not in ("", chunk.get("model")) and not (raw := self._as_served(chunk, raw)):
            return None
        silent = []
        for choice in chunk.get("choices") or ():
            if choice["index"] not in self._choices:
                self._choices[choice["index"]] = _Choice(self._options)
                if not choice["delta"].get("role"):
                    role = {"role": "assistant", "content": ""}
                    silent.append({"index": choice["index"], "delta": role, "finish_reason": None})
        return b"".join([*map(self._frame, silent), raw]) if silent else raw

    def _as_served(self, chunk: Json, raw: bytes) -> bytes:
        """The chunk with the name that the client knows the model by; nothing if that has no place beyond doubt. What
        looks like a field is one: inside of a text its quotes would be written otherwise."""
        found = _MODEL.findall(raw)
        if len(found) != 1 or found[0] != msgspec.json.encode(chunk.get("model")):
            return b""
        return _MODEL.sub(lambda _: b'"model":' + msgspec.json.encode(self._served_as), raw)

    def emit(self, said: Said, common: Iterable[ev.Event] = (), like: Json | None = None) -> bytes:
        """The frames for what was said of each choice. The first carries what the chunk said beside it, the last the
        usage: a chunk of its own, without choices, is only for clients that asked for one.
        """
        like = unwrapped(like) if like else {}
        beside: Json = {}
        if like:
            self._keep_envelope(like)
        if not common and (not like or _is_plain(like)) and (plain := self._plain(said)):
            return plain
        if like:
            beside = {key: value for key, value in like.items() if key not in _STATED and value is not None}
        rows: list[Json] = []
        usage = _last_usage(common)
        for index, events in said:
            rows += self._rows(index, events, _choice_of(like, index) if like else like)
            usage = _last_usage(events) or usage
        if usage is None and not beside:
            return b"".join([self._frame(row) for row in rows])
        frames: list[Json] = [{"choices": [row]} for row in rows]
        if not rows:
            frames = [{"choices": [{"index": index, "delta": {}, "finish_reason": None} for index, _ in said]}]
        frames[0] |= beside
        if usage is not None:
            frames[-1]["usage"] = usage_object(usage)
        return b"".join([encode(msgspec.json.encode({**self._envelope, **fields})) for fields in frames])

    def more(self, index: int, event: ev.TextDelta | ev.ReasoningDelta) -> Callable[[str], bytes] | None:
        choice = self._choices.get(index)
        field, kept = choice.more(event) if choice is not None else (b"", None)
        before, _, behind = (_PLAIN % (self._head, index, b'"%b":@@' % field)).rpartition(b"@@")
        return More(before, behind, kept).say if field else None

    def fail(self, failure: ev.Failure) -> bytes:
        """The frame that ends a stream badly. Nothing follows it."""
        return encode(msgspec.json.encode({"error": failure_object(failure)}))

    def done(self, raw: bytes = b"") -> bytes:
        """The frame that ends a stream well, as the upstream wrote it if it did."""
        return raw or encode(b"[DONE]")

    def _plain(self, said: Said) -> bytes:
        """The frame if there is one delta to write, of a choice that has begun, and nothing beside it: nearly always.
        Nothing if it is not so."""
        if len(said) != 1 or len(said[0][1]) != 1:
            return b""
        index, events = said[0]
        choice = self._choices.get(index)
        delta = choice.plain(events[0]) if choice is not None else b""
        return _PLAIN % (self._head, index, delta) if delta else b""

    def _frame(self, row: Json) -> bytes:
        """A frame with nothing but an entry of `choices` in the envelope, which seldom changes."""
        return b'data: %b,"choices":[%b]}\n\n' % (self._head, msgspec.json.encode(row))

    def _keep_envelope(self, chunk: Json) -> None:
        lasting = tuple(map(chunk.get, _LASTING))
        if lasting == self._lasting:  # as it is in nearly every chunk
            return
        self._lasting = lasting
        self._envelope |= {key: value for key, value in zip(_LASTING, lasting, strict=True) if value}
        self._envelope["object"] = OBJECT
        if self._served_as:
            self._envelope["model"] = self._served_as
        self._head = msgspec.json.encode(self._envelope)[:-1]

    def _rows(self, index: int, events: list[ev.Event], given: Json) -> list[Json]:
        """Each event as an entry of `choices`."""
        choice = self._choices.get(index)
        if choice is not None and not given:
            told = self._told(choice, events)
            return [{"index": index, "delta": said, "finish_reason": finish} for said, finish in told]
        delta = as_dict(given.get("delta"))
        first: Json = {} if choice is not None else {"role": "assistant", "content": ""}
        first |= _beside(delta)
        around = {key: value for key, value in given.items() if key not in _REPLACED}
        silent = {key: value for key, value in around.items() if value is None}
        if choice is None:
            choice = self._choices[index] = _Choice(self._options)
        choice.learn(delta)
        told = self._told(choice, events)
        if not told and (first or around != silent):
            told = [({}, None)]
        rows = []
        for said, finish in told:
            rows.append({"index": index, "delta": {**first, **said}, **around, "finish_reason": finish})
            first, around = {}, silent
        return rows

    def _told(self, choice: _Choice, events: list[ev.Event]) -> list[tuple[Json, str | None]]:
        """The delta and finish_reason of each event that has one of them."""
        told: list[tuple[Json, str | None]] = []
        for event in events:
            if type(event) is ev.Stop:
                told.append(({}, FINISH[event.reason or "stop"]))
            elif type(event) is ev.Begin:
                self._keep_envelope({"id": event.id, "created": event.created, "model": event.model})
            elif (write := _DELTAS.get(type(event))) and (delta := write(choice, event)):
                told.append((delta, None))
        return told


_DELTAS: dict[type, Callable[[_Choice, Any], Json | None]] = {
    ev.TextDelta: _Choice.text,
    ev.ReasoningDelta: _Choice.reasoning,
    ev.RefusalDelta: _Choice.refusal,
    ev.Seal: _Choice.seal,
    ev.CallStart: _Choice.start,
    ev.ArgsDelta: _Choice.args,
}


def envelope(options: Options) -> Json:
    """What is said of the whole reply where the upstream does not say it."""
    return {"id": "chatcmpl-interlingua", "object": "", "created": options.created, "model": options.served_as}


def seal_details(thinking: Reasoning, number: int, options: Options) -> list[Json]:
    """`reasoning_details` with what vouches for the thinking: as it came on this wire, else sealed. They are numbered:
    the official SDK gives up where one of several has no index."""
    if thinking.seal is None:
        return []
    if thinking.seal.wire == NAME:
        return list(thinking.seal.data[DETAILS])
    sealed = seal(thinking, thinking.seal.wire, options.seal_key, options.upstream)
    return [{"type": SEALED, "data": sealed, "format": SEAL_FORMAT, "index": number}]


def call_entry(start: ev.CallStart, arguments: str) -> Json:
    extra = dict(start.extra or {})
    if "custom" in extra:
        custom = {"name": start.name, "input": as_input(arguments), **extra.pop("custom")}
        return {"id": start.id, "type": "custom", "custom": custom, **extra}
    function = {"name": start.name, "arguments": arguments, **extra.pop("function", {})}
    return {"id": start.id, "type": "function", "function": function, **extra}


def failure_object(failure: ev.Failure) -> Json:
    return {"message": failure.message, "type": failure.type, "code": failure.code, **(failure.native or {})}


def usage_object(usage: ev.Usage) -> Json:
    if "prompt_tokens" in usage.native:
        return usage.native
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": usage.cache_written},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }


def _is_plain(chunk: Json) -> bool:
    """Whether a chunk says nothing that what is written for it would have to say, too."""
    choices = chunk.get("choices")
    if not isinstance(choices, list) or len(choices) != 1 or not chunk.keys() <= _STATED:
        return False
    choice = choices[0]
    if not isinstance(choice, dict) or not choice.keys() <= _REPLACED:
        return False
    delta = choice.get("delta")
    return isinstance(delta, dict) and delta.keys() <= _ANSWER


def _last_usage(events: Iterable[ev.Event]) -> ev.Usage | None:
    usage = None
    for event in events:
        if type(event) is ev.Usage:
            usage = event
    return usage


def _beside(delta: Json) -> Json:
    """What a delta says that no event tells."""
    return {key: value for key, value in delta.items() if key not in _SPOKEN and value is not None}


def _choice_of(chunk: Json, index: int) -> Json:
    for position, given in enumerate(as_list(chunk.get("choices"))):
        if isinstance(given, dict) and choice_index(given, position) == index:
            return given
    return {}
