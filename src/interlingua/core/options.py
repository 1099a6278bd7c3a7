"""How a reply is treated: what a caller may choose, and what the request has said of it."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from interlingua.core.options__limits import Limits
from interlingua.errors import check_field_types

__all__ = ["Delivery", "Options", "ReasoningPolicy"]

Delivery: TypeAlias = Literal["stream", "whole"]
ReasoningPolicy: TypeAlias = Literal["keep", "as_content", "drop"]


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How a reply is treated, whatever its wires."""

    prefill: str = ""
    """What the prompt had already written of the reply, such as `<think>`."""
    delivery: Delivery = "stream"
    """`whole`: a call goes out only when it is complete and its arguments are a JSON object."""
    reasoning: ReasoningPolicy = "keep"
    limits: Limits = Limits()
    taken_ids: tuple[str, ...] = ()
    """The call ids that the conversation already has."""
    served_as: str = ""
    """The model's name as the client knows it; without one the client is told the upstream's."""
    created: int = 0
    """When the reply was asked for, in seconds since 1970, if the upstream does not say: nothing here has a clock."""
    input_tokens: int = 0
    """An estimate for clients that want to be told before the upstream does, or where it never does: then the output is
    estimated, too. 0: nobody is told."""
    upstream: str = ""
    """The name of the upstream that is asked and replies: what it signs or encrypts goes back to it alone. Keep it
    from reply to request. Empty: nobody knows whose thinking is whose. Anthropic is `anthropic` and OpenAI
    `openai`: what these sign on their own wires passes as it is."""
    seal_key: bytes = b""
    """Authenticates thinking that travels through the client and comes back. Keep it from reply to reply."""

    def __post_init__(self) -> None:
        check_field_types(self)
