"""Adapt the settings of a request to an upstream: tools, thinking, token limits, stop sequences, sampling."""

from __future__ import annotations

from typing import Any

import msgspec

from interlingua.core.reply import Text
from interlingua.core.request import NO_CONTENT, Message, Request, ToolChoice
from interlingua.core.tools import Tool
from interlingua.upstreams.adapt.context import AdaptContext, AdaptStep
from interlingua.upstreams.adapt.thinking import (
    convert_effort,
    disable_implied_thinking,
    disable_thinking,
    drop_thinking_edits,
    drop_thinking_setting,
    limit_thinking,
    limit_thinking_budget,
    no_thinking_after_prefill,
    no_thinking_in_tool_loop,
)

__all__ = [
    "DEFAULT_MAX_TOKENS",
    "NO_TOOL_PARSER",
    "SKIP_SPECIAL_TOKENS",
    "STEPS",
    "choose_none_without_parser",
    "drop_max_tokens",
    "limit_max_tokens",
]

DEFAULT_MAX_TOKENS = 32_000
"""Token limit of a reply if the client sends none, on a wire that requires one."""
SAMPLING_FIELDS = ("temperature", "top_p", "top_k", "presence_penalty", "frequency_penalty")
"""Fields for which some upstreams accept only their fixed value."""
SKIP_SPECIAL_TOKENS = "skip_special_tokens"
"""Field of vLLM and SGLang that removes special tokens from the text of a reply; true by default."""
NO_TOOL_PARSER = "the server has no tool parser: tool_choice `none` sent, calls parsed from text"
DEFAULT_FIELD_VALUES: dict[str, Any] = {"user": "", "metadata": {}, "cache_key": ""}
"""Fields that not all upstreams support, by their name in a request and in a profile, with the value for "not set"."""

replace = msgspec.structs.replace


# ── tokens ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def limit_max_tokens(request: Request, context: AdaptContext) -> Request:
    requested, maximum = request.max_tokens, context.profile.largest
    if requested is None and context.traits.requires_max_tokens:
        requested = min(DEFAULT_MAX_TOKENS, maximum or DEFAULT_MAX_TOKENS)
        context.report("no-max-tokens", f"no token limit, and the wire requires one: {requested} tokens")
    elif requested is not None and 0 < maximum < requested:
        context.report("max-tokens", f"{requested} tokens requested: reduced to the upstream's maximum of {maximum}")
        requested = maximum
    return replace(request, max_tokens=requested)


def drop_max_tokens(request: Request, context: AdaptContext) -> Request:
    if context.profile.token_limit or request.max_tokens is None or context.traits.requires_max_tokens:
        return request
    context.report("max-tokens", f"{request.max_tokens} tokens requested: not sent, more than the context window has")
    return replace(request, max_tokens=None)


# ── tools ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def drop_tools_for_choice_none(request: Request, context: AdaptContext) -> Request:
    if context.profile.choice_none or request.tool_choice is None or request.tool_choice.mode != "none":
        return request
    context.report("tools-narrowed", "the upstream does not support tool_choice `none`: no tool is offered")
    return replace(request, tools=[], hosted=[], tool_choice=None)


def relax_forced_choice(request: Request, context: AdaptContext) -> Request:
    """Relax a forced tool call if the upstream does not support it, or not together with thinking."""
    choice, profile = request.tool_choice, context.profile
    if choice is None or choice.mode != "required":
        return request
    collides = context.will_think(request.thinking) and not profile.required_with_thinking
    if profile.required and not collides:
        return request
    if profile.required and profile.can_stop_thinking:
        message = "the upstream cannot force a tool call while the model thinks: thinking is disabled for this reply"
        context.report("thinking-stopped", message)
        return replace(request, thinking=disable_thinking(request.thinking, context))
    condition = " while the model thinks" if profile.required else ""
    context.report("choice-relaxed", f"the upstream cannot force a tool call{condition}: left to the model")
    return replace(request, tool_choice=ToolChoice("auto", choice.names))


def deduplicate_tools(request: Request, context: AdaptContext) -> Request:
    """Keep only the first of several tools with the same name."""
    tools: dict[str, Tool] = {}
    for tool in request.tools:
        tools.setdefault(tool.name, tool)
    if len(tools) == len(request.tools):
        return request
    context.report("tools-narrowed", "several tools with the same name: only the first is offered")
    return replace(request, tools=[*tools.values()])


def restrict_choice_to_offered(request: Request, context: AdaptContext) -> Request:
    """Remove tools from the choice that are not offered: tools run by the server of another wire, deferred tools."""
    choice = request.tool_choice
    if choice is None or not choice.names:
        return request
    same_wire = request.wire == context.wire
    offered = {tool.name for tool in request.tools if same_wire or not tool.deferred}
    offered |= {str(tool.get("name")) for tool in request.hosted if same_wire}
    names = tuple(name for name in choice.names if name in offered)
    if names == choice.names:
        return request
    if names:
        context.report("choice-relaxed", "tool choice with some tools that are not offered: limited to the others")
        return replace(request, tool_choice=ToolChoice(choice.mode, names))
    context.report("choice-relaxed", "tool choice with only tools that are not offered: left to the model")
    return replace(request, tool_choice=ToolChoice("auto"))


def narrow_tools_to_choice(request: Request, context: AdaptContext) -> Request:
    """Offer only the tools that the choice names, if the upstream's tool choice cannot name them."""
    choice, profile = request.tool_choice, context.profile
    if choice is None or not choice.names or context.accepts_several_tool_names:
        return request
    if profile.named and choice.mode == "required" and len(choice.names) == 1:
        return request
    names = set(choice.names)
    tools = [tool for tool in request.tools if tool.name in names]
    if len(tools) < len(request.tools):
        context.report("tools-narrowed", "tools that the tool choice excludes: not offered")
    return replace(request, tools=tools, tool_choice=ToolChoice(choice.mode))


