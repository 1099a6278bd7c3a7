"""Correction of refused requests: what changes in an upstream's profile, and the memory of what was refused. Sans-IO.

A server that refuses a request often states why: it has no tool parser, the model accepts no images, the reply may not
be that long. The request is then translated with a changed profile and sent again, and later requests are translated
with it before they are sent. The gateway (`gateway/upstream/`) and the SDK transports (`client/sdk/`) use this.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Any, NamedTuple, TypeVar

import msgspec

from interlingua.upstreams.profile import Profile
from interlingua.upstreams.refusals import Refusal, RefusalKind
from interlingua.wires import get_wire

__all__ = [
    "ESTIMATE_MARGIN",
    "MIN_BYTES_PER_TOKEN",
    "MIN_REPLY_TOKENS",
    "REFUSAL_MESSAGES",
    "SPARE_TOKENS",
    "Capabilities",
    "RefusalMemory",
    "ServedModel",
    "corrected_profile",
    "is_prompt_too_long",
    "limit_reply",
]

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
        "the server has no tool parser: it receives tool_choice none, and Interlingua parses the calls from the text",
        "this works as it is; vLLM's own parser needs --enable-auto-tool-choice --tool-call-parser NAME",
    ),
    "window": (
        "prompt and requested reply exceed the context window: Interlingua lowers the token limit of replies",
        "for longer replies raise --max-model-len (vLLM), --context-length (SGLang) or -c (llama.cpp)",
    ),
    "reply-limit": (
        "the requested reply is longer than the model allows: Interlingua lowers the token limit of replies",
        "to avoid the first refusal, lower the limit of the client",
    ),
    "no-constraint": (
        "the server accepts no structural tag: Interlingua sends requests without a constraint",
        "vLLM needs 0.11 or newer with xgrammar, SGLang its xgrammar backend; `strict: off` avoids the first refusal",
    ),
    "no-images": (
        "the model accepts no images: Interlingua sends a note in the place of each image",
        "if the model has vision, start its server with it (llama.cpp: --mmproj; vLLM: --limit-mm-per-prompt)",
    ),
    "no-thinking": (
        "the model cannot think: Interlingua sends no setting of thinking",
        "this works as it is; it needs no change",
    ),
}
"""Log message and hint for each kind of refusal."""

K = TypeVar("K")
V = TypeVar("V")


class ServedModel(NamedTuple):
    """A model at an upstream."""

    url: str
    model: str


class Capabilities(msgspec.Struct, frozen=True, omit_defaults=True):
    """Known facts about a model at an upstream. A field with its default is not known."""

    profile_changes: dict[str, Any] = {}
    """Fields of the upstream's profile that differ for this model."""
    window: int = 0
    """Context window in tokens."""
    learned_at: float = 0.0
    """Time of the first refusal, in seconds of the memory's clock."""

    def apply(self, profile: Profile) -> Profile:
        """Return the profile with these facts."""
        return msgspec.structs.replace(profile, **self.profile_changes) if self.profile_changes else profile


class RefusalMemory:
    """Capabilities by model and client. Threads may share it.

    An error message of an upstream may quote the request, so a client could make up a refusal. It changes only its own
    later requests.

    Args:
        clock: Returns the time in seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = Lock()
        self._facts: OrderedDict[tuple[ServedModel, str], Capabilities] = OrderedDict()
        self._reported: OrderedDict[tuple[ServedModel, str], None] = OrderedDict()

    def find(self, served: ServedModel, client_id: str = "") -> Capabilities | None:
        """Return what is known about the model; None if nothing is."""
        key = (served, client_id)
        if key not in self._facts:
            return None
        with self._lock:
            known = self._facts.get(key)
            if known is None or self._clock() - known.learned_at > FACT_SECONDS:
                self._facts.pop(key, None)
                return None
            self._facts.move_to_end(key)
            return known

    def learn(self, served: ServedModel, refusal: Refusal, client_id: str = "") -> None:
        """Remember what the upstream refused."""
        key = (served, client_id)
        with self._lock:
            known = self._facts.get(key) or Capabilities(learned_at=self._clock())
            changes = {**known.profile_changes, **_profile_changes(refusal)}
            _put(self._facts, key, Capabilities(changes, refusal.window or known.window, known.learned_at))

    def is_first_report(self, served: ServedModel, message: str) -> bool:
        """Return whether this message about the model has not been reported yet. From now on it has."""
        key = (served, message)
        with self._lock:
            is_first = key not in self._reported
            _put(self._reported, key, None)
        return is_first


def _put(memory: OrderedDict[K, V], key: K, value: V) -> None:
    """Set an entry, and drop the least recently used one if there are too many."""
    memory[key] = value
    memory.move_to_end(key)
    if len(memory) > MAX_REMEMBERED_FACTS:
        memory.popitem(last=False)


def is_prompt_too_long(refusal: Refusal) -> bool:
    """Return whether the prompt leaves too little of the context window: no lower limit of the reply helps then."""
    is_too_short = not refusal.reply or refusal.left < min(MIN_REPLY_TOKENS, refusal.reply)
    return refusal.kind == "window" and is_too_short


def corrected_profile(
    profile: Profile, api: str, refusal: Refusal, estimate_tokens: Callable[[], int]
) -> Profile | None:
    """Return the profile for the request without what the upstream refused; None if no change can help.

    Args:
        profile: The profile of the refused request.
        api: Wire of the upstream.
        refusal: What the upstream refused.
        estimate_tokens: Returns the estimated length of the prompt. Called only if the upstream has not counted it.
    """
    if refusal.kind != "window":
        return msgspec.structs.replace(profile, **_profile_changes(refusal))
    if is_prompt_too_long(refusal):
        return None
    if refusal.is_input_exact:
        return limit_reply(profile, refusal.left)
    if not get_wire(api).TRAITS.requires_max_tokens:
        return msgspec.structs.replace(profile, token_limit=False)
    left = refusal.window - int(estimate_tokens() * ESTIMATE_MARGIN) - SPARE_TOKENS
    return limit_reply(profile, min(left, refusal.reply // 2)) if left >= MIN_REPLY_TOKENS else None


def limit_reply(profile: Profile, tokens: int) -> Profile:
    """Return the profile with a token limit of replies, unless its own is lower."""
    largest = profile.largest
    return msgspec.structs.replace(profile, largest=min(tokens, largest) if largest else tokens)


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
