"""Recording of an exchange that the gateway has captured."""

from __future__ import annotations

from datetime import datetime

from interlingua.cassettes.recorded_exchange import RecordedExchange, RecordedUpstream, record_exchange
from interlingua.common.jsontext.codec import read_full_object
from interlingua.errors import BadInput
from interlingua.gateway.observability.capture_format import (
    CapturedExchange,
    ClientRequestLine,
    EndLine,
    UpstreamRequestLine,
)

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
    created = int(datetime.fromisoformat(request.time).timestamp())
    return record_exchange(
        wire=request.wire,
        body=body,
        upstream=RecordedUpstream(
            wire=str(summary.get("upstream_wire") or ""),
            model=str(summary.get("upstream_model") or ""),
            name=str(summary.get("upstream") or ""),
            dialect=str(summary.get("dialect") or "auto"),
        ),
        pieces=[(line.at - sent_at, line.data) for line in captured.received],
        status=int(summary.get("upstream_status") or 200),
        reply_id=request.id.removeprefix(REQUEST_ID_PREFIX),
        created=created,
        completed=created + int(ends[-1].at),
        is_complete=summary.get("outcome") == "ok",
    )
