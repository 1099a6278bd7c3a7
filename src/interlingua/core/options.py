"""How a reply is treated: what a caller may choose, and what the request has said of it."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from interlingua.errors import UsageError, check_field_types

__all__ = ["Delivery", "Limits", "Options", "ReasoningPolicy"]

KIB, MIB = 1024, 1024 * 1024


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Counted in characters, but for `event`, which is in bytes.

    Over a limit, `flush` gives what was held to the client as text and reads on afresh; `error` ends the reply.
    """

    header: int = 1 * KIB
    """What stands between the beginning of a call and its arguments."""
    held: int = 1 * MIB
    """What may wait: a call without a name, calls behind an open one, arguments of unknown kind."""
    args: int = 16 * MIB
    """One call's arguments."""
    blanks: int = 16 * KIB
    """What stands between two tokens of a call's arguments, outside of strings: some models never stop writing it. More
    is an error, whatever `over` says."""
    event: int = 32 * MIB
    """One event of a stream."""
    over: Literal["flush", "error"] = "flush"
    """What becomes of a reply that is over one of them."""

    def __post_init__(self) -> None:
        check_field_types(self)
        for name, minimum in (("header", 1), ("held", 1), ("args", 1), ("blanks", 64), ("event", 1)):
            if getattr(self, name) < minimum:
                raise UsageError(f"Limits.{name}: less than {minimum}", "a limit leaves room for something")


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
