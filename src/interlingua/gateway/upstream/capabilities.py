"""Capabilities of models that the gateway learns from their servers while it runs.

A server that refuses a request often states why: it has no tool parser, the model accepts no images, the reply may not
be that long. The request is then changed and sent again, and later requests are changed before they are sent.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import msgspec

from interlingua.gateway.routing.routes import Route
from interlingua.upstreams.refusals import Refusal, RefusalKind
from interlingua.wires import get_wire

__all__ = ["CapabilityMemory", "corrected_route", "fit_reply", "truncated_prompt"]

MAX_REMEMBERED_FACTS = 1000
"""Maximum number of models and clients: clients can send any model name, and without `keys` any key."""
FACT_SECONDS = 3600.0
"""Time after which a fact is forgotten, because the server may have been started with other options meanwhile. Then the
next request learns it again, if it still holds."""
MIN_REPLY_TOKENS = 1024
"""Tokens that must be left for a reply. With fewer the prompt counts as too long, so that agents compact it."""
SPARE_TOKENS = 64
"""Tokens that are left free because the chat template adds some to the prompt that no estimate counts."""
ESTIMATE_MARGIN = 1.1
"""Factor for an estimated prompt, so that it is rarely too low."""
MIN_BYTES_PER_TOKEN = 2
"""A text has at least so many bytes for each token, in all languages that models are used with."""

REFUSAL_MESSAGES: dict[RefusalKind, tuple[str, str]] = {
    "no-tool-parser": (
        "the server has no tool parser: it receives tool_choice none, and the gateway parses the calls from the text",
        "this works as it is; vLLM's own parser needs --enable-auto-tool-choice --tool-call-parser NAME",
    ),
    "window": (
        "prompt and requested reply exceed the context window: the gateway lowers the token limit of replies",
        "for longer replies raise --max-model-len (vLLM), --context-length (SGLang) or -c (llama.cpp)",
    ),
    "reply-limit": (
        "the requested reply is longer than the model allows: the gateway lowers the token limit of replies",
        "to avoid the first refusal, lower the limit of the client",
    ),
    "no-constraint": (
        "the server accepts no structural tag: the gateway sends requests without a constraint",
        "vLLM needs 0.11 or newer with xgrammar, SGLang its xgrammar backend; `strict: off` avoids the first refusal",
    ),
    "no-images": (
        "the model accepts no images: the gateway sends a note in the place of each image",
        "if the model has vision, start its server with it (llama.cpp: --mmproj; vLLM: --limit-mm-per-prompt)",
    ),
    "no-thinking": (
        "the model cannot think: the gateway sends no setting of thinking",
        "this works as it is; it needs no change",
    ),
}
"""Log message and hint for each kind of refusal."""
TRUNCATION_HINT = (
    "the model loses its instructions and tools; start the server with OLLAMA_CONTEXT_LENGTH=65536, or set num_ctx in"
    " the model's Modelfile"
)

LearnedCallback: TypeAlias = Callable[[Route, str, str], None]
K = TypeVar("K")
V = TypeVar("V")


class Capabilities(msgspec.Struct, frozen=True, omit_defaults=True):
    """Known facts about a model at an upstream. A field with its default is not known."""

    profile_changes: dict[str, Any] = {}
    """Fields of the upstream's profile that differ for this model."""
    window: int = 0
    """Context window in tokens."""
    learned_at: float = 0.0
    """Time of the first refusal, in seconds of the memory's clock."""


