"""What an upstream can do and how it wants to be asked, as data. The table of those that are known is `upstreams`."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

__all__ = ["ANY", "Profile", "ReplayField", "ThinkingStyle"]

ThinkingStyle: TypeAlias = Literal[
    "effort",  # reasoning_effort: low | medium | high
    "openrouter",  # reasoning: {effort | max_tokens | enabled}
    "type",  # thinking: {type: enabled | disabled}
    "budget",  # thinking: {type: enabled, budget_tokens}
    "enable",  # enable_thinking, thinking_budget
    "template",  # chat_template_kwargs: {enable_thinking}
    "think",  # think: true | false
    "none",  # it cannot be told
]
ReplayField: TypeAlias = Literal["reasoning_content", "reasoning", "reasoning_details", "none"]


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """How one upstream differs from the letter of its wires. The defaults are for an upstream that nobody knows."""

    name: str = "any"
    summary: str = "any upstream that follows its wire"
    hosts: tuple[str, ...] = ()
    """Where it is served: patterns of host names, such as `*.moonshot.ai`, or with the port, such as `*:11434`."""
    max_tokens: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """The field of chat completions that bounds the reply."""
    largest: int = 0
    """The most tokens that a reply may be asked to have; 0: not known."""
    system_role: Literal["system", "developer"] = "system"
    """The role of the system prompt in chat completions."""
    system_anywhere: bool = True
    """Whether system messages may stand among the others. If not, later ones become text of the user."""
    alternating: bool = False
    """Whether both sides must take turns. If so, messages of one side in a row are joined."""
    user_after_results: bool = True
    """Whether the user may speak right behind results. If not, the model says a word between."""
    prefill: bool = True
    """Whether the last message may be the model's. If not, the user asks it to go on."""
    blank_text: bool = True
    """Whether text and stop sequences may be white space only."""
    names: bool = True
    """Whether messages may name their speakers."""
    billing_line: bool = False
    """Whether Claude Code's billing line, which changes with every request, is meant for it."""
    thinking: ThinkingStyle = "effort"
    """How thinking is asked for in chat completions."""
    replay: ReplayField = "reasoning_content"
    """Where past thinking is sent back in chat completions."""
    own_seals: bool = False
    """Whether past thinking is taken back only with a signature or encryption of its own."""
    seal_wire: str = ""
    """The wire on which it signs or encrypts so."""
    thinks_unasked: bool = False
    """Whether the model thinks if nothing is said about it."""
    thinking_first: bool = False
    """Whether thinking with a budget cannot begin between a call and its result. If so, it is switched off there."""
    thinking_with_calls: bool = False
    """Whether past calls are refused without the thinking before them. If so, lost thinking is a blank."""
    required: bool = True
    """Whether `tool_choice` may be `required` or name a tool."""
    named: bool = True
    """Whether it may name a tool. If not, only that tool is offered."""
    allowed_tools: bool = False
    """Whether it may name several. If not, only those are offered."""
    choice_none: bool = True
    """Whether it may be `none`. If not, no tool is offered."""
    required_with_thinking: bool = True
    """Whether it may be so while the model thinks. If not, thinking is switched off for that turn."""
    can_stop_thinking: bool = True
    """Whether thinking can be switched off."""
    parallel: bool = True
    """Whether it knows `parallel_tool_calls`."""
    stop: int = 0
    """How many stop sequences it takes; 0: any number."""
    ids: Literal["any", "functions", "nine"] = "any"
    """What ids of past calls must be: Kimi wants `functions.NAME:N`, counted over the conversation, Mistral nine
    letters and digits."""
    images_in_results: bool = False
    """Whether tool messages of chat completions may hold images. If not, a user message behind them does."""
    top_k: bool = False
    """Whether chat completions have `top_k`."""
    cache_marks: bool = False
    """Whether `cache_control` is known in chat completions."""
    usage_option: bool = True
    """Whether `stream_options` may ask for the usage."""
    user: bool = True
    """Whether it knows the field `user`."""
    cache_key: bool = False
    """Whether it knows `prompt_cache_key`."""
    strict_tools: bool = False
    """Whether tools may say `strict`."""


ANY = Profile()
