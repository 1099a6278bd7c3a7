"""HTTP side of one SDK request, without sockets: URL, headers, responses and error responses around an `Exchange`.

The transport sends `SdkSession.body` to `SdkSession.url` and passes the response to `opens_stream`, and its data to
`translate_body` or, for a stream, to `feed` and `close`. If the upstream refused the request for a reason that can be
removed, `translate_body` changes it, and the transport sends it again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from interlingua.client.sdk.upstream_config import ExchangeSummary, UpstreamConfig, extract_api_key
from interlingua.common.jsontext.codec import encode_json, read_full_object
from interlingua.core.options import Options
from interlingua.core.tools import ToolSet
from interlingua.errors import InterlinguaError, UpstreamError
from interlingua.events import Failure, Finding
from interlingua.translation.exchange import Exchange, ReplyReceiver
from interlingua.translation.refusal_correction import (
    MIN_BYTES_PER_TOKEN,
    REFUSAL_MESSAGES,
    RefusalMemory,
    ServedModel,
    corrected_profile,
)
from interlingua.translation.upstream_errors import UpstreamFailed, error_from_failure, error_from_response
from interlingua.upstreams.profile import Profile
from interlingua.upstreams.refusals import RefusalKind, recognize_refusal
from interlingua.wires import get_wire
from interlingua.wires.http_api import EVENT_STREAM_TYPE, JSON_TYPE

__all__ = ["SdkResponse", "SdkSession", "error_response"]

LOG = logging.getLogger("interlingua.client")
_BODY_HEADERS = frozenset({"content-length", "content-encoding", "transfer-encoding", "content-type", "connection"})
_UNSENT_HEADERS = _BODY_HEADERS | {"host", "accept-encoding", "accept", "authorization", "x-api-key"}
_SDK_HEADER_PREFIXES = ("x-stainless-", "anthropic-")


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
        memory: What this upstream has refused in earlier requests of the SDK client.
    """

    def __init__(
        self, upstream: UpstreamConfig, wire: str, body: bytes, query: str, created: int, memory: RefusalMemory
    ) -> None:
        self._upstream = upstream
        self._memory = memory
        self._wire = wire
        self._on_exchange = upstream.on_exchange
        self._failure = ""
        request = read_full_object(body.decode("utf-8", "replace"))
        if request is None:
            raise InterlinguaError("the request body is not a JSON object", "send requests through the SDK's methods")
        self._model = str(request.get("model") or "")
        self._served_model = ServedModel(upstream.url, self._model)
        self._options = Options(
            delivery=upstream.delivery,
            arguments=upstream.arguments,
            reasoning=upstream.reasoning,
            served_as=self._model,
            created=created,
            seal_key=upstream.seal_key,
        )
        self._request: dict[str, Any] | None = request  # until the upstream has accepted it
        self._corrected_kinds: set[RefusalKind] = set()
        self._findings: list[Finding] = []
        known = memory.find(self._served_model)
        profile = upstream.resolve_profile()
        self._profile = profile if known is None else known.apply(profile)
        self._exchange = self._translate(request, self._profile)
        self._receiver: ReplyReceiver | None = None
        self.url = upstream.endpoint + upstream.query_string(query)

    def _translate(self, request: dict[str, Any], profile: Profile) -> Exchange:
        target = msgspec.structs.replace(self._upstream.target, profile=profile)
        return Exchange(self._wire, request, target, self._options)

    @property
    def body(self) -> bytes:
        """Body of the request to the upstream."""
        return self._exchange.body

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
        if key and same_wire and "authorization" not in sdk_headers:
            headers["x-api-key"] = key
        elif key:
            headers["authorization"] = f"Bearer {key}"
        api = get_wire(self._upstream.api).HTTP_API
        if api.key_header == "x-api-key" and key:
            headers["x-api-key"] = key
        return {**api.request_headers(stream=self._exchange.wants_stream), **headers}

    # ── responses ─────────────────────────────────────────────────────────────────────────────────────────────────

    def opens_stream(self, status: int, content_type: str) -> bool:
        """Start the reply. Return whether it is streamed: passed to `feed` and `close`, not to `translate_body`."""
        if status >= 300:
            return False
        self._receiver = self._exchange.receive(content_type)
        if self._receiver.is_streaming:
            self._request = None  # a stream can last long, and the request of an agent has megabytes
        return self._receiver.is_streaming

    def response_headers(self, upstream_headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        """Return the upstream's headers without those that describe the body, because the body is rewritten."""
        return [(name, value) for name, value in upstream_headers if name.lower() not in _BODY_HEADERS]

    def translate_body(self, status: int, content_type: str, body: bytes) -> SdkResponse | None:
        """Translate a response that is not streamed. A body that is not a reply becomes an error.

        None: the upstream refused something that the request can do without. It is changed, and should be sent again.
        """
        if self._receiver is None:
            error = error_from_response(status, {}, body, now=0)
            return None if self._correct(error) else self._error_status_response(error, status, content_type, body)
        try:
            translated = self._receiver.feed(body) + self._receiver.close()
        except UpstreamError as error:  # too large
            return self._failure_response(Failure(str(error)))
        if self._receiver.failed_early and (failure := self._receiver.translator.tally.failure):
            return None if self._correct(error_from_failure(failure)) else self._failure_response(failure)
        response_type = EVENT_STREAM_TYPE if self._exchange.wants_stream else JSON_TYPE
        return SdkResponse(status, response_type, self._report_exchange(translated))

    def _correct(self, error: UpstreamFailed) -> bool:
        """Change the request if the upstream refused something that it can do without. Return whether it is changed.

        Each kind of refusal is corrected once per request.
        """
        refusal = recognize_refusal(error.upstream_status, str(error))
        if refusal is None or refusal.kind in self._corrected_kinds or self._request is None:
            return False
        self._corrected_kinds.add(refusal.kind)
        refused_body = self._exchange.body
        profile = corrected_profile(
            self._profile, self._upstream.api, refusal, lambda: len(refused_body) // MIN_BYTES_PER_TOKEN
        )
        exchange = None if profile is None else self._translate(self._request, profile)
        if profile is None or exchange is None or exchange.body == refused_body:
            return False
        self._profile, self._exchange, self._receiver = profile, exchange, None
        self._memory.learn(self._served_model, refusal)
        message, hint = REFUSAL_MESSAGES[refusal.kind]
        if self._memory.is_first_report(self._served_model, message):
            LOG.warning("%s at %s: %s; %s", self._model, self._upstream.host, message, hint)
        detail = f"{error}; sent again without what was refused ({refusal.kind})"
        self._findings.append(Finding("refusal-corrected", detail))
        return True

    def fail(self, message: str) -> SdkResponse:
        """Return the error response for a body that cannot be read."""
        return self._failure_response(Failure(message))

    def refuse_redirect(self, status: int, problem: str) -> SdkResponse:
        """Return the error response for a redirect that is not followed. SDKs do not retry its status."""
        self._failure = problem
        self._report_exchange(b"")
        return error_response(self._wire, status, Failure(problem))

    def _failure_response(self, failure: Failure) -> SdkResponse:
        """Return the error response for a failure that the upstream sent with a success status."""
        return self._error_response(error_from_failure(failure), failure.native)

    def _error_status_response(self, error: UpstreamFailed, status: int, content_type: str, body: bytes) -> SdkResponse:
        """Translate a response with an error status.

        A client on the same wire gets the upstream's body unchanged. For other wires the error is rewritten.
        """
        is_object = read_full_object(body.decode("utf-8-sig", "replace")) is not None
        if is_object and self._wire != self._upstream.api:
            return self._error_response(error)
        self._failure = str(error)
        return SdkResponse(status, content_type, self._report_exchange(body))

    def _error_response(self, error: UpstreamFailed, native: Any = None) -> SdkResponse:
        """Return the error in the format of the SDK's wire. `native`: the upstream's own fields of it."""
        self._failure = str(error)
        failure = Failure(str(error), code=error.code or None)
        if self._wire == self._upstream.api:
            failure = msgspec.structs.replace(failure, native=native)
        response = error_response(self._wire, error.status, failure)
        self._report_exchange(b"")
        return response

    def feed(self, data: bytes) -> bytes:
        receiver = self._open_receiver()
        output = receiver.feed(data)
        return self._report_exchange(output) if receiver.translator.ended else output

    def close(self, disconnect_reason: str = "") -> bytes:
        """Return the end of a stream. `disconnect_reason` is set if the connection broke."""
        receiver = self._open_receiver()
        return self._report_exchange(
            receiver.translator.abort(disconnect_reason) if disconnect_reason else receiver.close()
        )

    def finish(self) -> None:
        """Report the exchange when the client closes the stream, whether it has read all of it or not."""
        self._report_exchange(b"")

    def _open_receiver(self) -> ReplyReceiver:
        assert self._receiver is not None, "opens_stream is called first"
        return self._receiver

    def _report_exchange(self, output: bytes) -> bytes:
        """Call the `on_exchange` hook once, and return `output` unchanged."""
        hook, self._on_exchange = self._on_exchange, None
        if hook is None:
            return output
        receiver = self._receiver or self._exchange.receive("")
        translator = receiver.translator
        summary = ExchangeSummary(
            url=self.url,
            model=self._model,
            dialect=translator.dialect.name if translator.dialect else "",
            findings=[*self._findings, *self._exchange.findings, *receiver.findings, *translator.findings],
            failure=self._failure or (translator.tally.failure.message if translator.tally.failure else ""),
        )
        try:
            hook(summary)
        except Exception:  # an error in the program's hook must not break the reply
            LOG.exception("on_exchange raised")
        return output


def error_response(wire: str, status: int, failure: Failure) -> SdkResponse:
    """Return an error response in the format of this wire, with the error type for the status."""
    typed_failure = msgspec.structs.replace(failure, type=get_wire(wire).HTTP_API.error_type(status))
    body, _ = get_wire(wire).write_body([], [typed_failure], Options(), ToolSet(None), None)
    return SdkResponse(status, JSON_TYPE, encode_json(body))