class CapabilityMemory:
    """Capabilities by upstream, model and client, of this process.

    An error message of an upstream may quote the request, so a client could make up a refusal. It changes only its own
    later requests.

    Args:
        on_learned: Called with the route, a message and a hint, once for each fact about a model.
        clock: Returns the time in seconds.
    """

    def __init__(self, on_learned: LearnedCallback, clock: Callable[[], float] = time.monotonic) -> None:
        self._on_learned = on_learned
        self._clock = clock
        self._models: OrderedDict[tuple[str, str, str], Capabilities] = OrderedDict()
        self._reported: OrderedDict[tuple[str, str, str], None] = OrderedDict()

    def apply(self, route: Route, client_id: str) -> Route:
        """Return the route with what is known about its model."""
        key = (route.upstream.url, route.model, client_id)
        known = self._models.get(key)
        if known is None:
            return route
        if self._clock() - known.learned_at > FACT_SECONDS:
            del self._models[key]
            return route
        self._models.move_to_end(key)
        window = route.window or known.window  # a probe is repeated, so it is newer than a refusal
        return _with_profile(msgspec.structs.replace(route, window=window), known.profile_changes)

    def learn(self, route: Route, client_id: str, refusal: Refusal) -> None:
        """Remember what the upstream refused."""
        key = (route.upstream.url, route.model, client_id)
        known = self._models.get(key) or Capabilities(learned_at=self._clock())
        changes = {**known.profile_changes, **_profile_changes(refusal)}
        _put(self._models, key, Capabilities(changes, refusal.window or known.window, known.learned_at))
        self._report(route, *REFUSAL_MESSAGES[refusal.kind])

    def report_truncation(self, route: Route) -> None:
        """Report that the server truncates prompts: once for each model, and again if its window changes."""
        message = f"a prompt is longer than the context of {route.window} tokens, and the server removes its beginning"
        self._report(route, message, TRUNCATION_HINT)

    def _report(self, route: Route, message: str, hint: str) -> None:
        key = (route.upstream.url, route.model, message)
        if key not in self._reported:
            self._on_learned(route, message, hint)
        _put(self._reported, key, None)


def _put(memory: OrderedDict[K, V], key: K, value: V) -> None:
    """Set an entry, and drop the least recently used one if there are too many."""
    memory[key] = value
    memory.move_to_end(key)
    if len(memory) > MAX_REMEMBERED_FACTS:
        memory.popitem(last=False)


def corrected_route(route: Route, refusal: Refusal, estimate_tokens: Callable[[], int]) -> Route | None:
    """Return the route for the request without what the upstream refused; None if no change can help.

    Args:
        route: The route of the refused request.
        refusal: What the upstream refused.
        estimate_tokens: Returns the estimated length of the prompt. Called only if the upstream has not counted it.
    """
    if refusal.kind != "window":
        return _with_profile(route, _profile_changes(refusal))
    if not refusal.reply or refusal.left < min(MIN_REPLY_TOKENS, refusal.reply):
        return None
    if refusal.is_input_exact:
        return _limit_reply(route, refusal.left)
    if not get_wire(route.upstream.api).TRAITS.requires_max_tokens:
        return _with_profile(route, {"token_limit": False})
    left = refusal.window - int(estimate_tokens() * ESTIMATE_MARGIN) - SPARE_TOKENS
    return _limit_reply(route, min(left, refusal.reply // 2)) if left >= MIN_REPLY_TOKENS else None


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
    return _limit_reply(route, left) if MIN_REPLY_TOKENS <= left < requested else route


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


def _limit_reply(route: Route, tokens: int) -> Route:
    """Return the route with a token limit of replies, unless its own is lower."""
    largest = route.profile.largest
    return _with_profile(route, {"largest": min(tokens, largest) if largest else tokens})


def _profile_changes(refusal: Refusal) -> dict[str, Any]:
    """Return the fields of the profile for what the upstream refused, for all requests."""
    match refusal.kind:
        case "no-tool-parser":
            return {"unparsed_choices": ("auto", "required") if refusal.forced else ("auto",)}
        case "no-images":
            return {"vision": False}
        case "no-constraint":
            return {"constraint": "none"}
        case "no-thinking":
            return {"thinking_setting": False}
        case "reply-limit":
            return {"largest": refusal.largest}
        case "window":
            return {}


def _with_profile(route: Route, changes: dict[str, Any]) -> Route:
    return msgspec.structs.replace(route, profile=msgspec.structs.replace(route.profile, **changes))
