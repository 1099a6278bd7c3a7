"""Neutral events → the events of a response's stream.

What an upstream of this wire sends passes as it came, and is followed, so that the rest can be told anew from any event
on: then items, ids and numbers go on from where the upstream's left off.

- A reply that the limit has cut ends with `response.incomplete`: that is the wire's word for it. Codex takes it
  as a failed stream and asks again; `response.completed` would make it act on half an answer.
- A call that was cut is not `done` where we tell it: agents run every call that is. It stands as incomplete in the last
  event. What an upstream of this wire says of a cut call itself passes as it came.
- Thinking goes out as a summary, which is what Codex shows, and SDKs and agents hand on.
- A refusal is a message of its own: Codex cannot read messages that hold one, and would lose the text beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any

from interlingua import events as ev
from interlingua.common.coerce import as_dict
from interlingua.common.jsontext.codec import write_json
from interlingua.core.options import Options
from interlingua.core.reasoning_signatures import seal
from interlingua.core.reply import Reasoning
from interlingua.core.tools import Offer
from interlingua.wires.base import Json, Said
from interlingua.wires.openai_responses.event_reader import REASONS
from interlingua.wires.openai_responses.event_types import (
    ARGUMENTS,
    COMPLETED,
    CREATED,
    ENDS,
    FAILED,
    IN_PROGRESS,
    INCOMPLETE,
    INPUT,
    NAME,
    REFUSAL,
    SUMMARY,
    TEXT,
    THOUGHT,
    Word,
)
from interlingua.wires.openai_responses.output_items__items import Frame, Item
from interlingua.wires.openai_responses.output_items__output import Output
from interlingua.wires.openai_responses.response_object import error_object, head, made_id, usage_object
from interlingua.wires.streaming.sse import encode, named

__all__ = ["Emitter"]

UNSEALED = "openai-chat"
"""Where thinking comes from that nothing vouches for."""
_INCOMPLETE = {reason: word for word, reason in REASONS.items()}
_OF_A_MOMENT = ("status", "output", "usage", "error", "incomplete_details", "completed_at")
"""What a response says of itself that changes on the way."""


class _Mode(Enum):
    FRESH = "nothing has been told of the response"
    CREATED = "the upstream has told that it is created, and no more"
    PASSING = "all that was told is the upstream's"
    TELLING = "we tell it ourselves"


_PASSING, _TELLING = _Mode.PASSING, _Mode.TELLING  # asked for with every token, and an Enum is slow to answer


class _Upstream(Enum):
    OTHER = "speaks another wire: its thinking needs a seal of ours to come back"
    SAME = "speaks this wire: it says itself what the response is, and what vouches for its thinking"


_UNTOLD = {_Mode.FRESH: (CREATED, IN_PROGRESS), _Mode.CREATED: (IN_PROGRESS,)}
"""What begins a response, as far as it has not been told."""


class Emitter:
    """Writes one response. `findings` is what was odd about what it had to write."""

    def __init__(self, options: Options | None = None, offer: Offer | None = None) -> None:
        self._options = options or Options()
        self._offer = offer or Offer()
        self.findings: list[ev.Finding] = []
        self._mode = _Mode.FRESH
        self._head = head(self._options)
        self._upstream = _Upstream.OTHER
        self._number = 0
        self._output = Output(self._vouch)
        self._last: Json | None = None  # the upstream's last event
        self._stop = ev.Stop(None)
        self._usage = ev.Usage(input=self._options.input_tokens)
        self._sent: list[bytes] = []

    def pass_on(self, chunk: Json, raw: bytes) -> bytes | None:
        """The event as it came; None once we tell the response ourselves."""
        if self._mode is _TELLING:
            return None
        if self._mode is _PASSING or self._mode is _Mode.CREATED:
            self._mode = _PASSING
        elif chunk.get("type") == CREATED:
            self._mode = _Mode.CREATED
        self._know(chunk)
        if isinstance(number := chunk.get("sequence_number"), int):
            self._number = number + 1
        self._output.follow(chunk)
        return self._as_served(chunk, raw)

    def emit(self, said: Said, common: Iterable[ev.Event] = (), like: Json | None = None) -> bytes:
        if like is None and not common and (plain := self._plain(said)):
            return plain
        like = like or {}
        self._know(like)
        events = [event for _, events in said for event in events]
        events += common
        for event in events:
            if type(event) is ev.Begin:
                self._name(event)
                self._tell()
        if like.get("type") in ENDS:
            self._last = like
        elif like and self._mode is not _Mode.FRESH:
            self._tell()
            self._send(*self._output.learn(like))
        for event in events:
            self._write(event, like)
        if like and self._mode is _Mode.TELLING:
            self._send(*self._output.forward(like))
        return self._take_sent()

    def more(self, index: int, event: ev.TextDelta | ev.ReasoningDelta) -> Callable[[str], bytes] | None:  # noqa: ARG002
        item = self._output.speaking(TEXT if type(event) is ev.TextDelta else SUMMARY)
        if self._mode is not _TELLING or item is None or not item.is_speaking:
            return None
        return lambda text: self._numbered(item.say_more(text))

    def fail(self, failure: ev.Failure) -> bytes:
        """The frame that ends a stream badly, behind what begins one."""
        self._tell()
        self._send((FAILED, {"response": self._response("failed", error=error_object(failure))}))
        return self._take_sent()

    def done(self, raw: bytes = b"") -> bytes:
        """The one event that ends a stream well, as the upstream wrote it if all was."""
        if self._mode in (_Mode.CREATED, _Mode.PASSING) and raw and self._last is not None:
            return self._as_served(self._last, raw)
        response = self.finish()
        self._send((INCOMPLETE if response["status"] == "incomplete" else COMPLETED, {"response": response}))
        return self._take_sent()

    def finish(self) -> Json:
        """The whole response, after what ends the items that are still open."""
        self._tell()
        word = _INCOMPLETE.get(self._stop.reason or "stop")
        self._send(*self._output.close("incomplete" if word else "completed"))
        details = {"reason": word} if word else None
        return self._response(
            "incomplete" if word else "completed", incomplete_details=details, usage=usage_object(self._usage)
        )

    # ── the whole response ────────────────────────────────────────────────────────────────────────────────────────

    def _know(self, chunk: Json) -> None:
        """What the upstream says of the response, if it speaks this wire. The first id counts."""
        if chunk:
            self._upstream = _Upstream.SAME
        if "response" in chunk:
            response, id = as_dict(chunk.get("response")), self._head["id"]
            self._head |= {key: value for key, value in response.items() if key not in _OF_A_MOMENT}
            self._head["id"] = id or (self._head["id"] if isinstance(self._head["id"], str) else "")
        if self._options.served_as:
            self._head["model"] = self._options.served_as

    def _name(self, begin: ev.Begin) -> None:
        """The response has an id from here on."""
        if not self._head["id"]:
            own = begin.id or f"{self._options.created}/{'/'.join(self._options.taken_ids)}"
            self._head["id"] = own if own.startswith("resp_") else made_id("resp", own)
        if self._upstream is _Upstream.OTHER:
            self._head["created_at"] = begin.created or self._options.created
            self._head["model"] = self._options.served_as or begin.model or ""

    def _response(self, status: str, **more: Any) -> Json:
        moment: Json = {"status": status, "error": None, "incomplete_details": None, "usage": None}
        return {**self._head, **moment, "output": self._output.finished, **more}

    def _as_served(self, chunk: Json, raw: bytes) -> bytes:
        """The event as it came, but for the name that the client knows the model by."""
        response = as_dict(chunk.get("response")) if "response" in chunk else {}
        if not response or self._options.served_as in ("", response.get("model")):
            return raw
        told = {**chunk, "response": {**response, "model": self._options.served_as}}
        return encode(write_json(told).encode(), named(chunk.get("type")))

    # ── frames ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _tell(self) -> None:
        """From here on we tell it ourselves, and begin it if nobody has."""
        if self._mode is _Mode.TELLING:
            return
        untold = _UNTOLD.get(self._mode, ())
        self._mode = _Mode.TELLING
        if not self._head["id"]:
            self._name(ev.Begin())
        for kind in untold:
            self._send((kind, {"response": self._response("in_progress")}))

    def _send(self, *frames: Frame) -> None:
        for frame in frames:
            if isinstance(frame, bytes):
                self._sent.append(self._numbered(frame))
                continue
            kind, fields = frame
            told = {"type": kind, **fields, "sequence_number": self._number}
            self._number += 1
            self._sent.append(encode(write_json(told).encode(), named(kind)))

    def _numbered(self, frame: bytes) -> bytes:
        number, self._number = self._number, self._number + 1
        return b'%b,"sequence_number":%d}\n\n' % (frame, number)

    def _plain(self, said: Said) -> bytes:
        """The frame if there is one delta to write, of the item that is open, and nothing beside it: nearly always.
        Nothing if it is not so."""
        if self._mode is not _TELLING or len(said) != 1 or len(said[0][1]) != 1:
            return b""
        event = said[0][1][0]
        if type(event) is ev.TextDelta:
            item = self._output.speaking(TEXT)
        elif type(event) is ev.ArgsDelta:
            item = self._output.speaking(ARGUMENTS)
        elif type(event) is ev.ReasoningDelta:
            item = self._output.speaking(SUMMARY)
        else:
            return b""
        if item is None or not item.is_speaking or not event.text:
            return b""
        return self._numbered(item.say_more(event.text))

    def _take_sent(self) -> bytes:
        sent, self._sent = b"".join(self._sent), []
        return sent

    # ── one event ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _write(self, event: ev.Event, like: Json) -> None:
        match event:
            case ev.TextDelta():
                self._say(TEXT, event.text, like)
            case ev.ArgsDelta():
                self._args(event.text)
            case ev.ReasoningDelta():
                raw = bool(like) and str(like.get("type")).startswith(THOUGHT.stem)
                self._say(THOUGHT if raw else SUMMARY, event.text, like)
            case ev.RefusalDelta():
                self._say(REFUSAL, event.text, like)
            case ev.Seal():
                self._seal(event)
            case ev.CallStart():
                self._call(event)
            case ev.CallEnd():
                self._end_call(event.complete)
            case ev.Usage():
                self._usage = event
            case ev.Stop():
                self._stop = event

    def _say(self, word: Word, text: str, like: Json) -> None:
        if not text:
            return
        self._tell()
        item = self._output.speaking(word) or self._start(word, {"role": "assistant"} if word.item == "message" else {})
        logprobs = like.get("logprobs") if like and like.get("delta") == text else None
        self._send(*item.say(text, logprobs))
        self._output.place(like, item)

    def _seal(self, event: ev.Seal) -> None:
        """What vouches for the thinking before it ends its item."""
        self._tell()
        item = self._output.speaking(SUMMARY) or self._start(SUMMARY, {})
        if event.wire == NAME:
            item.body["encrypted_content"] = event.data.get("encrypted_content")
        else:
            thinking = Reasoning(item.text, event)
            item.body["encrypted_content"] = self._sealed(thinking, event.wire)
        self._send(*self._output.end(item, "completed"))

    def _vouch(self, item: Item) -> Json:
        """A seal for thinking that came without one, so that it can come back. An upstream of this wire needs none."""
        if self._upstream is _Upstream.SAME:
            return {}
        return {"encrypted_content": self._sealed(Reasoning(item.text), UNSEALED)}

    def _sealed(self, thinking: Reasoning, wire: str) -> str:
        return seal(thinking, wire, self._options.seal_key, self._options.upstream)

    def _call(self, event: ev.CallStart) -> None:
        tool = self._offer.get(event.name)
        fields = {"call_id": event.id, "name": (tool.local if tool else "") or event.name}
        if tool is not None and tool.namespace:
            fields["namespace"] = tool.namespace
        self._start(INPUT if tool is not None and tool.kind == "custom" else ARGUMENTS, fields)

    def _args(self, args: str) -> None:
        self._tell()
        item = self._output.call()
        if text := item.freeform.feed(args) if item.freeform else args:
            self._send(*item.say(text))

    def _end_call(self, complete: bool) -> None:
        self._tell()
        item = self._output.call()
        if not complete:
            self._output.cut(item)
            return
        if item.freeform is not None and (rest := item.freeform.end()):
            self._send(*item.say(rest))
        if item.freeform is not None and item.freeform.note:
            self.findings.append(ev.Finding("guessed-input", f"{item.body['name']}: {item.freeform.note}"))
        self._send(*self._output.end(item, "completed"))

    def _start(self, word: Word, fields: Json) -> Item:
        self._tell()
        self._send(*self._output.close("completed"))
        item = self._output.start(word, fields, str(self._head["id"]))
        self._send(item.begin())
        return item
