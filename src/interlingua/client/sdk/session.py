"""One request of an SDK on its way to an upstream that speaks another wire, or writes calls as text, and the way back.

It moves no bytes: a transport sends what `Crossing.request` says, and gives the answer to `Crossing.answer`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

import msgspec

from interlingua.client.sdk.upstream_config import ANTHROPIC_VERSION, Exchange, UpstreamConfig, extract_api_key
from interlingua.common.jsontext.codec import encode_json, read_full_object
from interlingua.core.options import Options
from interlingua.core.tools import ToolSet
from interlingua.errors import InterlinguaError, shorten
from interlingua.events import Failure
from interlingua.translation.request_translation import prepare_request
from interlingua.translation.translator import Translator
from interlingua.upstreams.profile import MESSAGES, UNKNOWN
from interlingua.wires import get_wire
from interlingua.wires.error_types import error_type, status_of

__all__ = ["SdkResponse", "SdkSession", "error_response"]

LOG = logging.getLogger("interlingua.client")
BAD_GATEWAY_STATUS = 502
MAX_ERROR_TEXT_CHARS = 2000
"""How much of a body that nobody understands is told."""
JSON_TYPE, EVENT_STREAM_TYPE = "application/json", "text/event-stream"
_BODY_HEADERS = frozenset({"content-length", "content-encoding", "transfer-encoding", "content-type", "connection"})
_UNSENT_HEADERS = _BODY_HEADERS | {"host", "accept-encoding", "accept", "authorization", "x-api-key"}
_SDK_HEADER_PREFIXES = ("x-stainless-", "anthropic-")
_SSE_LINE_PREFIXES = (b"data:", b"event:")
"""What a stream begins with, whatever the upstream calls it."""


class SdkResponse(msgspec.Struct, frozen=True):
    """What a client is told that is told all at once."""

    status: int
    content_type: str
    body: bytes


class SdkSession:
    """One request and its reply. `query` is the SDK's, `created` the time, in seconds since 1970."""

    def __init__(self, upstream: UpstreamConfig, wire: str, body: bytes, query: str, created: int) -> None:
        self._upstream = upstream
        self._wire = wire
        self._on_exchange = upstream.on_exchange
        self._failure = ""
        request = read_full_object(body.decode("utf-8", "replace"))
        if request is None:
            raise InterlinguaError("the request's body is no JSON object", "ask through the SDK")
        self._wants_stream = bool(request.get("stream"))
        profile = upstream.resolve_profile()
        upstream_identity = f"@{urlsplit(upstream.url).netloc}" if profile.name == UNKNOWN else profile.name
        options = Options(seal_key=upstream.seal_key, upstream=upstream_identity)
        prepared = prepare_request(request, wire, upstream.api, None, profile, options)
        model = str(request.get("model") or "")
        self._findings = prepared.findings
        self.body = encode_json({**prepared.body, **upstream.extra})
        self.url = upstream.endpoint + upstream.query_string(query)
        self._model = model
        self._translator = Translator(
            upstream.api,
            wire,
            upstream.dialect,
            model or None,
            prepared.tools,
            msgspec.structs.replace(
                options,
                delivery=upstream.delivery,
                reasoning=upstream.reasoning,
                taken_ids=prepared.taken_ids,
                served_as=model,
                created=created,
            ),
        )

    def headers(self, sdk_headers: Mapping[str, str]) -> dict[str, str]:
        """What the SDK says, as this upstream understands it."""
        same_wire = self._wire == self._upstream.api
        dropped_prefixes = () if same_wire else _SDK_HEADER_PREFIXES
        headers = {
            name: value
            for name, value in sdk_headers.items()
            if name.lower() not in _UNSENT_HEADERS and not name.lower().startswith(dropped_prefixes)
        }
        key = extract_api_key(sdk_headers)
        headers |= {
            "content-type": JSON_TYPE,
            "accept": EVENT_STREAM_TYPE if self._wants_stream else JSON_TYPE,
            "accept-encoding": "identity",
        }
        if key and same_wire and "authorization" not in sdk_headers:
            headers["x-api-key"] = key
        elif key:
            headers["authorization"] = f"Bearer {key}"
        if self._upstream.api == MESSAGES:
            headers = {"anthropic-version": ANTHROPIC_VERSION, **headers} | ({"x-api-key": key} if key else {})
        return headers

    # ── the way back ──────────────────────────────────────────────────────────────────────────────────────────────

    def should_stream(self, status: int, content_type: str) -> bool:
        """Whether the answer is read as it comes."""
        return self._wants_stream and status < 300 and content_type.lower().startswith(EVENT_STREAM_TYPE)

    def response_headers(self, upstream_headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        """What the upstream says, but for what it says of a body that is another one now."""
        return [(name, value) for name, value in upstream_headers if name.lower() not in _BODY_HEADERS]

    def translate_body(self, status: int, content_type: str, body: bytes) -> SdkResponse:
        """The answer that came at once, for the client. What is no reply is an error, whatever its status says."""
        if status >= 300:
            return self._error_status_response(status, content_type, body)
        translator = self._translator
        streamed = content_type.lower().startswith(EVENT_STREAM_TYPE) or body.lstrip().startswith(_SSE_LINE_PREFIXES)
        if streamed and self._wants_stream:
            return SdkResponse(
                status, EVENT_STREAM_TYPE, self._report_exchange(translator.feed(body) + translator.close())
            )
        value = None if streamed else read_full_object(body.decode("utf-8-sig", "replace"))
        if streamed:
            translated = encode_json(translator.fold(body))
        elif value is None:
            return self._failure_response(Failure(f"what the upstream sent is no reply: {_error_text(body)!r}"))
        else:
            translated = translator.stream(value) if self._wants_stream else encode_json(translator.reply(value))
        if (failure := translator.tally.failure) and not (self._wants_stream and translator.tally.has_content):
            return self._failure_response(failure)
        return SdkResponse(
            status, EVENT_STREAM_TYPE if self._wants_stream else JSON_TYPE, self._report_exchange(translated)
        )

    def _failure_response(self, failure: Failure) -> SdkResponse:
        """It said that all is well, and it is not."""
        status = status_of(failure.type, failure.code) or BAD_GATEWAY_STATUS
        native = failure.native if self._wire == self._upstream.api else None
        return self._error_response(status, msgspec.structs.replace(failure, native=native))

    def _error_status_response(self, status: int, content_type: str, body: bytes) -> SdkResponse:
        """It said no. A client that speaks as it does hears that in its own words, any other by its status."""
        value = read_full_object(body.decode("utf-8-sig", "replace"))
        self._failure = _error_text(body) or f"status {status}"
        if value is None or self._wire == self._upstream.api:
            return SdkResponse(status, content_type, self._report_exchange(body))
        self._translator.reply(value)
        reported = self._translator.tally.failure
        failure = reported if reported and value.get("error") else Failure(self._failure)
        return self._error_response(status, msgspec.structs.replace(failure, native=None))

    def _error_response(self, status: int, failure: Failure) -> SdkResponse:
        self._failure = failure.message
        response = error_response(self._wire, status, failure)
        self._report_exchange(b"")
        return response

    def feed(self, data: bytes) -> bytes:
        output = self._translator.feed(data)
        return self._report_exchange(output) if self._translator.ended else output

    def close(self, disconnect_reason: str = "") -> bytes:
        """The end of a stream; `broken` says why it is over, if that was not its own will."""
        return self._report_exchange(
            self._translator.abort(disconnect_reason) if disconnect_reason else self._translator.close()
        )

    def finish(self) -> None:
        """The client has heard enough, be it all or not."""
        self._report_exchange(b"")

    def _report_exchange(self, output: bytes) -> bytes:
        """Tells the hook, if nobody has yet, and gives back what goes to the client."""
        hook, self._on_exchange = self._on_exchange, None
        if hook is None:
            return output
        translator = self._translator
        exchange = Exchange(
            url=self.url,
            model=self._model,
            dialect=translator.dialect.name if translator.dialect else "",
            findings=[*self._findings, *translator.findings],
            failure=self._failure or (translator.tally.failure.message if translator.tally.failure else ""),
        )
        try:
            hook(exchange)
        except Exception:  # it is the program's own, and the reply is as good as before
            LOG.exception("on_exchange raised")
        return output


def error_response(wire: str, status: int, failure: Failure) -> SdkResponse:
    """An error as clients of this wire know it by its status."""
    typed_failure = msgspec.structs.replace(failure, type=error_type(wire, status))
    body, _ = get_wire(wire).write_body([], [typed_failure], Options(), ToolSet(None), None)
    return SdkResponse(status, JSON_TYPE, encode_json(body))


def _error_text(body: bytes) -> str:
    return shorten(body[: 4 * MAX_ERROR_TEXT_CHARS].decode("utf-8", "replace").strip(), MAX_ERROR_TEXT_CHARS)
