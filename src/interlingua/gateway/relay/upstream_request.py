"""A client's request, and its translation for one upstream."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import cache, cached_property
from typing import Any

import msgspec

from interlingua.captures.capture_format import RouteFacts
from interlingua.core.options import Options, replace_options
from interlingua.gateway.http.request_body import RequestBody
from interlingua.gateway.observability.exchange_record import ExchangeRecord
from interlingua.gateway.routing.routes import Route
from interlingua.gateway.settings.schema import Settings
from interlingua.gateway.token_calibration import EstimateCalibration, tokens_from_size
from interlingua.gateway.upstream.capabilities import fit_reply, truncated_prompt
from interlingua.tokens.estimator import (
    EMPTY_CONVERSATION,
    ConversationSize,
    estimate_tokens,
    measure_prompt,
    measure_tools,
    request_tokens,
)
from interlingua.translation.exchange import Exchange, ReplyReceiver, plan_translation
from interlingua.translation.incremental_translation import EncodedRequest, IncrementalTranslation
from interlingua.translation.request_cache import RequestCache
from interlingua.translation.undecoded_request import TOOLS
from interlingua.upstreams.adapt.generation_settings import DEFAULT_MAX_TOKENS
from interlingua.upstreams.profile import Profile
from interlingua.wires import get_wire
from interlingua.wires.requests.shared_tools import SharedToolList

__all__ = ["ClientRequest", "RequestPreparation", "UpstreamRequest"]


DEFAULT_OPTIONS = Options()
PROMPT_FIELDS = ("system", "instructions")
"""Fields of the wires for the system prompt."""
REPLY_LIMIT_FIELDS = ("max_completion_tokens", "max_tokens", "max_output_tokens")
"""Fields of the wires that limit the tokens of a reply."""


class ClientRequest(msgspec.Struct, frozen=True):
    """Request of a client, independent of the upstream that will receive it."""

    wire: str
    body: RequestBody
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
    echo: Mapping[str, Any] = {}
    """Fields that the reply repeats, if they differ from those of the body."""
    trace_headers: Mapping[str, str] = {}
    """Headers of the gateway's own trace for every upstream; empty without tracing."""
    clock: Callable[[], float] = time.time
    """Clock for times in the reply: that of the recording, if the reply is replayed."""
    input_tokens: int = 0
    """Estimated input tokens, if they are known already: those of a recorded reply."""


class UpstreamRequest(msgspec.Struct, frozen=True):
    """Request for one upstream."""

    route: Route
    exchange: Exchange
    input_tokens: int
    """Estimated number of input tokens; 0 if it is not reported to the client."""
    truncated_tokens: int = 0
    """Estimated length of a prompt that the server will truncate, in tokens; 0 if it fits."""

    def facts(self) -> RouteFacts:
        """Return what the capture of an exchange has about its route."""
        route, dialect = self.route, self.exchange.reply_dialect
        return RouteFacts(
            upstream=route.name,
            wire=route.upstream.api,
            model=route.model,
            profile=route.profile.name,
            dialect=dialect if isinstance(dialect, str) else dialect.name,
            prefill=route.prefill,
            delivery=route.delivery,
            arguments=route.arguments,
            reasoning=route.reasoning,
            input_tokens=self.input_tokens,
        )

    def receive(self, content_type: str, max_body_bytes: int) -> ReplyReceiver:
        """Return the receiver for a reply with this content type."""
        return self.exchange.receive(content_type, input_tokens=self.input_tokens, max_body_bytes=max_body_bytes)


