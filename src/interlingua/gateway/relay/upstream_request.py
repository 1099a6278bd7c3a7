"""What one upstream is asked for a client's question, and what its reply is read with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from interlingua.common.jsontext.codec import encode_json
from interlingua.core.options import Options
from interlingua.core.tools import Tool
from interlingua.events import Finding
from interlingua.gateway.observability.exchange_record import Exchange
from interlingua.gateway.routing.routes import Route
from interlingua.gateway.settings.schema import Settings
from interlingua.gateway.tokens.calibration import TokenCounts, roughly
from interlingua.gateway.tokens.estimator import estimate
from interlingua.translation.request_translation import prepare_request
from interlingua.translation.translator__pipeline import Translator
from interlingua.upstreams.profile import CHAT, MESSAGES, STRANGER

__all__ = ["Prepared", "Question", "known_as", "prepare", "translator_for"]


class Question(msgspec.Struct, frozen=True):
    """What a client asks, whoever will answer."""

    wire: str
    body: dict[str, Any]
    model: str
    stream: bool
    headers: Mapping[str, str]
    query: str
    created: int
    size: int
    """Of its body, in bytes."""
    seal_key: bytes
    own_key: str
    """The key that the client has shown, if it is not one of this gateway's."""


class Prepared(msgspec.Struct, frozen=True):
    """The question as one upstream is asked it."""

    route: Route
    body: bytes
    findings: list[Finding]
    tools: list[Tool]
    taken_ids: tuple[str, ...]
    input_tokens: int
    """About so many; 0 if the client is not to be told."""


def prepare(question: Question, route: Route, settings: Settings, tokens: TokenCounts, exchange: Exchange) -> Prepared:
    """The question for this upstream. Raises InterlinguaError if it cannot be asked it."""
    said = prepare_request(
        question.body,
        question.wire,
        route.upstream.api,
        route.model,
        route.profile,
        Options(seal_key=question.seal_key, upstream=known_as(route)),
        strict=settings.history == "strict",
    )
    body = encode_json({**said.body, **route.extra})
    counted = _input_tokens(question, route, tokens, exchange)
    return Prepared(route, body, said.findings, said.tools, said.taken_ids, counted)


def translator_for(question: Question, prepared: Prepared, settings: Settings) -> Translator:
    """What reads the reply to it."""
    route = prepared.route
    options = Options(
        prefill=route.prefill,
        delivery=route.delivery,
        reasoning=route.reasoning,
        limits=settings.limits,
        taken_ids=prepared.taken_ids,
        served_as=question.model if question.model != route.model else "",
        created=question.created,
        input_tokens=prepared.input_tokens,
        seal_key=question.seal_key,
        upstream=known_as(route),
    )
    return Translator(route.upstream.api, question.wire, route.dialect, route.model, prepared.tools, options)


def _input_tokens(question: Question, route: Route, tokens: TokenCounts, exchange: Exchange) -> int:
    """Messages tell it with their first word, so that it cannot wait for the upstream's; all others at their end,
    and then the body is gone. Chat completions tell it in a stream only to those who ask."""
    names = route.name, route.model
    if question.wire == CHAT and question.stream and not _asks_usage(question.body):
        return 0
    expected = tokens.expect(question.body, *names)
    if expected is None and question.stream and MESSAGES == question.wire != route.upstream.api:
        expected = estimate(question.body, route.model)
    exchange.expected = expected or 0
    return roughly(question.size) if expected is None else tokens.corrected(expected, *names)


def known_as(route: Route) -> str:
    """Whose thinking it is: one upstream may have several names here, and many may be like the same stranger. One
    that is called `openai` is not OpenAI."""
    return f"@{route.name}" if route.profile.name == STRANGER else route.profile.name


def _asks_usage(body: dict[str, Any]) -> bool:
    options = body.get("stream_options")
    return isinstance(options, dict) and options.get("include_usage") is True