def drop_strict(request: Request, context: AdaptContext) -> Request:
    accepts_strict = context.profile.strict_tools or not context.traits.varies_by_server
    if accepts_strict or all(tool.strict is None for tool in request.tools):
        return request
    if any(tool.strict for tool in request.tools):
        context.report("setting-dropped", "`strict` of tools: not sent, so arguments may not match their schema")
    return replace(request, tools=[replace(tool, strict=None) for tool in request.tools])


def choose_none_without_parser(request: Request, context: AdaptContext) -> Request:
    """Send `tool_choice: none` to a server without a tool parser. Its prompt still contains the tools, and the calls of
    the reply are text in the model's dialect. Their markers are often special tokens, which the server would remove."""
    choice = request.tool_choice or ToolChoice()
    if not request.tools or choice.mode not in context.profile.unparsed_choices:
        return request
    context.report("no-tool-parser", NO_TOOL_PARSER)
    if choice.mode == "required":
        context.report("choice-relaxed", "the upstream cannot force a tool call: left to the model")
    tools = [tool for tool in request.tools if not choice.names or tool.name in choice.names]
    request = replace(request, tools=tools or request.tools, tool_choice=ToolChoice("none"), parallel=None)
    if not context.traits.varies_by_server:
        return request
    extra = {name: value for name, value in request.extra.items() if name != SKIP_SPECIAL_TOKENS}
    return replace(request, sampling={**request.sampling, SKIP_SPECIAL_TOKENS: False}, extra=extra)


# ── other settings ────────────────────────────────────────────────────────────────────────────────────────────────────


def ensure_message(request: Request, context: AdaptContext) -> Request:
    """Add a user message if there is none and the wire requires one."""
    if not context.traits.requires_message or request.messages:
        return request
    context.report("empty-content", f"no messages: a user message {NO_CONTENT!r} is added")
    return replace(request, messages=[Message("user", [Text(NO_CONTENT)])])


def limit_stop_sequences(request: Request, context: AdaptContext) -> Request:
    if not context.traits.has_stop_sequences:
        return request
    kept = [text for text in request.stop if context.accepts_blank_text or text.strip()]
    kept = kept[: context.profile.stop or None]
    if len(kept) < len(request.stop):
        message = (
            f"the upstream accepts {len(kept)} of these {len(request.stop)} stop sequences: the others are dropped"
        )
        context.report("stop-dropped", message)
    return replace(request, stop=kept)


def drop_unsupported_sampling(request: Request, context: AdaptContext) -> Request:
    """Drop sampling settings that the upstream fixes itself, and those that it does not have."""
    unsupported = () if context.profile.sampling or context.keeps_values(request) else SAMPLING_FIELDS
    if context.traits.varies_by_server and not context.profile.top_k:
        unsupported = (*unsupported, "top_k")
    dropped = [key for key in request.sampling if key in unsupported]
    if not dropped:
        return request
    context.report("setting-dropped", f"{', '.join(dropped)}: not sent")
    return replace(request, sampling={key: value for key, value in request.sampling.items() if key not in dropped})


def rename_seed(request: Request, context: AdaptContext) -> Request:
    """Rename `seed` to the upstream's field."""
    name = context.profile.seed
    if not context.traits.varies_by_server or "seed" not in request.sampling:
        return request
    return replace(request, sampling={name if key == "seed" else key: value for key, value in request.sampling.items()})


def drop_unsupported_fields(request: Request, context: AdaptContext) -> Request:
    """Drop optional fields that the upstream does not support. Some upstreams reject them, the others ignore them."""
    if not context.traits.varies_by_server:
        return request
    dropped = [name for name in DEFAULT_FIELD_VALUES if getattr(request, name) and not getattr(context.profile, name)]
    if dropped:
        context.report("setting-dropped", f"{', '.join(dropped)}: not sent")
    if request.parallel is not None and not context.profile.parallel:
        dropped.append("parallel")
        if not request.parallel:
            context.report("setting-dropped", "parallel_tool_calls: not sent, so a reply may contain several calls")
    return replace(request, **{name: {**DEFAULT_FIELD_VALUES, "parallel": None}[name] for name in dropped})


def drop_unknown_fields(request: Request, context: AdaptContext) -> Request:
    """Drop fields that are not in the profile's list, for upstreams that reject unknown fields."""
    allowed = context.profile.known_fields
    if not context.traits.varies_by_server or not allowed:
        return request
    sampling = {key: value for key, value in request.sampling.items() if key in allowed}
    extra = {key: value for key, value in request.extra.items() if key in allowed}
    dropped = [*(request.sampling.keys() - sampling.keys()), *(request.extra.keys() - extra.keys())]
    if dropped:
        context.report("setting-dropped", f"{', '.join(sorted(dropped))}: not sent")
    return replace(request, sampling=sampling, extra=extra)


STEPS: tuple[AdaptStep, ...] = (
    drop_thinking_setting,
    disable_implied_thinking,
    convert_effort,
    limit_max_tokens,
    drop_max_tokens,
    limit_thinking,
    limit_thinking_budget,
    deduplicate_tools,
    drop_tools_for_choice_none,
    restrict_choice_to_offered,
    relax_forced_choice,
    narrow_tools_to_choice,
    drop_strict,
    choose_none_without_parser,
    no_thinking_in_tool_loop,
    no_thinking_after_prefill,
    drop_thinking_edits,
    ensure_message,
    limit_stop_sequences,
    drop_unsupported_sampling,
    rename_seed,
    drop_unsupported_fields,
    drop_unknown_fields,
)
