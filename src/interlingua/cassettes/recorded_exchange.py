"""A recorded exchange: the client's request, and the upstream's reply as bytes with times.

An exchange is kept once. The neutral request is read from the client's body whenever it is needed, and the reply runs
through the translator again whenever it is replayed. So one recording serves clients of every API.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import msgspec

from interlingua.cassettes.reply_meaning import ReplyMeaning, read_meaning
from interlingua.cassettes.request_meaning import check_depth
from interlingua.common.redaction import Redactor
from interlingua.common.split_secrets import redact_split_secrets
from interlingua.core.options import ArgumentsPolicy, Delivery, Limits, Options, ReasoningPolicy
from interlingua.core.request import Request
from interlingua.errors import BadInput
from interlingua.parsing.dialect import Dialect
from interlingua.translation.exchange import Exchange, UpstreamTarget
from interlingua.translation.request_translation import translate_request
from interlingua.upstreams import get_profile
from interlingua.upstreams.profile import UNKNOWN
from interlingua.wires import get_wire
from interlingua.wires.base import Json
from interlingua.wires.http_api import EVENT_STREAM_TYPE, JSON_TYPE

__all__ = [
    "RecordedExchange",
    "RecordedReply",
    "RecordedRequest",
    "RecordedUpstream",
    "ReplyPiece",
    "record_exchange",
    "translate_recording",
]

CONVERSATION_FIELDS = frozenset({"messages", "system", "input", "instructions"})
"""Fields with the conversation. A name in it, such as the `key` of an argument, does not make a value a secret."""
_JSON_STARTS = (b"{", b"[")


class ReplyPiece(NamedTuple):
    """One read of the reply: when it arrived, in seconds since the request was sent, and its size in bytes."""

    seconds: float
    size: int


class RecordedRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The client's request, without secrets."""

    wire: str
    body: dict[str, Any]

    def read(self) -> Request:
        """Return the neutral request. Raises BadRequest."""
        return get_wire(self.wire).read_request(self.body, Options())

    @property
    def choices(self) -> int:
        """Number of choices that the client wants, up to those that a reply can have."""
        number = self.body.get("n")
        return min(max(number, 1), Limits().choices) if isinstance(number, int) else 1


