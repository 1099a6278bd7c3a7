"""Translation of a client request for one upstream, and the translator for its reply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from interlingua.common.jsontext.codec import encode_json
from interlingua.core.options import Options
from interlingua.core.tools import Tool
from interlingua.events import Finding
from interlingua.gateway.observability.exchange_record import ExchangeRecord
from interlingua.gateway.routing.routes import Route
from interlingua.gateway.settings.schema import Settings
from interlingua.gateway.tokens.calibration import EstimateCalibration, tokens_from_size
from interlingua.gateway.tokens.estimator import estimate_tokens
from interlingua.translation.request_translation import prepare_request
from interlingua.translation.translator import Translator
from interlingua.upstreams.profile import CHAT, MESSAGES, UNKNOWN

__all__ = ["ClientRequest", "UpstreamRequest", "prepare_upstream_request", "translator_for", "upstream_identity"]


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
    passthrough_key: str
    """The client's own API key for the upstream; "" if the client sent none or a key of the gateway."""


class UpstreamRequest(msgspec.Struct, frozen=True):
    """Request in the format of one upstream."""

    route: Route
    body: bytes
    findings: list[Finding]
    tools: list[Tool]
    taken_ids: tuple[str, ...]
    input_tokens: int
    """Estimated number of input tokens; 0 if it is not reported to the client."""


def prepare_upstream_request(
    client_request: ClientRequest,
    route: Route,
    settings: Settings,
    calibration: EstimateCalibration,
    exchange: ExchangeRecord,
) -> UpstreamRequest:
    """Translate the request for this upstream. Raises InterlinguaError if it cannot be translated."""
    translated = prepare_request(
        client_request.body,
        client_request.wire,
        route.upstream.api,
        route.model,
        route.profile,
        Options(seal_key=client_request.seal_key, upstream=upstream_identity(route)),
        strict=settings.history == "strict",
    )
    body = encode_json({**translated.body, **route.extra})
    input_tokens = _estimate_input_tokens(client_request, route, calibration, exchange)
    return UpstreamRequest(route, body, translated.findings, translated.tools, translated.taken_ids, input_tokens)


def translator_for(client_request: ClientRequest, upstream_request: UpstreamRequest, settings: Settings) -> Translator:
    """Return the translator for the reply to this request."""
    route = upstream_request.route
    options = Options(
        prefill=route.prefill,
        delivery=route.delivery,
        reasoning=route.reasoning,
        limits=settings.limits,
        taken_ids=upstream_request.taken_ids,
        served_as=client_request.model if client_request.model != route.model else "",
        created=client_request.created,
        input_tokens=upstream_request.input_tokens,
        seal_key=client_request.seal_key,
        upstream=upstream_identity(route),
    )
    return Translator(
        route.upstream.api, client_request.wire, route.dialect, route.model, upstream_request.tools, options
    )


def _estimate_input_tokens(
    client_request: ClientRequest, route: Route, calibration: EstimateCalibration, exchange: ExchangeRecord
) -> int:
    """Estimate the input tokens to report to the client; 0 if the client does not want usage.

    A Messages stream reports them in its first event, before the upstream has sent its count. The other wires report
    them at the end, but the request body is released by then. A Chat Completions stream reports usage only on request.
    """
    names = route.name, route.model
    if client_request.wire == CHAT and client_request.stream and not _requests_usage(client_request.body):
        return 0
    expected = calibration.estimate_for_comparison(client_request.body, *names)
    if expected is None and client_request.stream and MESSAGES == client_request.wire != route.upstream.api:
        expected = estimate_tokens(client_request.body, route.model)
    exchange.estimated_tokens = expected or 0
    return (
        tokens_from_size(client_request.body_size)
        if expected is None
        else calibration.apply_correction(expected, *names)
    )


def upstream_identity(route: Route) -> str:
    """Return the identity under which reasoning of this upstream is signed.

    It is the profile name, because one upstream can be configured under several names. Unknown upstreams all share one
    profile, so their configured name is used, with `@`: an unknown upstream that is named `openai` is not OpenAI.
    """
    return f"@{route.name}" if route.profile.name == UNKNOWN else route.profile.name


def _requests_usage(body: dict[str, Any]) -> bool:
    options = body.get("stream_options")
    return isinstance(options, dict) and options.get("include_usage") is True