class RequestPreparation(msgspec.Struct, frozen=True, dict=True):
    """Preparation of a client's request for one upstream. Its methods may run in a thread."""

    client_request: ClientRequest
    route: Route
    settings: Settings
    calibration: EstimateCalibration
    record: ExchangeRecord
    cache: RequestCache

    def plan(self) -> IncrementalTranslation | None:
        """Return the translation that uses earlier requests of the client; None if there is none for this request."""
        client_request = self.client_request
        request = client_request.body.undecoded
        if request is None:
            return None
        return plan_translation(
            client_request.wire,
            request,
            self.route.target,
            self._options,
            self.cache,
            strict=self._is_strict,
            owner=client_request.client_id,
        )

    def run(self, translation: IncrementalTranslation) -> UpstreamRequest | None:
        """Translate the request with the help of earlier ones. None if it has to be translated as a whole."""
        route, request = self.route, self.client_request.body
        conversation, tools = EMPTY_CONVERSATION, list[Any]()

        @cache
        def estimate() -> int:
            return request_tokens(conversation, self._measure_prompt(), _measure_shared(tools))

        def fit(measured: ConversationSize, decoded_tools: list[Any]) -> Profile:
            nonlocal route, conversation, tools
            conversation, tools = measured, decoded_tools
            route = self._fit_reply(estimate)
            return route.profile

        prepared = translation.run(fit)
        return None if prepared is None else self._finish(route, request, estimate, prepared)

    def run_whole(self) -> UpstreamRequest:
        """Translate the request as a whole. Raises InterlinguaError if it cannot be translated."""
        body, undecoded = self.client_request.body.decode(), self.client_request.body.undecoded
        if undecoded is not None and isinstance(body.get(TOOLS), list):
            body[TOOLS] = self.cache.share_tools(self.client_request.client_id, undecoded.encoded(TOOLS))
        estimate = cache(lambda: estimate_tokens(body, self.route.model))
        return self._finish(self._fit_reply(estimate), body, estimate, None)

    def _finish(
        self,
        route: Route,
        request: RequestBody | dict[str, Any],
        estimate: Callable[[], int],
        prepared: EncodedRequest | None,
    ) -> UpstreamRequest:
        client_request, record = self.client_request, self.record
        truncated_tokens = truncated_prompt(route, client_request.body_size, estimate)
        exchange = Exchange(
            client_request.wire, request, route.target, self._options, strict=self._is_strict, prepared=prepared
        )
        input_tokens = self._estimate_input_tokens(route, estimate)
        if truncated_tokens:
            record.estimated_tokens = 0  # the usage of a truncated prompt says nothing about estimates
        return UpstreamRequest(route, exchange, input_tokens, truncated_tokens)

    @property
    def _is_strict(self) -> bool:
        return self.settings.history == "strict"

    @cached_property
    def _options(self) -> Options:
        client_request, route = self.client_request, self.route
        return replace_options(
            DEFAULT_OPTIONS,
            upstream=route.target.identity,
            prefill=route.prefill,
            delivery=route.delivery,
            arguments=route.arguments,
            reasoning=route.reasoning,
            limits=self.settings.limits,
            served_as=client_request.model if client_request.model != route.model else "",
            reply_id=client_request.reply_id,
            created=client_request.created,
            clock=client_request.clock,
            echo=client_request.echo,
            seal_key=client_request.seal_key,
        )

    def _fit_reply(self, estimate: Callable[[], int]) -> Route:
        """Limit the reply to what the context window leaves, if the window is known."""
        route, body = self.route, self.client_request.body
        if not route.window:
            return route
        requested = next((limit for name in REPLY_LIMIT_FIELDS if isinstance(limit := body.get(name), int)), 0)
        if not requested and not get_wire(route.upstream.api).TRAITS.requires_max_tokens:
            return route
        names = route.name, route.model
        return fit_reply(
            route,
            requested or DEFAULT_MAX_TOKENS,
            self.client_request.body_size,
            lambda: self.calibration.apply_correction(estimate(), *names),
        )

    def _measure_prompt(self) -> ConversationSize:
        """Return the size of the system prompt, apart from messages of the conversation."""
        body, owner, model = self.client_request.body, self.client_request.client_id, self.route.model
        assert body.undecoded is not None, "a request that is decoded as a whole is measured as a whole"
        encoded = b"\n".join(map(body.undecoded.encoded, PROMPT_FIELDS))
        return self.cache.measure_prompt(
            owner, model, encoded, lambda: measure_prompt([*map(body.get, PROMPT_FIELDS)], model)
        )

    def _estimate_input_tokens(self, route: Route, estimate: Callable[[], int]) -> int:
        """Estimate the input tokens to report to the client; 0 if the client does not want usage.

        Some wires report them in the first event of a stream, before the upstream has sent its count. The others report
        them at the end, but the request body is released by then.
        """
        client_request, calibration = self.client_request, self.calibration
        traits = get_wire(client_request.wire).TRAITS
        names = route.name, route.model
        if traits.reports_usage_on_request and client_request.stream and not _requests_usage(client_request.body):
            return 0
        if client_request.input_tokens:
            return client_request.input_tokens
        is_first = client_request.stream and traits.reports_input_first and client_request.wire != route.upstream.api
        expected = estimate() if calibration.needs_comparison(*names) or is_first else None
        self.record.estimated_tokens = expected or 0
        return (
            tokens_from_size(client_request.body_size)
            if expected is None
            else calibration.apply_correction(expected, *names)
        )


def _measure_shared(tools: list[Any]) -> ConversationSize:
    """Return the size of a list of tools, which is measured once if requests share it."""
    if not isinstance(tools, SharedToolList):
        return measure_tools(tools)
    return tools.derive(measure_tools, lambda: measure_tools(tools))


def _requests_usage(body: RequestBody) -> bool:
    options = body.get("stream_options")
    return isinstance(options, dict) and options.get("include_usage") is True
