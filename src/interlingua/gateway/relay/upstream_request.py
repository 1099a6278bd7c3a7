"""A client's request, and its translation for one upstream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from interlingua.core.options import Options
from interlingua.gateway.observability.exchange_record import ExchangeRecord
from interlingua.gateway.routing.routes import Route
from interlingua.gateway.settings.schema import Settings
from interlingua.gateway.tokens.calibration import EstimateCalibration, tokens_from_size
from interlingua.gateway.tokens.estimator import estimate_tokens
from interlingua.gateway.upstream.capabilities import fit_reply, truncated_prompt
from interlingua.translation.exchange import Exchange, ReplyReceiver
from interlingua.upstreams.adapt.generation_settings import DEFAULT_MAX_TOKENS
from interlingua.wires import get_wire

__all__ = ["ClientRequest", "UpstreamRequest", "prepare_upstream_request"]


REPLY_LIMIT_FIELDS = ("max_completion_tokens", "max_tokens", "max_output_tokens")
"""Fields of the wires that limit the tokens of a reply."""


class ClientRequest(msgspec.Struct, frozen=True):
    """Request of a client, independent of the upstream that will receive it."""

    wire: str
    body: dict[str, Any]
    model: str
    stream: bool
    headers: Mapping[str, str]
    query: str
    created: int
    body_size: int
    """Size of the body in bytes."""
    seal_key: bytes
    client_id: str
    """The digest of the client's API key; "" if it sent none."""
    passthrough_key: str
    """The client's own API key for the upstream; "" if the client sent none or a key of the gateway."""
    reply_id: str = ""
    """Id that no other request has, for the ids in its reply."""
    trace_headers: Mapping[str, str] = {}
    """Headers of the gateway's own trace for every upstream; empty without tracing."""


class UpstreamRequest(msgspec.Struct, frozen=True):
    """Request for one upstream."""

    route: Route
    exchange: Exchange
    input_tokens: int
    """Estimated number of input tokens; 0 if it is not reported to the client."""
    truncated_tokens: int = 0
    """Estimated length of a prompt that the server will truncate, in tokens; 0 if it fits."""

    def receive(self, content_type: str, max_body_bytes: int) -> ReplyReceiver:
        """Return the receiver for a reply with this content type."""
        return self.exchange.receive(content_type, input_tokens=self.input_tokens, max_body_bytes=max_body_bytes)


def prepare_upstream_request(
    client_request: ClientRequest,
    route: Route,
    settings: Settings,
    calibration: EstimateCalibration,
    record: ExchangeRecord,
) -> UpstreamRequest:
    """Translate the request for this upstream. Raises InterlinguaError if it cannot be translated."""
    options = Options(
        prefill=route.prefill,
        delivery=route.delivery,
        arguments=route.arguments,
        reasoning=route.reasoning,
        limits=settings.limits,
        served_as=client_request.model if client_request.model != route.model else "",
        reply_id=client_request.reply_id,
        created=client_request.created,
        seal_key=client_request.seal_key,
    )
    strict = settings.history == "strict"
    route = _fit_reply(client_request, route, calibration)
    truncated_tokens = truncated_prompt(
        route, client_request.body_size, lambda: estimate_tokens(client_request.body, route.model)
    )
    exchange = Exchange(client_request.wire, client_request.body, route.target, options, strict=strict)
    input_tokens = _estimate_input_tokens(client_request, route, calibration, record)
    if truncated_tokens:
        record.estimated_tokens = 0  # the usage of a truncated prompt says nothing about estimates
    return UpstreamRequest(route, exchange, input_tokens, truncated_tokens)


def _fit_reply(client_request: ClientRequest, route: Route, calibration: EstimateCalibration) -> Route:
    """Limit the reply to what the context window leaves, if the window is known."""
    body = client_request.body
    requested = next((body[name] for name in REPLY_LIMIT_FIELDS if isinstance(body.get(name), int)), 0)
    if not requested and not get_wire(route.upstream.api).TRAITS.requires_max_tokens:
        return route
    return fit_reply(
        route,
        requested or DEFAULT_MAX_TOKENS,
        client_request.body_size,
        lambda: calibration.count(body, route.name, route.model),
    )


def _estimate_input_tokens(
    client_request: ClientRequest, route: Route, calibration: EstimateCalibration, record: ExchangeRecord
) -> int:
    """Estimate the input tokens to report to the client; 0 if the client does not want usage.

    Some wires report them in the first event of a stream, before the upstream has sent its count. The others report
    them at the end, but the request body is released by then.
    """
    traits = get_wire(client_request.wire).TRAITS
    names = route.name, route.model
    if traits.reports_usage_on_request and client_request.stream and not _requests_usage(client_request.body):
        return 0
    expected = calibration.estimate_for_comparison(client_request.body, *names)
    is_other_wire = client_request.wire != route.upstream.api
    if expected is None and client_request.stream and traits.reports_input_first and is_other_wire:
        expected = estimate_tokens(client_request.body, route.model)
    record.estimated_tokens = expected or 0
    return (
        tokens_from_size(client_request.body_size)
        if expected is None
        else calibration.apply_correction(expected, *names)
    )


def _requests_usage(body: dict[str, Any]) -> bool:
    options = body.get("stream_options")
    return isinstance(options, dict) and options.get("include_usage") is True
