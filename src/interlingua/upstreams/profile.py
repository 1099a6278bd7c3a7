"""What an upstream can do and how it wants to be asked, as data. The table of those that are known is `upstreams`."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

__all__ = ["CHAT", "MESSAGES", "RESPONSES", "UNKNOWN", "UNKNOWN_PROFILE", "Profile", "ReplayField", "ThinkingStyle"]

CHAT, MESSAGES, RESPONSES = "openai-chat", "anthropic-messages", "openai-responses"
"""The wires, by the names that they have for users."""

UNKNOWN = "any"
"""The name of an upstream that nobody knows."""

ThinkingStyle: TypeAlias = Literal[
    "effort",  # reasoning_effort: low | medium | high
    "openrouter",  # reasoning: {effort | max_tokens | enabled}
    "type",  # thinking: {type: enabled | disabled}
    "type-effort",  # the same, and reasoning_effort
    "adaptive",  # thinking: {type: adaptive | disabled}
    "budget",  # thinking: {type: enabled, budget_tokens}
    "enable",  # enable_thinking, thinking_budget
    "template",  # chat_template_kwargs: {enable_thinking, thinking}
    "none",  # it cannot be told
]
ReplayField: TypeAlias = Literal["reasoning_content", "reasoning", "reasoning_details", "none"]


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """How one upstream differs from the letter of its wires. The defaults are for an upstream that nobody knows.

    A field that names chat completions is about them alone: on the other wires it is as their documentation says.
    """

    name: str = UNKNOWN
    summary: str = "any upstream that follows its wire"
    hosts: tuple[str, ...] = ()
    """Where it is served: patterns of host names, such as `*.moonshot.ai`, or with the port, such as `*:11434`."""
    max_tokens: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """The field of chat completions that bounds the reply."""
    largest: int = 0
    """The most tokens that a reply may be asked to have; 0: not known."""
    system_role: Literal["system", "developer"] = "system"
    """The role of system messages in chat completions, and in Responses behind the first."""
    system_anywhere: bool = True
    """Whether system messages may stand among the others. If not, later ones become text of the user."""
    alternating: bool = False
    """Whether both sides must take turns. If so, messages of one side in a row are joined."""
    user_after_results: bool = True
    """Whether the user may speak right behind results. If not, the model says a word between."""
    prefill: bool = True
    """Whether the last message may be the model's. If not, the user asks it to go on."""
    blank_text: bool = True
    """Whether text and stop sequences may be white space only; in Messages they never may."""
    names: bool = True
    """Whether messages of chat completions may name their speakers."""
    billing_line: bool = False
    """Whether Claude Code's billing line, which changes with every request, is meant for it."""
    thinking: ThinkingStyle = "effort"
    """How thinking is asked for in chat completions."""
    budgets: bool = True
    """Whether thinking has a budget in Messages. If not, only an effort is told."""
    efforts: tuple[str, ...] = ()
    """The words that it knows for an effort, but `none`; nothing: not known, and every word is told."""
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
    """Whether it may name several in chat completions. If not, only those are offered. In Responses it may, in Messages
    it may not."""
    choice_none: bool = True
    """Whether it may be `none`. If not, no tool is offered."""
    required_with_thinking: bool = True
    """Whether a call may be forced while the model thinks. If not, thinking is switched off for that turn."""
    can_stop_thinking: bool = True
    """Whether thinking can be switched off. If not, as little as can be is asked for."""
    parallel: bool = True
    """Whether it knows `parallel_tool_calls` in chat completions."""
    sampling: bool = True
    """Whether `temperature`, `top_p` and penalties may be chosen. If not, they are left out."""
    stop: int = 0
    """How many stop sequences it takes; 0: any number."""
    ids: Literal["any", "functions", "nine"] = "any"
    """What ids of past calls must be: Kimi wants `functions.NAME:N`, counted over the conversation, Mistral nine
    letters and digits."""
    settled: tuple[str, ...] = ()
    """Fields that no model changes, for whoever set them knows better."""
    images_in_results: bool = False
    """Whether tool messages of chat completions may hold images. If not, a user message behind them does."""
    top_k: bool = False
    """Whether chat completions have `top_k`."""
    seed: Literal["seed", "random_seed"] = "seed"
    """The field of chat completions that makes a reply repeatable."""
    cache_marks: bool = False
    """Whether `cache_control` is known in chat completions."""
    usage_option: bool = True
    """Whether `stream_options` of chat completions may ask for the usage."""
    user: bool = True
    """Whether it knows the field `user` of chat completions."""
    metadata: bool = True
    """Whether it knows the field `metadata` of chat completions."""
    cache_key: bool = False
    """Whether it knows `prompt_cache_key` in chat completions. It is a mere hint, and many refuse what they do not
    know."""
    known_fields: tuple[str, ...] = ()
    """Which settings of chat completions it takes, where it refuses all others; nothing: it refuses none."""
    strict_tools: bool = True
    """Whether tools of chat completions may be `strict`."""

    @property
    def accepts_reasoning_details(self) -> bool:
        """Whether `reasoning_details` may go back to it in chat completions. A stranger may be who had sent them."""
        return self.replay == "reasoning_details" or self.name == UNKNOWN


UNKNOWN_PROFILE = Profile()
