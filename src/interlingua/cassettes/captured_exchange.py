"""Recording of an exchange that the gateway has captured."""

from __future__ import annotations

from typing import Any

from interlingua.captures.capture_format import (
    CapturedExchange,
    ClientRequestLine,
    EndLine,
    RouteFacts,
    UpstreamRequestLine,
)
from interlingua.cassettes.recorded_exchange import RecordedExchange, RecordedUpstream, record_exchange
from interlingua.common.jsontext.codec import read_full_object
from interlingua.errors import BadInput
from interlingua.upstreams.profile import UNKNOWN

__all__ = ["record_captured"]

REQUEST_ID_PREFIX = "req_"
_HINT = "pass a capture of a request that an upstream has answered"


def record_captured(captured: CapturedExchange) -> RecordedExchange:
    """Return the recording of a captured exchange. Raises BadInput if it has no reply."""
    requests, ends = captured.lines_of(ClientRequestLine), captured.lines_of(EndLine)
    attempts = captured.lines_of(UpstreamRequestLine)
    body = read_full_object(requests[0].data.decode("utf-8", "replace")) if requests else None
    if body is None or not ends or not attempts:
        raise BadInput("the capture has no request, or no upstream was asked", _HINT)
    summary, request, sent_at = ends[-1].exchange, requests[0], attempts[-1].at
    if ends[-1].truncated:
        raise BadInput("the capture is truncated", _HINT)
    created = int(request.unix_time)
    return record_exchange(
        wire=request.wire,
        body=body,
        upstream=_recorded_upstream(attempts[-1].route, summary),
        pieces=[(line.at - sent_at, line.data) for line in captured.received],
        status=int(summary.get("upstream_status") or 200),
        reply_id=request.id.removeprefix(REQUEST_ID_PREFIX),
        created=created,
        completed=created + int(ends[-1].at),
        input_tokens=attempts[-1].route.input_tokens if attempts[-1].route else 0,
        is_complete=summary.get("outcome") == "ok",
    )


def _recorded_upstream(route: RouteFacts | None, summary: dict[str, Any]) -> RecordedUpstream:
    """Return how the reply is read. Captures of older versions have only the summary."""
    dialect = str(summary.get("dialect") or "auto")
    if route is None:
        return RecordedUpstream(
            wire=str(summary.get("upstream_wire") or ""),
            model=str(summary.get("upstream_model") or ""),
            name=str(summary.get("upstream") or ""),
            dialect=dialect,
        )
    return RecordedUpstream(
        wire=route.wire,
        model=route.model,
        name=route.upstream,
        profile=route.profile or UNKNOWN,
        dialect=dialect,
        prefill=route.prefill,
        delivery=route.delivery,
        arguments=route.arguments,
        reasoning=route.reasoning,
    )
