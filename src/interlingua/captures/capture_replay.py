"""Translation of a captured reply once more, with the recorded wires, dialect, tools and options."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from interlingua.captures.capture_format import (
    AnsweredLine,
    CapturedExchange,
    ClientRequestLine,
    EndLine,
    RouteFacts,
    UpstreamRequestLine,
    read_capture,
)
from interlingua.common.jsontext.codec import read_full_object
from interlingua.core.options import Options
from interlingua.core.tool_choice import ToolChoice, read_tool_choice
from interlingua.core.tools import Tool
from interlingua.errors import BadInput, InterlinguaError
from interlingua.events import Finding
from interlingua.parsing.dialect import Dialect
from interlingua.trace import TraceEvent
from interlingua.translation.exchange import MAX_BODY_BYTES, ReplyReceiver
from interlingua.translation.request_translation import PreparedRequest, prepare_request
from interlingua.translation.translator import Translator
from interlingua.wires.http_api import EVENT_STREAM_TYPE

__all__ = [
    "CaptureReplay",
    "NoReply",
    "ReplayedReply",
    "ReplyReplay",
    "TimedEvent",
    "describe_outcome",
    "load_capture",
    "plan_replay",
    "replay_reply",
]

UNREAD_OUTCOMES = frozenset({"client-left", "stopped", "worker-died"})
"""Outcomes of exchanges whose reply was not read to its end, although the upstream has not failed."""
REQUEST_ID_PREFIX = "req_"
"""Beginning of the id of a request. The rest is the id of its reply."""


class NoReply(BadInput):
    """A captured exchange has no reply of an upstream."""


class CaptureReplay(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the translation of a captured reply."""

    source: str
    """Wire of the upstream."""
    target: str
    """Wire of the client."""
    dialect: str | Dialect
    model: str
    tools: list[Tool] | None
    tool_choice: ToolChoice | None
    options: Options
    wants_stream: bool = True
    content_type: str = EVENT_STREAM_TYPE
    """Content type of the upstream's response; "" if it is unknown."""


class TimedEvent(msgspec.Struct, frozen=True):
    """Trace event, and the time of the data that it belongs to, in seconds since the start of the exchange."""

    at: float
    event: TraceEvent


class ReplayedReply(msgspec.Struct, frozen=True):
    """A captured reply, translated once more."""

    events: list[TimedEvent]
    sent: bytes
    """Everything that the client gets."""
    findings: list[Finding]
    dialect: str
    """Name of the dialect in use at the end; "" if none was chosen."""


def load_capture(path: str) -> CapturedExchange:
    """Read a capture file. Raises BadInput."""
    try:
        return read_capture(path)
    except OSError as error:
        raise BadInput(
            f"cannot read {path}: {error.strerror}", "pass a file that `interlingua serve --capture` has written"
        ) from error


def plan_replay(captured: CapturedExchange, name: str) -> CaptureReplay:
    """Return how the reply of this exchange was translated. Raises NoReply, with this name, if there is none."""
    ends = captured.lines_of(EndLine)
    exchange: dict[str, Any] = ends[-1].exchange if ends else {}
    asked = captured.lines_of(UpstreamRequestLine)
    route = asked[-1].route if asked else None
    requests = captured.lines_of(ClientRequestLine)
    source = route.wire if route else exchange.get("upstream_wire")
    target = exchange.get("wire") or (requests[0].wire if requests else None)
    if not isinstance(source, str) or not isinstance(target, str) or not source:
        outcome = describe_outcome(captured)
        problem = "no request was sent to an upstream" if ends else "the upstream is not recorded"
        raise NoReply(f"{name}: {problem} ({outcome})", "there is nothing to translate")
    dialect = (route.dialect if route else None) or exchange.get("dialect")
    model = str((route.model if route else None) or exchange.get("upstream_model") or "")
    upstream_body = _decode_body(asked[-1].data) if asked else None
    client_body = _decode_body(requests[0].data) if requests else None
    options = _options(route, requests, client_body, model)
    prepared = _prepare(client_body, target, source, model, route, options)
    if prepared is not None:
        options = msgspec.structs.replace(options, taken_ids=prepared.taken_ids, echo=prepared.echo)
    is_stream = bool(exchange.get("stream", True))
    return CaptureReplay(
        source=source,
        target=target,
        dialect=str(dialect or "auto"),
        model=model,
        tools=_offered_tools(upstream_body) if prepared is None else prepared.tools,
        tool_choice=_tool_choice(upstream_body) if prepared is None else prepared.tool_choice,
        options=options,
        wants_stream=client_body.get("stream") is True if client_body else is_stream,
        content_type=_content_type(captured, is_stream),
    )


