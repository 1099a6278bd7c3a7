"""One request of an SDK on its way to an upstream that speaks another wire, or writes calls as text, and the way back.

It moves no bytes: a transport sends what `Crossing.request` says, and gives the answer to `Crossing.answer`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec

from interlingua.dialect import Dialect
from interlingua.errors import InterlinguaError
from interlingua.events import Finding
from interlingua.json_text import encode_json, read_values
from interlingua.options import Delivery, Options, ReasoningPolicy
from interlingua.pipeline import Translator
from interlingua.profile import CHAT, MESSAGES, RESPONSES, STRANGER, Profile
from interlingua.request_translation import prepare_request
from interlingua.upstreams import profile_for, profile_named

__all__ = ["Crossing", "Exchange", "Upstream", "wire_at"]

PATHS = {CHAT: "/chat/completions", MESSAGES: "/messages", RESPONSES: "/responses"}
VERSION = "2023-06-01"
JSON, EVENTS = "application/json", "text/event-stream"
_OF_BODY = frozenset({"content-length", "content-encoding", "transfer-encoding", "content-type", "connection"})
_NOT_SENT = _OF_BODY | {"host", "accept-encoding", "accept", "authorization", "x-api-key"}
_OF_SDK = ("x-stainless-", "anthropic-")


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """What a hook is told of one request, once its reply is over."""

    url: str
    model: str
    dialect: str
    findings: list[Finding]
    failure: str = ""
    """Why the reply failed; nothing if it did not."""


class Upstream(msgspec.Struct, frozen=True, kw_only=True):
    """Who is asked, and how its replies are treated."""

    url: str
    api: str = CHAT
    profile: str = "auto"
    dialect: str | Dialect = "auto"
    delivery: Delivery = "stream"
    reasoning: ReasoningPolicy = "keep"
    seal_key: bytes = b""
    extra: dict[str, Any] = {}
    """Further fields of every request body."""
    on_exchange: Callable[[Exchange], None] | None = None

    @property
    def endpoint(self) -> str:
        """Where it is asked. Its address may lack the version, as Anthropic's does, or have the path already."""
        base = self.url.rstrip("/").removesuffix(PATHS[self.api])
        path = urlsplit(base).path.strip("/")
        versioned = any(part[:1] == "v" and part[1:2].isdigit() for part in path.split("/"))
        return base + ("" if versioned or (path and self.api != MESSAGES) else "/v1") + PATHS[self.api]

    def described(self) -> Profile:
        return profile_for(self.url) if self.profile == "auto" else profile_named(self.profile)


def wire_at(path: str) -> str | None:
    """What a client speaks that asks this path; None if it asks for something else than a reply."""
    return next((wire for wire, end in PATHS.items() if path.rstrip("/").endswith(end)), None)


class Crossing:
    """One request and its reply. `created` is the time, in seconds since 1970."""

    def __init__(self, upstream: Upstream, wire: str, body: bytes, created: int) -> None:
        self._upstream = upstream
        self._wire = wire
        self._hook = upstream.on_exchange
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
        self.url = upstream.endpoint
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
        key = given.get("x-api-key") or given.get("authorization", "").removeprefix("Bearer ")
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

    def response_headers(self, given: Iterable[tuple[str, str]], type: str) -> list[tuple[str, str]]:
        """What the upstream says, but for what it says of a body that is another one now."""
        return [*((name, value) for name, value in given if name.lower() not in _OF_BODY), ("content-type", type)]

    def whole(self, status: int, type: str, body: bytes) -> tuple[bytes, str]:
        """The answer that came at once, for the client, and what it is."""
        translator = self._translator
        if status < 300 and type.lower().startswith(EVENTS):
            return self._told(encode_json(translator.fold(body))), JSON
        value = read_values(body.decode("utf-8-sig", "replace"))
        if value is None:
            return body, type
        if status < 300 and self._streams:
            return self._told(translator.stream(value)), EVENTS
        return self._told(encode_json(translator.reply(value))), JSON

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
        if hook is not None:
            translator = self._translator
            dialect = translator.dialect.name if translator.dialect else ""
            failure = translator.tally.failure.message if translator.tally.failure else ""
            findings = [*self._findings, *translator.findings]
            hook(Exchange(url=self.url, model=self._model, dialect=dialect, findings=findings, failure=failure))
        return sent
