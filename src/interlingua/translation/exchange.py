"""One exchange with an upstream: the client's request translated for it, and its reply translated back. Sans-IO.

    target = UpstreamTarget(api="openai-chat", profile=profile, name="local")
    exchange = Exchange("anthropic-messages", body, target, options)
    # send exchange.body to the upstream; its response has a content type and arrives in pieces
    receiver = exchange.receive(content_type)
    output = receiver.feed(data)  # for the client; again for each piece
    output = receiver.close()     # at the end of the response

The gateway (`gateway/relay/`) and the SDK transports (`client/sdk/`) add sockets, headers, retries and timeouts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from interlingua.common.jsontext.codec import encode_json, read_full_object
from interlingua.common.jsontext.value_count import has_at_most_values
from interlingua.core.call_ids import PackedIds
from interlingua.core.options import Options, replace_options
from interlingua.core.tool_choice import ToolChoice
from interlingua.core.tools import Tool, ToolSet, shared_tool_set
from interlingua.dialects.registry import dialect_for, get_dialect
from interlingua.errors import UpstreamError
from interlingua.events import Finding
from interlingua.parsing.dialect import Dialect
from interlingua.translation.constraints import NO_CONSTRAINT, Constraint, Strictness, find_constraint
from interlingua.translation.incremental_translation import EncodedRequest, IncrementalTranslation
from interlingua.translation.request_cache import RequestCache
from interlingua.translation.request_translation import PreparedRequest, RequestContext, echo_request, prepare_request
from interlingua.translation.translator import Translator
from interlingua.translation.undecoded_request import UndecodedRequest
from interlingua.upstreams.profile import UNKNOWN, Profile
from interlingua.wires import get_wire
from interlingua.wires.base import Json
from interlingua.wires.http_api import EVENT_STREAM_TYPE

__all__ = ["MAX_BODY_BYTES", "Exchange", "ReplyReceiver", "UpstreamTarget", "empty_reply", "plan_translation"]

MAX_BODY_BYTES = 64 * 1024 * 1024
"""Default limit for a reply that has to be buffered: one that is not a stream, or that the client wants whole."""
MAX_QUOTED_BYTES = 200
"""Bytes of an unreadable response that an error message quotes."""
_WHITESPACE_AND_BOM = b" \t\r\n\xef\xbb\xbf"
_BODY_STARTS = (b"{", b"[", b"<")
"""First byte of a JSON body or an HTML page."""
_SSE_STARTS = (b"data:", b"event:", b"id:", b"retry:", b":")
"""First bytes of an event stream."""


class UpstreamTarget(msgspec.Struct, frozen=True, kw_only=True):
    """The upstream that receives a request."""

    api: str
    """Name of its wire."""
    profile: Profile
    name: str
    """Name in the settings, or host name. It identifies an upstream without a profile of its own."""
    model: str | None = None
    """Model id at the upstream. None: the model of the request."""
    dialect: str | Dialect = "auto"
    extra: Mapping[str, Any] = {}
    """Additional fields of the request body."""
    strict: Strictness = "off"
    """True if the model is constrained to write valid calls."""
    is_profile_detected: bool = False
    """True if the profile was detected by the answers of the server. The identity of the upstream does not depend on
    it, because earlier replies were signed before."""

    @property
    def identity(self) -> str:
        """Identity under which the reasoning of this upstream is signed.

        It is the profile name, because one upstream can be configured under several names. Unknown upstreams all share
        one profile, so their own name is used, with `@`: an unknown upstream that is named `openai` is not OpenAI.
        """
        is_configured = self.profile.name != UNKNOWN and not self.is_profile_detected
        return self.profile.name if is_configured else f"@{self.name}"

    def identify(self, options: Options) -> Options:
        """Return the options with the identity of this upstream."""
        identity = self.identity
        return options if options.upstream == identity else replace_options(options, upstream=identity)


class RequestFields(Protocol):
    """A request of which single fields can be read."""

    def get(self, name: str) -> Any: ...


def plan_translation(
    wire: str,
    request: UndecodedRequest,
    target: UpstreamTarget,
    options: Options,
    cache: RequestCache,
    *,
    strict: bool = False,
    owner: str = "",
) -> IncrementalTranslation | None:
    """Return the translation of a request with the help of earlier ones; None if there is none for this request.

    Its result is for the `Exchange` with the same arguments.

    Args:
        wire: The client's wire.
        request: The client's request.
        target: The upstream.
        options: Options of the translation.
        cache: The earlier requests.
        strict: Raise BadRequest for a broken history instead of repairing it.
        owner: The client. Its requests are compared with its own earlier ones only.
    """
    options = target.identify(options)
    context = RequestContext.create(wire, target.api, target.profile, options, strict)
    return IncrementalTranslation.plan(request, context, target.model, cache, owner)


def empty_reply(wire: str, request: Json, options: Options) -> Json:
    """Return a complete reply without content, for a request that no model answers, or not yet."""
    codec = get_wire(wire)
    options = msgspec.structs.replace(options, echo={**echo_request(request, codec), **options.echo})
    return codec.write_body([], [], options, ToolSet(), None)[0]


class Exchange:
    """One request, translated for one upstream. It can be sent several times; `receive` starts each reply.

    Args:
        wire: The client's wire.
        request: The client's request, decoded from JSON unless it is `prepared`. It is not kept.
        target: The upstream.
        options: Options of the translation. `upstream` and `taken_ids` are set here, and
            `echo` is added to.
        strict: Raise BadRequest for a broken history instead of repairing it.
        prepared: The translation of the request, if it is translated already. See `plan_translation`.

    Raises:
        BadRequest: The request cannot be parsed or cannot be sent to this upstream.
    """

    __slots__ = ("_model", "_options", "_target", "_tools", "_wire", "body", "constraint", "findings", "wants_stream")

    def __init__(
        self,
        wire: str,
        request: Json | RequestFields,
        target: UpstreamTarget,
        options: Options,
        *,
        strict: bool = False,
        prepared: EncodedRequest | PreparedRequest | None = None,
    ) -> None:
        options = target.identify(options)
        if prepared is None:
            assert isinstance(request, dict), "a request that is not translated yet is decoded"
            prepared = prepare_request(request, wire, target.api, target.model, target.profile, options, strict=strict)
        self._model = target.model or str(request.get("model") or "") or None
        body = {**prepared.body, **target.extra}
        constraint = NO_CONSTRAINT
        if target.strict != "off":
            constraint = self._find_constraint(target, body, prepared.tools, prepared.tool_choice, options.prefill)
        self.body = encode_json({**body, **constraint.fields})
        """Body of the request to the upstream."""
        self.constraint = constraint.summary
        """The constraint of the model in words; "" if there is none."""
        self.findings = [*prepared.findings, *constraint.findings] if constraint.findings else prepared.findings
        """Findings about the request."""
        self.wants_stream = request.get("stream") is True
        self._wire = wire
        self._target = target
        self._tools = shared_tool_set(prepared.tools, prepared.tool_choice)
        self._options = replace_options(
            options,
            taken_ids=PackedIds.pack(prepared.taken_ids) if prepared.taken_ids else (),
            echo={**prepared.echo, **options.echo},
        )

    def _find_constraint(
        self, target: UpstreamTarget, body: Json, tools: list[Tool], choice: ToolChoice | None, prefill: str
    ) -> Constraint:
        """Return the constraint of the model, for an upstream whose engine takes one."""
        if not get_wire(target.api).TRAITS.varies_by_server:
            return NO_CONSTRAINT
        dialect = target.dialect
        if isinstance(dialect, str):
            dialect = get_dialect(dialect) if dialect != "auto" else dialect_for(self._model or "")
        return find_constraint(target.strict, target.profile, dialect, body, tools, choice, prefill)

    @property
    def reply_dialect(self) -> str | Dialect:
        """Return the dialect of the reply. A server without a tool parser sends the calls of every model as text, so
        they are detected if the model is unknown."""
        dialect = self._target.dialect
        if not self._target.profile.unparsed_choices:
            return dialect
        known = dialect_for(self._model or "") if dialect == "auto" else dialect
        return "detect" if isinstance(known, Dialect) and known.shape is None else dialect

    def receive(
        self, content_type: str, *, input_tokens: int = 0, max_body_bytes: int = MAX_BODY_BYTES
    ) -> ReplyReceiver:
        """Return the receiver for a reply to this request.

        Args:
            content_type: Content type of the response; "" if it has none.
            input_tokens: Estimated input tokens, see `Options.input_tokens`.
            max_body_bytes: Limit for a reply that has to be buffered.
        """
        options = replace_options(self._options, input_tokens=input_tokens) if input_tokens else self._options
        target = self._target
        translator = Translator(target.api, self._wire, self.reply_dialect, self._model, self._tools, options)
        is_stream = content_type.lower().startswith(EVENT_STREAM_TYPE)
        return ReplyReceiver(translator, self.wants_stream, is_stream, max_body_bytes, options.limits.values)


class ReplyReceiver:
    """Receives one reply and returns it in the form that the client wants: as a stream, or whole.

    Some servers send a whole reply although a stream was requested; others send a stream with another content type, or
    although a whole reply was requested. The reply is converted, and `findings` reports it.

    If `translator.tally` has a failure at the end but no content, nothing of use was received: the output should be
    replaced by an error response.
    """

    __slots__ = (
        "_first_bytes",
        "_is_stream",
        "_max_body_bytes",
        "_max_values",
        "_pieces",
        "_size",
        "_undecided",
        "_wants_stream",
        "findings",
        "is_streaming",
        "translator",
    )

    def __init__(
        self, translator: Translator, wants_stream: bool, is_stream: bool, max_body_bytes: int, max_values: int
    ) -> None:
        self.translator = translator
        self.findings: list[Finding] = []
        self._wants_stream = wants_stream
        self._is_stream = is_stream  # by its content type
        self.is_streaming = wants_stream and is_stream
        """True if data is translated as it arrives."""
        self._undecided = wants_stream and not is_stream  # until the first byte that is not whitespace
        self._max_body_bytes = max_body_bytes
        self._max_values = max_values
        self._pieces: list[bytes] = []
        self._size = 0
        self._first_bytes = b""  # of a stream with another content type

    def feed(self, data: bytes) -> bytes:
        """Return the output for the next piece of the response. A whole reply is buffered and returned by `close`.

        Raises:
            UpstreamError: The response is larger than the limit.
        """
        if self.is_streaming:
            if self._first_bytes and not self.translator.begun:
                self._first_bytes = (self._first_bytes + data)[:MAX_QUOTED_BYTES]
            return self.translator.feed(data)
        self._buffer(data)
        if self._undecided and (start := data.lstrip(_WHITESPACE_AND_BOM)):
            self._undecided = False
            if not start.startswith(_BODY_STARTS):
                self.is_streaming, self._first_bytes = True, start[:MAX_QUOTED_BYTES]
                return self.translator.feed(self._take_buffer())
        return b""

    def close(self) -> bytes:
        """Return the rest of the output at the end of the response."""
        translator, data = self.translator, self._take_buffer()
        if self.is_streaming and (translator.begun or not self._first_bytes):
            return translator.close()
        data = data or self._first_bytes
        if not self._wants_stream and (self._is_stream or data.lstrip(_WHITESPACE_AND_BOM).startswith(_SSE_STARTS)):
            self._report("streamed-reply", "the upstream sent a stream instead of a complete reply; assembled")
            return encode_json(translator.fold(data))
        if not has_at_most_values(data, self._max_values):
            return translator.abort(f"the upstream's reply has more than {self._max_values:,} JSON values")
        body = read_full_object(data.decode("utf-8-sig", "replace"))
        if body is None:
            return self._reject(data)
        if not self._wants_stream:
            return encode_json(translator.reply(body))
        self._report("whole-reply", "the upstream sent a complete reply instead of a stream; converted to a stream")
        return translator.stream(body)

    @property
    def pending_bytes(self) -> int:
        """Number of received bytes that are not translated yet: of a whole reply, or of an event."""
        return self.translator.pending_bytes if self.is_streaming else self._size

    @property
    def failed_early(self) -> bool:
        """True if the reply failed before any content reached the client."""
        stats = self.translator.tally
        return stats.failure is not None and not (self._wants_stream and stats.has_content)

    def _buffer(self, data: bytes) -> None:
        self._size += len(data)
        if self._size > self._max_body_bytes:
            raise UpstreamError(f"the upstream's reply is larger than {self._max_body_bytes:,} bytes")
        self._pieces.append(data)

    def _take_buffer(self) -> bytes:
        data = b"".join(self._pieces)
        self._pieces.clear()
        return data

    def _reject(self, data: bytes) -> bytes:
        """End with an error, because the response is neither a stream nor a JSON object."""
        quoted = data[:MAX_QUOTED_BYTES].decode("utf-8", "replace").strip()
        problem = f"is not a valid reply: {quoted!r}" if quoted else "is empty"
        return self.translator.abort(f"the upstream's response {problem}")

    def _report(self, finding_kind: str, message: str) -> None:
        self.findings.append(Finding(finding_kind, message))
