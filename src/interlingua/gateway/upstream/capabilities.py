"""Capabilities of models that the gateway learns from their servers while it runs, and routes that respect them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeAlias

import msgspec

from interlingua.gateway.routing.routes import Route
from interlingua.translation.refusal_correction import (
    ESTIMATE_MARGIN,
    MIN_BYTES_PER_TOKEN,
    MIN_REPLY_TOKENS,
    REFUSAL_MESSAGES,
    SPARE_TOKENS,
    RefusalMemory,
    ServedModel,
    corrected_profile,
    is_prompt_too_long,
    limit_reply,
)
from interlingua.upstreams.profile import Profile
from interlingua.upstreams.refusals import Refusal

__all__ = ["CapabilityMemory", "corrected_route", "fit_reply", "truncated_prompt"]

TRUNCATION_HINT = (
    "the model loses its instructions and tools; start the server with OLLAMA_CONTEXT_LENGTH=65536, or set num_ctx in"
    " the model's Modelfile"
)

LearnedCallback: TypeAlias = Callable[[Route, str, str], None]


class CapabilityMemory:
    """Capabilities by upstream, model and client, of this process.

    Args:
        on_learned: Called with the route, a message and a hint, once for each fact about a model.
        clock: Returns the time in seconds.
    """

    def __init__(self, on_learned: LearnedCallback, clock: Callable[[], float] = time.monotonic) -> None:
        self._on_learned = on_learned
        self._memory = RefusalMemory(clock)

    def apply(self, route: Route, client_id: str) -> Route:
        """Return the route with what is known about its model."""
        known = self._memory.find(_served_model(route), client_id)
        if known is None:
            return route
        window = route.window or known.window  # a probe is repeated, so it is newer than a refusal
        return _with_profile(msgspec.structs.replace(route, window=window), known.apply(route.profile))

    def learn(self, route: Route, client_id: str, refusal: Refusal) -> None:
        """Remember what the upstream refused."""
        self._memory.learn(_served_model(route), refusal, client_id)
        if not is_prompt_too_long(refusal):
            self._report(route, *REFUSAL_MESSAGES[refusal.kind])

    def report_truncation(self, route: Route) -> None:
        """Report that the server truncates prompts: once for each model, and again if its window changes."""
        message = f"a prompt is longer than the context of {route.window} tokens, and the server removes its beginning"
        self._report(route, message, TRUNCATION_HINT)

    def _report(self, route: Route, message: str, hint: str) -> None:
        if self._memory.is_first_report(_served_model(route), message):
            self._on_learned(route, message, hint)


def corrected_route(route: Route, refusal: Refusal, estimate_tokens: Callable[[], int]) -> Route | None:
    """Return the route for the request without what the upstream refused; None if no change can help.

    Args:
        route: The route of the refused request.
        refusal: What the upstream refused.
        estimate_tokens: Returns the estimated length of the prompt. Called only if the upstream has not counted it.
    """
    profile = corrected_profile(route.profile, route.upstream.api, refusal, estimate_tokens)
    return None if profile is None else _with_profile(route, profile)


def fit_reply(route: Route, requested: int, body_bytes: int, estimate_tokens: Callable[[], int]) -> Route:
    """Return the route with a token limit that the context window leaves for the reply, if the window is known.

    Args:
        route: The route, with the window.
        requested: Token limit that the client requests.
        body_bytes: Size of the client's request.
        estimate_tokens: Returns the estimated length of the prompt. Called only if the reply may not fit.
    """
    if not route.window or body_bytes // MIN_BYTES_PER_TOKEN + requested + SPARE_TOKENS <= route.window:
        return route
    left = route.window - int(estimate_tokens() * ESTIMATE_MARGIN) - SPARE_TOKENS
    # A prompt that leaves less is sent as it is: only the upstream knows its real length.
    return _with_profile(route, limit_reply(route.profile, left)) if MIN_REPLY_TOKENS <= left < requested else route


def truncated_prompt(route: Route, body_bytes: int, estimate_tokens: Callable[[], int]) -> int:
    """Return the estimated tokens of a prompt that the server will truncate without an error; 0 if it fits.

    Args:
        route: The route, with the window.
        body_bytes: Size of the client's request.
        estimate_tokens: Returns the estimated length of the prompt. Called only if the prompt may be too long.
    """
    if not route.profile.truncates or not route.window or body_bytes // MIN_BYTES_PER_TOKEN <= route.window:
        return 0
    tokens = estimate_tokens()
    return tokens if tokens > route.window * ESTIMATE_MARGIN else 0


def _served_model(route: Route) -> ServedModel:
    return ServedModel(route.upstream.url, route.model)


def _with_profile(route: Route, profile: Profile) -> Route:
    return msgspec.structs.replace(route, profile=profile)
