"""Sans-I/O translation of one SDK request to the upstream's wire, and of the response back.

The transport sends `SdkSession.body` to `SdkSession.url` and passes the response to `translate_body`, or, for a stream,
to `feed` and `close`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

import msgspec

from interlingua.client.sdk.upstream_config import Exchange, UpstreamConfig, extract_api_key
from interlingua.common.jsontext.codec import encode_json, read_full_object
from interlingua.core.options import Options
from interlingua.core.tools import ToolSet
from interlingua.errors import InterlinguaError, shorten
from interlingua.events import Failure
from interlingua.translation.request_translation import prepare_request
from interlingua.translation.translator import Translator
from interlingua.upstreams.profile import UNKNOWN
from interlingua.wires import get_wire
from interlingua.wires.error_types import status_of

__all__ = ["SdkResponse", "SdkSession", "error_response"]

LOG = logging.getLogger("interlingua.client")
BAD_GATEWAY_STATUS = 502
MAX_ERROR_TEXT_CHARS = 2000
"""Maximum length of an unrecognised error body in an error message."""
JSON_TYPE, EVENT_STREAM_TYPE = "application/json", "text/event-stream"
_BODY_HEADERS = frozenset({"content-length", "content-encoding", "transfer-encoding", "content-type", "connection"})
_UNSENT_HEADERS = _BODY_HEADERS | {"host", "accept-encoding", "accept", "authorization", "x-api-key"}
_SDK_HEADER_PREFIXES = ("x-stainless-", "anthropic-")
_SSE_LINE_PREFIXES = (b"data:", b"event:")
"""Prefixes that identify an event stream with a wrong content type."""


class SdkResponse(msgspec.Struct, frozen=True):
    """Non-streamed response to the SDK."""

    status: int
    content_type: str
    body: bytes


class SdkSession:
    """Translation of one request and its reply.

    Args:
        upstream: Configuration of the upstream.
        wire: Wire of the SDK's request.
        body: Body of the SDK's request.
        query: Query string of the SDK's request.
        created: Unix time in seconds.
    """

    def __init__(self, upstream: UpstreamConfig, wire: str, body: bytes, query: str, created: int) -> None:
        self._upstream = upstream
        self._wire = wire
        self._on_exchange = upstream.on_exchange
        self._failure = ""
        request = read_full_object(body.decode("utf-8", "replace"))
        if request is None:
            raise InterlinguaError("the request body is not a JSON object", "send requests through the SDK's methods")
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
        """Return the SDK's headers as this upstream expects them."""
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
        api = get_wire(self._upstream.api).HTTP_API
        if api.key_header == "x-api-key" and key:
            headers["x-api-key"] = key
        return {**api.version_headers, **headers}

    # ── responses ─────────────────────────────────────────────────────────────────────────────────────────────────

    def should_stream(self, status: int, content_type: str) -> bool:
        """Return whether the response is translated as a stream."""
        return self._wants_stream and status < 300 and content_type.lower().startswith(EVENT_STREAM_TYPE)

    def response_headers(self, upstream_headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        """Return the upstream's headers without those that describe the body, because the body is rewritten."""
        return [(name, value) for name, value in upstream_headers if name.lower() not in _BODY_HEADERS]

    def translate_body(self, status: int, content_type: str, body: bytes) -> SdkResponse:
        """Translate a non-streamed response. A body that is not a reply becomes an error, whatever the status is."""
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
            return self._failure_response(Failure(f"the upstream's response is not a reply: {_error_text(body)!r}"))
        else:
            translated = translator.stream(value) if self._wants_stream else encode_json(translator.reply(value))
        if (failure := translator.tally.failure) and not (self._wants_stream and translator.tally.has_content):
            return self._failure_response(failure)
        return SdkResponse(
            status, EVENT_STREAM_TYPE if self._wants_stream else JSON_TYPE, self._report_exchange(translated)
        )

    def _failure_response(self, failure: Failure) -> SdkResponse:
        """Return the error response for a failure that the upstream sent with a success status."""
        status = status_of(failure.type, failure.code) or BAD_GATEWAY_STATUS
        native = failure.native if self._wire == self._upstream.api else None
        return self._error_response(status, msgspec.structs.replace(failure, native=native))

    def _error_status_response(self, status: int, content_type: str, body: bytes) -> SdkResponse:
        """Translate a response with an error status.

        A client on the same wire gets the upstream's body unchanged. For other wires the error is rewritten.
        """
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
        """Return the end of a stream. `disconnect_reason` is set if the connection broke."""
        return self._report_exchange(
            self._translator.abort(disconnect_reason) if disconnect_reason else self._translator.close()
        )

    def finish(self) -> None:
        """Report the exchange when the client closes the stream, whether it has read all of it or not."""
        self._report_exchange(b"")

    def _report_exchange(self, output: bytes) -> bytes:
        """Call the `on_exchange` hook once, and return `output` unchanged."""
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
        except Exception:  # an error in the program's hook must not break the reply
            LOG.exception("on_exchange raised")
        return output


def error_response(wire: str, status: int, failure: Failure) -> SdkResponse:
    """Return an error response in the format of this wire, with the error type for the status."""
    typed_failure = msgspec.structs.replace(failure, type=get_wire(wire).HTTP_API.error_type(status))
    body, _ = get_wire(wire).write_body([], [typed_failure], Options(), ToolSet(None), None)
    return SdkResponse(status, JSON_TYPE, encode_json(body))


def _error_text(body: bytes) -> str:
    return shorten(body[: 4 * MAX_ERROR_TEXT_CHARS].decode("utf-8", "replace").strip(), MAX_ERROR_TEXT_CHARS)