class RecordedUpstream(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The upstream that replied, and the settings with which its reply was read."""

    wire: str
    model: str = ""
    """Model id at the upstream."""
    name: str = ""
    """Name in the settings."""
    profile: str = UNKNOWN
    dialect: str = "auto"
    prefill: str = ""
    delivery: Delivery = "stream"
    arguments: ArgumentsPolicy = "repair"
    reasoning: ReasoningPolicy = "keep"


class RecordedReply(msgspec.Struct, frozen=True, kw_only=True):
    """The reply as the upstream sent it, without secrets."""

    body: bytes
    pieces: tuple[ReplyPiece, ...] = ()
    status: int = 200
    content_type: str = EVENT_STREAM_TYPE
    id: str = ""
    """Id from which the ids in the reply to the client were made."""
    created: int = 0
    """Unix time of the request, in seconds."""
    completed: int = 0
    """Unix time of the end of the reply, in seconds."""
    input_tokens: int = 0
    """Estimated input tokens that were reported to the client; 0 if none were."""
    is_complete: bool = True
    """False if the client disconnected before the end."""


class RecordedExchange(msgspec.Struct, frozen=True, kw_only=True):
    """One recording: everything that is needed to replay one reply."""

    request: RecordedRequest
    upstream: RecordedUpstream
    reply: RecordedReply
    meaning: ReplyMeaning
    """The meaning of the reply when it was recorded, for readers and for `interlingua cassettes check`."""

    def options(self) -> Options:
        """Return the options for a translation that gives the same bytes as the recorded one."""
        upstream, reply = self.upstream, self.reply
        return Options(
            prefill=upstream.prefill,
            delivery=upstream.delivery,
            arguments=upstream.arguments,
            reasoning=upstream.reasoning,
            reply_id=reply.id,
            created=reply.created,
            clock=lambda: reply.completed,
        )

    def target(self, dialect: Dialect | None = None) -> UpstreamTarget:
        """Return the upstream for the translation. `dialect`: the recorded one, if it is a dialect of the user."""
        upstream = self.upstream
        return UpstreamTarget(
            api=upstream.wire,
            profile=get_profile(upstream.profile),
            name=upstream.name,
            model=upstream.model or None,
            dialect=dialect or upstream.dialect,
        )


def record_exchange(
    *,
    wire: str,
    body: Json,
    upstream: RecordedUpstream,
    pieces: Sequence[tuple[float, bytes]],
    status: int = 200,
    content_type: str = "",
    reply_id: str = "",
    created: int = 0,
    completed: int = 0,
    input_tokens: int = 0,
    is_complete: bool = True,
    redactor: Redactor | None = None,
    dialect: Dialect | None = None,
) -> RecordedExchange:
    """Return the recording of an exchange, without secrets.

    Args:
        wire: The client's wire.
        body: The client's request, as it was sent.
        upstream: The upstream that replied.
        pieces: What it sent, in the sizes in which it arrived, each with the seconds since the request was sent.
        status: HTTP status of the reply.
        content_type: Content type of the reply. If empty, it is guessed from the first bytes.
        reply_id: See `RecordedReply.id`.
        created: Unix time of the request, in seconds.
        completed: Unix time of the end of the reply, in seconds.
        input_tokens: See `RecordedReply.input_tokens`.
        is_complete: See `RecordedReply.is_complete`.
        redactor: Finds the secrets. None: they are found by pattern only.
        dialect: The upstream's dialect, if it is a dialect of the user.

    Raises:
        BadInput: The exchange cannot be replayed.
    """
    redactor = redactor or Redactor()
    received = b"".join(data for _, data in pieces)
    if not received and status < 400:
        raise BadInput("the upstream sent nothing, so there is nothing to record", "record a request with a reply")
    check_depth(body)
    request = RecordedRequest(wire=wire, body=redact_body(body, redactor))
    request.read()
    redacted = redact_split_secrets(redactor.redact_bytes(received), redactor)
    reply = RecordedReply(
        body=redacted,
        pieces=_scale_pieces(pieces, len(received), len(redacted)),
        status=status,
        content_type=content_type or _guess_type(received),
        id=reply_id,
        created=created,
        completed=completed or created,
        input_tokens=input_tokens,
        is_complete=is_complete,
    )
    draft = RecordedExchange(request=request, upstream=upstream, reply=reply, meaning=ReplyMeaning())
    return msgspec.structs.replace(draft, meaning=read_meaning_of(draft, dialect=dialect))


def translate_recording(
    exchange: RecordedExchange, wire: str, *, stream: bool, dialect: Dialect | None = None
) -> bytes:
    """Return the recorded reply as a client of any wire would receive it.

    Raises:
        InterlinguaError: The request cannot be written on this wire.
    """
    recorded = exchange.request
    body = recorded.body if wire == recorded.wire else translate_request(recorded.body, recorded.wire, wire)
    translation = Exchange(wire, {**body, "stream": stream}, exchange.target(dialect), exchange.options())
    receiver = translation.receive(exchange.reply.content_type, input_tokens=exchange.reply.input_tokens)
    return receiver.feed(exchange.reply.body) + receiver.close()


def read_meaning_of(
    exchange: RecordedExchange, wire: str = "", *, stream: bool = True, dialect: Dialect | None = None
) -> ReplyMeaning:
    """Return what the recorded reply means to a client of this wire; "": the wire of the recorded request."""
    if exchange.reply.status >= 400:
        return ReplyMeaning(error=exchange.reply.body.decode("utf-8", "replace"))
    wire = wire or exchange.request.wire
    reply = translate_recording(exchange, wire, stream=stream, dialect=dialect)
    return read_meaning(reply, wire, exchange.request.choices)


def redact_body(body: Json, redactor: Redactor) -> Json:
    """Return a request without secrets. In the conversation they are found by their form; elsewhere by name, too."""
    return {
        name: redact_texts(value, redactor)
        if name in CONVERSATION_FIELDS
        else redactor.redact_value({name: value})[name]
        for name, value in body.items()
    }


def redact_texts(value: Any, redactor: Redactor) -> Any:
    """Return a JSON value in which every text is redacted, whatever its name."""
    match value:
        case str():
            return redactor.redact_text(value)
        case dict():
            return {name: redact_texts(item, redactor) for name, item in value.items()}
        case list():
            return [redact_texts(item, redactor) for item in value]
    return value


def _scale_pieces(pieces: Sequence[tuple[float, bytes]], size: int, new_size: int) -> tuple[ReplyPiece, ...]:
    """Return times and sizes of the pieces. If redaction has changed the size, the cuts move in proportion."""
    ends = list(accumulate(len(data) for _, data in pieces))
    scaled = [round(end * new_size / size) if size else 0 for end in ends]
    sizes = (end - start for start, end in zip([0, *scaled], scaled, strict=False))
    return tuple(ReplyPiece(round(seconds, 3), size) for (seconds, _), size in zip(pieces, sizes, strict=True))


def _guess_type(body: bytes) -> str:
    return JSON_TYPE if body.lstrip().startswith(_JSON_STARTS) else EVENT_STREAM_TYPE