class ReplyReplay:
    """Translation of a captured reply, read by read.

    Args:
        captured: The exchange.
        replay: How its reply is translated.
        has_ended: False if the reply is still arriving: then its end is not translated.
    """

    def __init__(self, captured: CapturedExchange, replay: CaptureReplay, *, has_ended: bool = True) -> None:
        self._has_ended = has_ended and not _was_left(captured)
        self._reads = captured.received
        self._at = 0.0
        self._events: list[TimedEvent] = []
        self._sent: list[bytes] = []
        self._translator = Translator(
            source=replay.source,
            target=replay.target,
            dialect=replay.dialect,
            model=replay.model or None,
            tools=replay.tools,
            tool_choice=replay.tool_choice,
            options=replay.options,
            observer=self._observe,
        )
        is_stream = replay.content_type.lower().startswith(EVENT_STREAM_TYPE)
        self._receiver = ReplyReceiver(
            self._translator, replay.wants_stream, is_stream, MAX_BODY_BYTES, replay.options.limits.values
        )

    def _observe(self, event: TraceEvent) -> None:
        self._events.append(TimedEvent(self._at, event))

    def run(self) -> Iterator[TimedEvent]:
        """Translate the reply, and yield its trace events as they happen. Can be called once."""
        position = 0
        for line in self._reads:
            self._at = line.at
            self._sent.append(self._receiver.feed(line.data))
            yield from self._events[position:]
            position = len(self._events)
        if self._has_ended:
            self._sent.append(self._receiver.close())
        yield from self._events[position:]

    def result(self) -> ReplayedReply:
        """Return the reply, after all events were taken from `run`."""
        dialect = self._translator.dialect.name if self._translator.dialect is not None else ""
        findings = [*self._receiver.findings, *self._translator.findings]
        return ReplayedReply(self._events, b"".join(self._sent), findings, dialect)


def _was_left(captured: CapturedExchange) -> bool:
    """Return whether the gateway stopped reading: then the missing end of the reply is no failure of the upstream."""
    return any(end.exchange.get("outcome") in UNREAD_OUTCOMES for end in captured.lines_of(EndLine))


def replay_reply(captured: CapturedExchange, replay: CaptureReplay, *, has_ended: bool = True) -> ReplayedReply:
    """Translate the reply, and return what happened. `has_ended`: False if it is still arriving."""
    running = ReplyReplay(captured, replay, has_ended=has_ended)
    for _ in running.run():
        pass
    return running.result()


def describe_outcome(captured: CapturedExchange) -> str:
    """Return the recorded outcome of the request, for display."""
    ends = captured.lines_of(EndLine)
    if not ends:
        return "the capture has no end record"
    end = ends[-1]
    exchange = end.exchange
    facts = [f"status {exchange.get('status') or 'none'}", str(exchange.get("outcome") or "outcome unknown")]
    facts += [f"error: {exchange['error']}"] if exchange.get("error") else []
    facts += (
        ["some chunks are missing, because they arrived faster than the disk could write them"] if end.truncated else []
    )
    return ", ".join(facts)


def _prepare(
    client_body: dict[str, Any] | None,
    target: str,
    source: str,
    model: str,
    route: RouteFacts | None,
    options: Options,
) -> PreparedRequest | None:
    """Translate the client's request once more, for the tools and ids that its reply is read with.

    Returns None if it is not recorded, or cannot be translated without what the gateway knew.
    """
    if client_body is None:
        return None
    try:
        return prepare_request(client_body, target, source, model or None, route.profile if route else None, options)
    except InterlinguaError:
        return None


def _options(
    route: RouteFacts | None, requests: list[ClientRequestLine], client_body: dict[str, Any] | None, model: str
) -> Options:
    request = requests[0] if requests else None
    client_model = str((client_body or {}).get("model") or "")
    reply_id = request.id.removeprefix(REQUEST_ID_PREFIX) if request else ""
    return Options(
        prefill=route.prefill if route else "",
        delivery=route.delivery if route else "stream",
        arguments=route.arguments if route else "repair",
        reasoning=route.reasoning if route else "keep",
        served_as=client_model if client_model != model else "",
        reply_id=reply_id if reply_id.isalnum() and reply_id.isascii() and len(reply_id) <= 64 else "",
        created=int(request.unix_time) if request else 0,
        input_tokens=route.input_tokens if route else 0,
    )


def _content_type(captured: CapturedExchange, is_stream: bool) -> str:
    """Return the content type of the last response. Captures without its headers have what the client asked for."""
    answers = [line for line in captured.last_attempt if isinstance(line, AnsweredLine)]
    if not answers:
        return EVENT_STREAM_TYPE if is_stream else ""
    headers = {name.lower(): value for name, value in answers[-1].headers.items()}
    return headers.get("content-type", "")


def _decode_body(data: bytes) -> dict[str, Any] | None:
    return read_full_object(data.decode("utf-8", "replace"))


def _tool_choice(body: dict[str, Any] | None) -> ToolChoice | None:
    """Return the tool choice of a request; None if it is unknown, or not one of the choices that can be read."""
    try:
        return read_tool_choice((body or {}).get("tool_choice"))
    except BadInput:
        return None


def _offered_tools(body: dict[str, Any] | None) -> list[Tool] | None:
    """Return the tools of a request; None if they are unknown."""
    if body is None:
        return None
    definitions = body.get("tools")
    if not isinstance(definitions, list):
        return []
    tools = [Tool.read(tool) for tool in definitions if isinstance(tool, dict) and _has_name(tool)]
    return tools or None


def _has_name(tool: dict[str, Any]) -> bool:
    body = tool.get("function") if isinstance(tool.get("function"), dict) else tool
    return isinstance(body, dict) and isinstance(body.get("name"), str)
