"""What is asked of a reply, as an upstream can be asked it: which tools, how much thinking, when to stop."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from interlingua.adapt.upstream import Upstream
from interlingua.reply import Reasoning
from interlingua.request import Message, Request, Result, Thinking, ToolChoice

__all__ = ["STEPS"]

SMALLEST_BUDGET = 1024
"""The least that upstreams with a budget for thinking take."""

replace = msgspec.structs.replace


# ── tokens ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def max_tokens(request: Request, upstream: Upstream) -> Request:
    largest = upstream.profile.largest
    if not largest or request.max_tokens is None or request.max_tokens <= largest:
        return request
    upstream.report("max-tokens", f"{request.max_tokens} tokens asked for: {largest}, which is the most it takes")
    return replace(request, max_tokens=largest)


def budget(request: Request, upstream: Upstream) -> Request:
    """Thinking and the answer share the tokens: a budget for thinking leaves a quarter for the answer."""
    asked, most = request.thinking.budget, request.max_tokens
    if not asked or most is None or asked < most:
        return request
    if most <= SMALLEST_BUDGET:
        upstream.report("budget-lowered", f"{most} tokens leave no room for thinking: none is asked for")
        return replace(request, thinking=Thinking(on=False) if upstream.profile.can_stop_thinking else Thinking())
    lowered = max(SMALLEST_BUDGET, most - most // 4)
    upstream.report("budget-lowered", f"{asked} of {most} tokens for thinking: {lowered}, to leave some for the answer")
    return replace(request, thinking=replace(request.thinking, budget=lowered))


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
        return replace(request, thinking=Thinking(on=False))
    why = " while it thinks" if profile.required else ""
    upstream.report("choice-relaxed", f"it cannot be forced to call a tool{why}: left to the model")
    return replace(request, tool_choice=ToolChoice("auto", choice.names))


def named_tools(request: Request, upstream: Upstream) -> Request:
    """Tools that are named in a choice that cannot name them: no others are offered."""
    choice, profile = request.tool_choice, upstream.profile
    if choice is None or not choice.names or profile.allowed_tools:
        return request
    if profile.named and choice.mode == "required" and len(choice.names) == 1:
        return request
    tools = [tool for tool in request.tools if tool.name in choice.names]
    if not tools:
        return request
    if len(tools) < len(request.tools):
        upstream.report("tools-narrowed", f"its choice cannot name these tools: only {', '.join(choice.names)} offered")
    return replace(request, tools=tools, tool_choice=ToolChoice(choice.mode))


def strict_tools(request: Request, upstream: Upstream) -> Request:
    if (
        upstream.wire != "openai-chat"
        or upstream.profile.strict_tools
        or all(tool.strict is None for tool in request.tools)
    ):
        return request
    if any(tool.strict for tool in request.tools):
        upstream.report("setting-dropped", "`strict` of tools: not sent, so arguments may not fit their schema")
    return replace(request, tools=[replace(tool, strict=None) for tool in request.tools])


# ── thinking ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def thinking_in_a_loop(request: Request, upstream: Upstream) -> Request:
    """Between a call and its result thinking cannot begin: it has to be there already, signed."""
    if not upstream.profile.thinking_first or not request.thinking.budget or not upstream.thinks(request.thinking):
        return request
    first = _first_of_loop(request.messages)
    signed = (isinstance(piece, Reasoning) and upstream.signed(piece) for piece in first.pieces) if first else [True]
    if any(signed):
        return request
    upstream.report("thinking-stopped", "calls without their thinking wait for it to go on: it does not think now")
    return replace(request, thinking=Thinking(on=False))


def _first_of_loop(messages: list[Message]) -> Message | None:
    """The model's message that began the calls whose results come last; None if no results do."""
    first = None
    for n in range(len(messages) - 1, 0, -2):
        if not any(isinstance(piece, Result) for piece in messages[n].pieces) or messages[n - 1].role != "assistant":
            break
        first = messages[n - 1]
    return first


# ── all else ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def stop(request: Request, upstream: Upstream) -> Request:
    kept = [text for text in request.stop if upstream.profile.blank_text or text.strip()]
    kept = kept[: upstream.profile.stop or None]
    if len(kept) < len(request.stop):
        upstream.report("stop-dropped", f"it takes {len(kept)} of these {len(request.stop)} stop sequences: only those")
    return replace(request, stop=kept)


def fields(request: Request, upstream: Upstream) -> Request:
    """Fields of chat completions that it does not know. Some upstreams refuse them, and none does what they say."""
    if upstream.wire != "openai-chat":
        return request
    profile, sampling, parallel = upstream.profile, request.sampling, request.parallel
    if not profile.top_k and "top_k" in sampling:
        upstream.report("setting-dropped", "top_k: not sent")
        sampling = {key: value for key, value in sampling.items() if key != "top_k"}
    if not profile.parallel and parallel is not None:
        if not parallel:
            upstream.report("setting-dropped", "only one call at a time: not sent, so there may be more")
        parallel = None
    return replace(
        request,
        sampling=sampling,
        parallel=parallel,
        user=request.user if profile.user else "",
        cache_key=request.cache_key if profile.cache_key else "",
    )


STEPS: tuple[Callable[[Request, Upstream], Request], ...] = (
    max_tokens,
    budget,
    no_tools,
    forced_choice,
    named_tools,
    strict_tools,
    thinking_in_a_loop,
    stop,
    fields,
)
