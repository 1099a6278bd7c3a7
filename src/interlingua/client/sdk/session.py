"""One request of an SDK on its way to an upstream that speaks another wire, or writes calls as text, and the way back.

It moves no bytes: a transport sends what `Crossing.request` says, and gives the answer to `Crossing.answer`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

import msgspec

from interlingua.client.sdk.upstream_config import VERSION, Exchange, Upstream, key_in
from interlingua.common.jsontext.codec import encode_json, read_values
from interlingua.core.options import Options
from interlingua.core.tools import Offer
from interlingua.errors import InterlinguaError, shortened
from interlingua.events import Failure
from interlingua.translation.request_translation import prepare_request
from interlingua.translation.translator__pipeline import Translator
from interlingua.upstreams.profile import MESSAGES, STRANGER
from interlingua.wires import wire_named
from interlingua.wires.error_types import error_type, status_of

__all__ = ["Answer", "Crossing", "error_answer"]

LOG = logging.getLogger("interlingua.client")
BAD_GATEWAY = 502
SHOWN = 2000
"""How much of a body that nobody understands is told."""
JSON, EVENTS = "application/json", "text/event-stream"
_OF_BODY = frozenset({"content-length", "content-encoding", "transfer-encoding", "content-type", "connection"})
_NOT_SENT = _OF_BODY | {"host", "accept-encoding", "accept", "authorization", "x-api-key"}
_OF_SDK = ("x-stainless-", "anthropic-")
_EVENT_LINES = (b"data:", b"event:")
"""What a stream begins with, whatever the upstream calls it."""


class Answer(msgspec.Struct, frozen=True):
    """What a client is told that is told all at once."""

    status: int
    type: str
    body: bytes


class Crossing:
    """One request and its reply. `query` is the SDK's, `created` the time, in seconds since 1970."""

    def __init__(self, upstream: Upstream, wire: str, body: bytes, query: str, created: int) -> None:
        self._upstream = upstream
        self._wire = wire
        self._hook = upstream.on_exchange
        self._failure = ""
        asked = read_values(body.decode("utf-8", "replace"))
        if asked is None:
            raise InterlinguaError("the request's body is no JSON object", "ask through the SDK")
        self._streams = bool(asked.get("stream"))
        profile = upstream.described()
        owner = f"@{urlsplit(upstream.url).netloc}" if profile.name == STRANGER else profile.name
        options = Options(seal_key=upstream.seal_key, upstream=owner)
        prepared = prepare_request(asked, wire, upstream.api, None, profile, options)
        model = str(asked.get("model") or "")
        self._findings = prepared.findings
        self.body = encode_json({**prepared.body, **upstream.extra})
        self.url = upstream.endpoint + upstream.asked_with(query)
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

    def headers(self, given: Mapping[str, str]) -> dict[str, str]:
        """What the SDK says, as this upstream understands it."""
        same = self._wire == self._upstream.api
        dropped = () if same else _OF_SDK
        headers = {
            name: value
            for name, value in given.items()
            if name.lower() not in _NOT_SENT and not name.lower().startswith(dropped)
        }
        key = key_in(given)
        headers |= {"content-type": JSON, "accept": EVENTS if self._streams else JSON, "accept-encoding": "identity"}
        if key and same and "authorization" not in given:
            headers["x-api-key"] = key
        elif key:
            headers["authorization"] = f"Bearer {key}"
        if self._upstream.api == MESSAGES:
            headers = {"anthropic-version": VERSION, **headers} | ({"x-api-key": key} if key else {})
        return headers

    # ── the way back ──────────────────────────────────────────────────────────────────────────────────────────────

    def passes_as_stream(self, status: int, type: str) -> bool:
        """Whether the answer is read as it comes."""
        return self._streams and status < 300 and type.lower().startswith(EVENTS)

    def response_headers(self, given: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        """What the upstream says, but for what it says of a body that is another one now."""
        return [(name, value) for name, value in given if name.lower() not in _OF_BODY]

    def whole(self, status: int, type: str, body: bytes) -> Answer:
        """The answer that came at once, for the client. What is no reply is an error, whatever its status says."""
        if status >= 300:
            return self._refused(status, type, body)
        translator = self._translator
        streamed = type.lower().startswith(EVENTS) or body.lstrip().startswith(_EVENT_LINES)
        if streamed and self._streams:
            return Answer(status, EVENTS, self._told(translator.feed(body) + translator.close()))
        value = None if streamed else read_values(body.decode("utf-8-sig", "replace"))
        if streamed:
            sent = encode_json(translator.fold(body))
        elif value is None:
            return self._failed(Failure(f"what the upstream sent is no reply: {_text(body)!r}"))
        else:
            sent = translator.stream(value) if self._streams else encode_json(translator.reply(value))
        if (failure := translator.tally.failure) and not (self._streams and translator.tally.spoken):
            return self._failed(failure)
        return Answer(status, EVENTS if self._streams else JSON, self._told(sent))

    def _failed(self, failure: Failure) -> Answer:
        """It said that all is well, and it is not."""
        status = status_of(failure.type, failure.code) or BAD_GATEWAY
        native = failure.native if self._wire == self._upstream.api else None
        return self._error(status, msgspec.structs.replace(failure, native=native))

    def _refused(self, status: int, type: str, body: bytes) -> Answer:
        """It said no. A client that speaks as it does hears that in its own words, any other by its status."""
        value = read_values(body.decode("utf-8-sig", "replace"))
        self._failure = _text(body) or f"status {status}"
        if value is None or self._wire == self._upstream.api:
            return Answer(status, type, self._told(body))
        self._translator.reply(value)
        said = self._translator.tally.failure
        failure = said if said and value.get("error") else Failure(self._failure)
        return self._error(status, msgspec.structs.replace(failure, native=None))

    def _error(self, status: int, failure: Failure) -> Answer:
        self._failure = failure.message
        answer = error_answer(self._wire, status, failure)
        self._told(b"")
        return answer

    def feed(self, data: bytes) -> bytes:
        sent = self._translator.feed(data)
        return self._told(sent) if self._translator.ended else sent

    def close(self, broken: str = "") -> bytes:
        """The end of a stream; `broken` says why it is over, if that was not its own will."""
        return self._told(self._translator.abort(broken) if broken else self._translator.close())

    def leave(self) -> None:
        """The client has heard enough, be it all or not."""
        self._told(b"")

    def _told(self, sent: bytes) -> bytes:
        """Tells the hook, if nobody has yet, and gives back what goes to the client."""
        hook, self._hook = self._hook, None
        if hook is None:
            return sent
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
        return sent


def error_answer(wire: str, status: int, failure: Failure) -> Answer:
    """An error as clients of this wire know it by its status."""
    told = msgspec.structs.replace(failure, type=error_type(wire, status))
    body, _ = wire_named(wire).write_body([], [told], Options(), Offer(None), None)
    return Answer(status, JSON, encode_json(body))


def _text(body: bytes) -> str:
    return shortened(body[: 4 * SHOWN].decode("utf-8", "replace").strip(), SHOWN)
