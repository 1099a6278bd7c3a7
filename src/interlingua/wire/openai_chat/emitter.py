"""Events → chunks of a chat completion stream.

Where the upstream speaks this wire too, each frame is made *like* the chunk that its events came from, so that ids,
model, fingerprints and everything that we do not know stay as the upstream sent them.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from interlingua import events as ev
from interlingua.options import Options
from interlingua.reply import Reasoning
from interlingua.seals import seal
from interlingua.wire.loose import as_dict, as_list
from interlingua.wire.openai_chat.custom import as_input
from interlingua.wire.openai_chat.reader import (
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
from interlingua.wire.sse import encode
from interlingua.wire.wire import Json, Said

__all__ = ["FINISH", "Emitter", "call_entry", "envelope", "failure_object", "seal_details", "usage_object"]

FINISH = {reason: finish for finish, reason in STOP_REASONS.items()}
_LASTING = ("id", "object", "created", "model", "system_fingerprint", "service_tier", "provider")
"""What an upstream says of the whole reply, in each of its chunks."""
_SPOKEN = ("role", "content", "refusal", "reasoning", "reasoning_content", "tool_calls", "function_call")
_REPLACED = ("index", "delta", "message", "finish_reason", "usage")
SEALED = "reasoning.encrypted"
SEAL_FORMAT = "interlingua-v1"


class _Choice:
    """A choice that has begun: the form in which its upstream sends thinking."""

    def __init__(self) -> None:
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

    def reasoning(self, text: str) -> Json:
        delta: Json = dict.fromkeys(self._fields, text)
        if self._detail is not None:
            delta[DETAILS] = [detail_saying(text, self._detail)]
        self._thought.append(text)
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

    def seal(self, seal: ev.Seal, options: Options) -> Json:
        """What vouches for the thinking since the last one."""
        text, self._thought = "".join(self._thought), []
        self._seals += 1
        return {DETAILS: seal_details(Reasoning(text, seal), self._seals - 1, options)}


class Emitter:
    """Writes one reply: `emit` what was made anew, `pass_on` what needs no change."""

    def __init__(self, options: Options | None = None) -> None:
        options = options or Options()
        self.findings: list[ev.Finding] = []
        self._served_as = options.served_as
        self._options = options
        self._choices: dict[int, _Choice] = {}
        self._envelope = envelope(options) | {"object": OBJECT}

    def pass_on(self, chunk: Json, raw: bytes) -> bytes | None:
        """The chunk as it came, behind a role for each choice that begins without one."""
        self._keep_envelope(chunk)
        if self._served_as not in ("", chunk.get("model")):
            return None
        silent = []
        for choice in chunk.get("choices") or ():
            if choice["index"] not in self._choices:
                self._choices[choice["index"]] = _Choice()
                if not choice["delta"].get("role"):
                    silent.append((choice["index"], {"role": "assistant", "content": ""}))
        rows = [{"index": index, "delta": delta, "finish_reason": None} for index, delta in silent]
        roles = [encode(msgspec.json.encode({**self._envelope, "choices": [row]})) for row in rows]
        return b"".join(roles) + raw

    def emit(self, said: Said, common: Iterable[ev.Event] = (), like: Json | None = None) -> bytes:
        """The frames for what was said of each choice. The first carries what the chunk said beside it, the last the
        usage: a chunk of its own, without choices, is only for clients that asked for one.
        """
        like = unwrapped(like or {})
        self._keep_envelope(like)
        rows = [[row] for index, events in said for row in self._rows(index, events, _choice_of(like, index))]
        beside = {key: value for key, value in like.items() if key not in (*_LASTING, "choices", "usage")}
        beside = {key: value for key, value in beside.items() if value is not None}
        told = (*common, *(event for _, events in said for event in events))
        usages = [usage_object(event) for event in told if isinstance(event, ev.Usage)]
        if not rows and (beside or usages):
            rows = [[{"index": index, "delta": {}, "finish_reason": None} for index, _ in said]]
        frames = [{**self._envelope, "choices": row} for row in rows]
        if beside:
            frames[0] |= beside
        if usages:
            frames[-1]["usage"] = usages[-1]
        return b"".join(encode(msgspec.json.encode(frame)) for frame in frames)

    def fail(self, failure: ev.Failure) -> bytes:
        """The frame that ends a stream badly. Nothing follows it."""
        return encode(msgspec.json.encode({"error": failure_object(failure)}))

    def done(self, raw: bytes = b"") -> bytes:
        """The frame that ends a stream well, as the upstream wrote it if it did."""
        return raw or encode(b"[DONE]")

    def _keep_envelope(self, chunk: Json) -> None:
        self._envelope |= {key: chunk[key] for key in _LASTING if chunk.get(key)}
        self._envelope["object"] = OBJECT
        if self._served_as:
            self._envelope["model"] = self._served_as

    def _rows(self, index: int, events: list[ev.Event], given: Json) -> list[Json]:
        """Each event as an entry of `choices`."""
        delta = as_dict(given.get("delta"))
        first: Json = {} if index in self._choices else {"role": "assistant", "content": ""}
        first |= _beside(delta)
        around = {key: value for key, value in given.items() if key not in _REPLACED}
        silent = {key: value for key, value in around.items() if value is None}
        choice = self._choices.setdefault(index, _Choice())
        choice.learn(delta)
        told = [entry for event in events if (entry := self._write(choice, event)) is not None]
        if not told and (first or around != silent):
            told = [({}, None)]
        rows = []
        for said, finish in told:
            rows.append({"index": index, "delta": {**first, **said}, **around, "finish_reason": finish})
            first, around = {}, silent
        return rows

    def _write(self, choice: _Choice, event: ev.Event) -> tuple[Json, str | None] | None:
        """An event's delta and finish_reason; None for one that has neither."""
        match event:
            case ev.TextDelta():
                return {"content": event.text}, None
            case ev.ReasoningDelta():
                return choice.reasoning(event.text), None
            case ev.Seal():
                return choice.seal(event, self._options), None
            case ev.RefusalDelta():
                return {"refusal": event.text}, None
            case ev.CallStart():
                return choice.start(event), None
            case ev.ArgsDelta():
                return (args, None) if (args := choice.args(event)) else None
            case ev.Stop():
                return {}, FINISH[event.reason or "stop"]
            case ev.Begin():
                self._keep_envelope({"id": event.id, "created": event.created, "model": event.model})
        return None


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


def _beside(delta: Json) -> Json:
    """What a delta says that no event tells."""
    return {key: value for key, value in delta.items() if key not in (*_SPOKEN, DETAILS) and value is not None}


def _choice_of(chunk: Json, index: int) -> Json:
    choices = enumerate(as_list(chunk.get("choices")))
    return next((it for n, it in choices if isinstance(it, dict) and choice_index(it, n) == index), {})
