"""What is asked of a reply, as an upstream can be asked it: which tools, how much thinking, when to stop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from interlingua.core.reply import Text
from interlingua.core.request import NO_CONTENT, Message, Request, ToolChoice
from interlingua.core.tools import Tool
from interlingua.upstreams.adapt.context import Upstream
from interlingua.upstreams.adapt.thinking__thinking import (
    budget,
    edits_of_thinking,
    endless,
    in_a_loop,
    measure,
    prefilled,
    switched_off,
)
from interlingua.upstreams.profile import CHAT, MESSAGES, RESPONSES

__all__ = ["STEPS"]

MAX_TOKENS = 32_000
"""How long a reply may be if the client does not say, on the wire that wants a number."""
CHOSEN_THERE = ("temperature", "top_p", "top_k", "presence_penalty", "frequency_penalty")
"""What some upstreams have one value for, and refuse any other."""
UNSAID: dict[str, Any] = {"user": "", "metadata": {}, "cache_key": ""}
"""Fields that not all have, in the words of a request and of a profile, and their values where nothing is said."""

replace = msgspec.structs.replace


# ── tokens ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def max_tokens(request: Request, upstream: Upstream) -> Request:
    asked, largest = request.max_tokens, upstream.profile.largest
    if asked is None and upstream.wire == MESSAGES:
        asked = min(MAX_TOKENS, largest or MAX_TOKENS)
        upstream.report("no-max-tokens", f"no limit was given, and the wire wants one: {asked} tokens")
    elif asked is not None and 0 < largest < asked:
        upstream.report("max-tokens", f"{asked} tokens asked for: {largest}, which is the most it takes")
        asked = largest
    return replace(request, max_tokens=asked)


# ── tools ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def no_tools(request: Request, upstream: Upstream) -> Request:
    if upstream.profile.choice_none or request.tool_choice is None or request.tool_choice.mode != "none":
        return request
    upstream.report("tools-narrowed", "it cannot be told to call no tool: none is offered")
    return replace(request, tools=[], hosted=[], tool_choice=None)


def forced_choice(request: Request, upstream: Upstream) -> Request:
    """A tool that must be called, of an upstream that cannot be forced, or not while it thinks."""
    choice, profile = request.tool_choice, upstream.profile
    if choice is None or choice.mode != "required":
        return request
    collides = upstream.thinks(request.thinking) and not profile.required_with_thinking
    if profile.required and not collides:
        return request
    if profile.required and profile.can_stop_thinking:
        upstream.report("thinking-stopped", "it cannot be forced to call a tool while it thinks: it does not think now")
        return replace(request, thinking=switched_off(request.thinking, upstream))
    why = " while it thinks" if profile.required else ""
    upstream.report("choice-relaxed", f"it cannot be forced to call a tool{why}: left to the model")
    return replace(request, tool_choice=ToolChoice("auto", choice.names))


def tools_once(request: Request, upstream: Upstream) -> Request:
    """Of tools with one name, the first."""
    tools: dict[str, Tool] = {}
    for tool in request.tools:
        tools.setdefault(tool.name, tool)
    if len(tools) == len(request.tools):
        return request
    upstream.report("tools-narrowed", "several tools with one name: only the first is offered")
    return replace(request, tools=[*tools.values()])


def chosen_tools(request: Request, upstream: Upstream) -> Request:
    """A choice names only what is offered: no tool of another wire's servers, none that is yet to be searched for."""
    choice = request.tool_choice
    if choice is None or not choice.names:
        return request
    same_wire = request.wire == upstream.wire
    offered = {tool.name for tool in request.tools if same_wire or not tool.deferred}
    offered |= {str(tool.get("name")) for tool in request.hosted if same_wire}
    names = tuple(name for name in choice.names if name in offered)
    if names == choice.names:
        return request
    if names:
        upstream.report("choice-relaxed", "a choice of tools of which some are not offered: only of the others")
        return replace(request, tool_choice=ToolChoice(choice.mode, names))
    upstream.report("choice-relaxed", "a choice of tools of which none is offered: left to the model")
    return replace(request, tool_choice=ToolChoice("auto"))


