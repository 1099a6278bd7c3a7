"""Capabilities and requirements of an upstream, as data. The known upstreams are listed in `catalog`."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from interlingua.core.tool_choice import ToolChoiceMode

__all__ = ["UNKNOWN", "UNKNOWN_PROFILE", "ConstraintField", "Profile", "ReplayField", "ThinkingStyle"]

UNKNOWN = "any"
"""Name of the profile for an unknown upstream."""

ThinkingStyle: TypeAlias = Literal[
    "effort",  # reasoning_effort: low | medium | high
    "openrouter",  # reasoning: {effort | max_tokens | enabled}
    "type",  # thinking: {type: enabled | disabled}
    "type-effort",  # the same, and reasoning_effort
    "adaptive",  # thinking: {type: adaptive | disabled}
    "budget",  # thinking: {type: enabled, budget_tokens}
    "enable",  # enable_thinking, thinking_budget
    "template",  # chat_template_kwargs: {enable_thinking, thinking}
    "none",  # no setting
]
ReplayField: TypeAlias = Literal["reasoning_content", "reasoning", "reasoning_details", "none"]
ConstraintField: TypeAlias = Literal[
    "structured_outputs",  # structured_outputs: {structural_tag}
    "response_format",  # response_format: {type: structural_tag, format}
    "none",  # no field
]


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """Differences of one upstream from the documentation of its wires. The defaults are for an unknown upstream.

    A field that mentions chat completions applies to wires that vary by server (see `WireTraits`). On the other wires
    the wire's documentation applies.
    """

    name: str = UNKNOWN
    summary: str = "any upstream that follows its wire"
    hosts: tuple[str, ...] = ()
    """Patterns of the upstream's host names, such as `*.moonshot.ai`, or with a port, such as `*:11434`."""
    max_tokens: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """Field of chat completions that limits the tokens of a reply."""
    largest: int = 0
    """Maximum token limit that the upstream accepts; 0: unknown."""
    token_limit: bool = True
    """True if the client's token limit is sent. If not, the reply may fill what is left of the context window, unless
    the wire requires a limit."""
    truncates: bool = False
    """True if the server silently removes the beginning of a prompt that is longer than its context window."""
    system_role: Literal["system", "developer"] = "system"
    """Role of system messages in chat completions, and in Responses after the first."""
    system_anywhere: bool = True
    """True if system messages are allowed among other messages. If not, later ones become user text."""
    alternating: bool = False
    """True if user and assistant messages must alternate. If so, consecutive messages of one role are merged."""
    user_after_results: bool = True
    """True if user text may directly follow results. If not, an assistant message is inserted between them."""
    prefill: bool = True
    """True if the last message may be an assistant message. If not, a user message that asks to go on is appended."""
    blank_text: bool = True
    """True if text and stop sequences may be whitespace only; in Messages they never may."""
    names: bool = True
    """True if messages of chat completions may contain `name`."""
    billing_line: bool = False
    """True if the upstream uses Claude Code's billing line, which changes with every request. If not, it is removed."""
    thinking: ThinkingStyle = "effort"
    """Fields with which chat completions configure thinking."""
    thinking_setting: bool = True
    """True if a request may configure thinking. If not, because the model cannot think, no setting is sent."""
    budgets: bool = True
    """True if thinking has a token budget in Messages. If not, only an effort is sent."""
    efforts: tuple[str, ...] = ()
    """Effort values that the upstream accepts, except `none`. Empty: unknown, and every value is sent."""
    replay: ReplayField = "reasoning_content"
    """Field that returns past thinking in chat completions."""
    call_signature: str = ""
    """Signature for calls of chat completions that have none, because another model made them. Empty: none is
    needed."""
    own_seals: bool = False
    """True if the upstream accepts past thinking only with its own signature or encryption."""
    seal_wire: str = ""
    """Wire on which the upstream signs or encrypts its thinking."""
    thinks_unasked: bool = False
    """True if the model thinks by default, without a setting in the request."""
    thinking_first: bool = False
    """True if thinking with a budget cannot start between a call and its result. If so, it is disabled there."""
    thinking_with_calls: bool = False
    """True if past calls are rejected without their thinking. If so, missing thinking is replaced by a placeholder."""
    required: bool = True
    """True if `tool_choice` may be `required` or name a tool. If not, the choice is left to the model."""
    named: bool = True
    """True if `tool_choice` may name a tool. If not, only that tool is offered."""
    allowed_tools: bool = False
    """True if `tool_choice` may name several tools in chat completions. If not, only those tools are offered. Responses
    supports this, Messages does not."""
    tool_search: bool = False
    """True if the upstream supports deferred tools in Messages (`defer_loading`). If not, it receives the tools that a
    search has found; with a search that the upstream would run itself, it receives all of them."""
    web_search_wires: tuple[str, ...] = ()
    """Wires on which the upstream runs web searches itself, if the client has the same wire. On others the gateway runs
    them."""
    tools_in_messages: bool = False
    """True if a system message of chat completions may declare tools. If so, tools that a search has found are declared
    after its result, and the beginning of the prompt stays the same."""
    choice_none: bool = True
    """True if `tool_choice` may be `none`. If not, no tool is offered."""
    unparsed_choices: tuple[ToolChoiceMode, ...] = ()
    """Modes of `tool_choice` that the server rejects because it has no tool parser. `none` is sent instead: the tools
    stay in the prompt, and the calls are parsed from the text."""
    required_with_thinking: bool = True
    """True if a call may be forced while the model thinks. If not, thinking is disabled for that turn."""
    can_stop_thinking: bool = True
    """True if thinking can be disabled. If not, the lowest amount is requested."""
    parallel: bool = True
    """True if the upstream supports `parallel_tool_calls` in chat completions."""
    sampling: bool = True
    """True if the upstream accepts `temperature`, `top_p` and penalties. If not, they are dropped."""
    stop: int = 0
    """Maximum number of stop sequences; 0: unlimited."""
    ids: Literal["any", "functions", "nine"] = "any"
    """Required format of the ids of past calls: Kimi requires `functions.NAME:N`, counted over the conversation,
    Mistral nine letters and digits."""
    settled: tuple[str, ...] = ()
    """Fields that model overrides do not change, because the user has set them."""
    vision: bool = True
    """True if the model accepts images. If not, a text takes the place of each image."""
    images_in_results: bool = False
    """True if tool messages of chat completions may contain images. If not, images move to the next user message."""
    top_k: bool = False
    """True if chat completions support `top_k`."""
    seed: Literal["seed", "random_seed"] = "seed"
    """Field of chat completions that makes a reply reproducible."""
    cache_marks: bool = False
    """True if chat completions support `cache_control`."""
    usage_option: bool = True
    """True if `stream_options` of chat completions may request the usage."""
    user: bool = True
    """True if chat completions support the field `user`."""
    metadata: bool = True
    """True if chat completions support the field `metadata`."""
    cache_key: bool = False
    """True if chat completions support `prompt_cache_key`. It is only a hint, and many upstreams reject unknown
    fields."""
    known_fields: tuple[str, ...] = ()
    """Settings that chat completions accept, for an upstream that rejects all others. Empty: no restriction."""
    strict_tools: bool = True
    """True if tools of chat completions may be `strict`."""
    constraint: ConstraintField = "none"
    """Field of chat completions that takes a structural tag, which forces the model to write valid calls."""

    @property
    def accepts_reasoning_details(self) -> bool:
        """True if `reasoning_details` may be sent back in chat completions. An unknown upstream may have sent them."""
        return self.replay == "reasoning_details" or self.name == UNKNOWN


UNKNOWN_PROFILE = Profile()
