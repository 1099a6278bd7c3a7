"""Capabilities and requirements of a wire (protocol), as data. Each wire declares its own."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

__all__ = ["DEFAULT_WIRE", "ThinkingControl", "WireLike", "WireName", "WireTraits"]

WireName: TypeAlias = Literal["openai-chat", "anthropic-messages", "openai-responses"]
"""Names of the wires."""
WireLike: TypeAlias = WireName | str
"""Type of parameters of the library: editors complete the names, and a program may have the name in a variable. An
unknown name raises UnknownWire, with a suggestion."""
DEFAULT_WIRE = "openai-chat"
"""Wire of clients and upstreams that name none."""

ThinkingControl: TypeAlias = Literal[
    "effort",  # an effort only
    "budget",  # a token budget, or an effort for upstreams whose profile has no budgets
    "profile",  # fields that differ between servers: `Profile.thinking` names them
]


class WireTraits(msgspec.Struct, frozen=True, kw_only=True):
    """Content that requests of one wire can carry, and content that they need.

    The traits follow from the documentation of the protocol. A `Profile` has the differences of one upstream.
    """

    wire: str
    """Name of the wire."""
    varies_by_server: bool = False
    """True if many servers implement the protocol, each with other optional fields. If so, the fields of a profile that
    mention chat completions apply."""

    # ── requests ──────────────────────────────────────────────────────────────────────────────────────────────────

    conversation_field: str = "messages"
    """Field of a request that holds the conversation."""
    requires_max_tokens: bool = False
    """True if a request needs a token limit for the reply."""
    requires_message: bool = False
    """True if a request needs a message beside the system prompt."""
    accepts_blank_text: bool = True
    """True if text and stop sequences may be whitespace only. If not, they never may, whatever the profile is."""
    has_stop_sequences: bool = True
    """True if a request can contain stop sequences."""
    has_allowed_tools: bool = False
    """True if the tool choice can name several tools."""
    has_tool_references: bool = False
    """True if tools can be deferred until a tool result refers to them (`defer_loading`, `tool_reference`)."""
    has_own_call_ids: bool = False
    """True if the protocol defines the format of call ids. If so, the format of the profile does not apply."""
    has_refusal_field: bool = False
    """True if an assistant message has a field for a refusal. If not, a refusal is sent back as text."""

    # ── streams ───────────────────────────────────────────────────────────────────────────────────────────────────

    reports_input_first: bool = False
    """True if a stream begins with the number of input tokens, before the upstream has sent it."""
    reports_usage_on_request: bool = False
    """True if a stream reports usage only if `stream_options.include_usage` asks for it."""

    # ── thinking ──────────────────────────────────────────────────────────────────────────────────────────────────

    thinking_control: ThinkingControl = "effort"
    """Fields that set the amount of thinking."""
    min_thinking_budget: int = 0
    """Smallest thinking budget in tokens; 0 if there is no minimum."""
    has_effort_without_thinking: bool = False
    """True if the effort applies to the whole reply. If so, it is kept when thinking is disabled."""
    clear_thinking_edit: str = ""
    """Type of the edit in `context_management` that removes old thinking. It is rejected if the model does not think.
    Empty if there is none."""
    rejects_foreign_thinking: bool = False
    """True if past thinking that another wire has signed is rejected even without its signature."""
    accepts_unnamed_signatures: bool = False
    """True if every upstream receives signatures that name no upstream. If not, only the upstream that defines the
    signatures of the protocol receives them."""