def named_tools(request: Request, upstream: Upstream) -> Request:
    """Tools that are named in a choice that cannot name them: no others are offered."""
    choice, profile = request.tool_choice, upstream.profile
    if choice is None or not choice.names or upstream.takes_several_names:
        return request
    if profile.named and choice.mode == "required" and len(choice.names) == 1:
        return request
    tools = [tool for tool in request.tools if tool.name in choice.names]
    if len(tools) < len(request.tools):
        upstream.report("tools-narrowed", "tools that the choice does not allow: not offered")
    return replace(request, tools=tools, tool_choice=ToolChoice(choice.mode))


def strict_tools(request: Request, upstream: Upstream) -> Request:
    if upstream.wire != CHAT or upstream.profile.strict_tools or all(tool.strict is None for tool in request.tools):
        return request
    if any(tool.strict for tool in request.tools):
        upstream.report("setting-dropped", "`strict` of tools: not sent, so arguments may not fit their schema")
    return replace(request, tools=[replace(tool, strict=None) for tool in request.tools])


# ── all else ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def no_messages(request: Request, upstream: Upstream) -> Request:
    """In Messages the system prompt is no message, and there has to be one."""
    if upstream.wire != MESSAGES or request.messages:
        return request
    upstream.report("empty-content", f"no message at all: the user says {NO_CONTENT!r}")
    return replace(request, messages=[Message("user", [Text(NO_CONTENT)])])


def stop(request: Request, upstream: Upstream) -> Request:
    if upstream.wire == RESPONSES:  # which has none at all
        return request
    kept = [text for text in request.stop if upstream.takes_blanks or text.strip()]
    kept = kept[: upstream.profile.stop or None]
    if len(kept) < len(request.stop):
        upstream.report("stop-dropped", f"it takes {len(kept)} of these {len(request.stop)} stop sequences: only those")
    return replace(request, stop=kept)


def sampling(request: Request, upstream: Upstream) -> Request:
    """What of it is the upstream's own choice, and what chat completions do not have by their own."""
    left_out = () if upstream.profile.sampling else CHOSEN_THERE
    if upstream.wire == CHAT and not upstream.profile.top_k:
        left_out = (*left_out, "top_k")
    lost = [key for key in request.sampling if key in left_out]
    if not lost:
        return request
    upstream.report("setting-dropped", f"{', '.join(lost)}: not sent")
    return replace(request, sampling={key: value for key, value in request.sampling.items() if key not in lost})


def seed(request: Request, upstream: Upstream) -> Request:
    """What makes a reply repeatable, as chat completions call it there."""
    name = upstream.profile.seed
    if upstream.wire != CHAT or "seed" not in request.sampling:
        return request
    return replace(request, sampling={name if key == "seed" else key: said for key, said in request.sampling.items()})


def fields(request: Request, upstream: Upstream) -> Request:
    """Fields of chat completions that it does not know. Some upstreams refuse them, and none does what they say."""
    if upstream.wire != CHAT:
        return request
    lost = [name for name in UNSAID if getattr(request, name) and not getattr(upstream.profile, name)]
    if lost:
        upstream.report("setting-dropped", f"{', '.join(lost)}: not sent")
    if request.parallel is not None and not upstream.profile.parallel:
        lost.append("parallel")
        if not request.parallel:
            upstream.report("setting-dropped", "only one call at a time: not sent, so there may be more")
    return replace(request, **{name: {**UNSAID, "parallel": None}[name] for name in lost})


def known_fields(request: Request, upstream: Upstream) -> Request:
    """Fields of chat completions that are refused where they are not known."""
    known = upstream.profile.known_fields
    if upstream.wire != CHAT or not known:
        return request
    sampling = {key: value for key, value in request.sampling.items() if key in known}
    extra = {key: value for key, value in request.extra.items() if key in known}
    lost = [*(request.sampling.keys() - sampling.keys()), *(request.extra.keys() - extra.keys())]
    if lost:
        upstream.report("setting-dropped", f"{', '.join(sorted(lost))}: not sent")
    return replace(request, sampling=sampling, extra=extra)


STEPS: tuple[Callable[[Request, Upstream], Request], ...] = (
    measure,
    max_tokens,
    endless,
    budget,
    tools_once,
    no_tools,
    chosen_tools,
    forced_choice,
    named_tools,
    strict_tools,
    in_a_loop,
    prefilled,
    edits_of_thinking,
    no_messages,
    stop,
    sampling,
    seed,
    fields,
    known_fields,
)
