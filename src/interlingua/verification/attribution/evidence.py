"""Evidence beyond the reply itself: what further requests have shown."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from interlingua.verification.attribution.token_counts import TokenRatio
from interlingua.verification.judging.failure import Judgement

__all__ = ["Control", "Evidence", "EvidenceKind", "PromptCheck", "Repetition"]

EvidenceKind: TypeAlias = Literal["repetition", "streams", "prompt", "control"]


class Repetition(msgspec.Struct, frozen=True, kw_only=True):
    """The same request again, whole, on a server that shows what the model wrote."""

    raw_text: str | None = None
    """The model's own text; None if the server does not show it."""
    source: str = ""
    """Source of the text, in words."""
    is_same_reply: bool = True
    """True if `judgement` is of the reply that the server made of this text."""
    judgement: Judgement = Judgement()
    """Judgement of the repeated reply."""
    prompt_text: str | None = None
    """The prompt as the template wrote it; None if the server does not show it."""


class PromptCheck(msgspec.Struct, frozen=True):
    """Tokens of the prompt with the tools of a request and without them; 0 if the server does not count them."""

    with_tools: int
    without_tools: int


class Control(msgspec.Struct, frozen=True):
    """The same conversation with one plain tool and no tool choice: whether the server accepts it."""

    is_accepted: bool
    message: str = ""


class Evidence(msgspec.Struct, frozen=True):
    """Results of further requests; None: the request was not made."""

    repetition: Repetition | None = None
    streams: tuple[Judgement, ...] = ()
    """Judgements of the same stream, requested again."""
    prompt: PromptCheck | None = None
    control: Control | None = None
    token_ratio: TokenRatio | None = None
    """Tokens for each byte of native text at this upstream; None: unknown."""
    max_tokens: int = 0
    """Token limit of the request; 0: none was sent."""
