"""Adapt the requested amount of thinking to an upstream, and disable thinking where the upstream does not allow it."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any

import msgspec

from interlingua.core.reply import Reasoning
from interlingua.core.request import EFFORT_BUDGET_TOKENS, Message, Piece, Request, Result, Thinking
from interlingua.events import Seal
from interlingua.upstreams.adapt.context import AdaptContext

__all__ = [
    "convert_effort",
    "disable_implied_thinking",
    "disable_thinking",
    "drop_foreign_signatures",
    "drop_thinking_edits",
    "drop_thinking_setting",
    "limit_thinking",
    "limit_thinking_budget",
    "no_thinking_after_prefill",
    "no_thinking_in_tool_loop",
    "open_loop_is_signed",
]

MIN_BUDGET_TOKENS = 1024
"""Smallest budget that a small token limit leaves for thinking; below it, thinking is disabled."""
EFFORTS = tuple(EFFORT_BUDGET_TOKENS)
"""All effort names, in increasing order."""
DEFAULT_EFFORT = "high"
"""Replacement for an unknown effort, and the highest effort that Claude Opus 5 accepts without thinking."""

replace = msgspec.structs.replace


def disable_thinking(thinking: Thinking, context: AdaptContext) -> Thinking:
    """Return the settings with thinking disabled. An effort that applies to the whole reply is kept."""
    if not context.traits.has_effort_without_thinking or thinking.effort in (None, "none"):
        return Thinking(on=False)
    if thinking.effort in EFFORTS[: EFFORTS.index(DEFAULT_EFFORT) + 1]:
        return Thinking(on=False, effort=thinking.effort)
    context.report("thinking-wish", f"the effort {thinking.effort} requires thinking: sent as {DEFAULT_EFFORT}")
    return Thinking(on=False, effort=DEFAULT_EFFORT)


def drop_thinking_setting(request: Request, context: AdaptContext) -> Request:
    """Remove the settings of thinking, for a model that refuses them."""
    if context.profile.thinking_setting or request.thinking.requested is None:
        return request
    if request.thinking.requested:
        context.report("thinking-wish", f"{request.model} cannot think: nothing is sent about thinking")
    return replace(request, thinking=Thinking(show=request.thinking.show))


def disable_implied_thinking(request: Request, context: AdaptContext) -> Request:
    """Disable thinking for an effort that does not ask for thinking, if the upstream would take it for a wish to
    think."""
    thinking = request.thinking
    if not thinking.effort_is_general or context.traits.has_effort_without_thinking:
        return request
    if thinking.effort is None or thinking.requested is not None:
        return replace(request, thinking=replace(thinking, effort_is_general=False))
    context.report("thinking-wish", f"the effort {thinking.effort} without thinking: thinking is disabled")
    return replace(request, thinking=Thinking(on=False, show=thinking.show))


# ── amount of thinking ────────────────────────────────────────────────────────────────────────────────────────────────


def convert_effort(request: Request, context: AdaptContext) -> Request:
    """Convert the amount of thinking to a token budget or to an effort that the upstream accepts."""
    requested = request.thinking
    if requested.on is False and context.uses_token_budget(request):
        return replace(request, thinking=replace(requested, effort=None))
    if not requested.requested:
        return request
    if requested.budget == 0:
        context.report("thinking-wish", "thinking budget of 0 tokens: thinking is disabled")
        return replace(request, thinking=Thinking(on=False))
    if context.keeps_values(request) and requested.budget is None:
        return request
    converted = _to_budget(requested) if context.uses_token_budget(request) else _to_effort(requested, context)
    if (converted.effort, converted.budget) != (requested.effort, requested.budget):
        original, replacement = (thinking.effort or f"{thinking.budget} tokens" for thinking in (requested, converted))
        context.report("thinking-wish", f"amount of thinking ({original}): sent as {replacement}")
    return replace(request, thinking=converted)


def _to_budget(thinking: Thinking) -> Thinking:
    if thinking.effort in (None, "none"):
        return replace(thinking, effort=None)
    tokens = (
        EFFORT_BUDGET_TOKENS[_nearest_effort(thinking.effort, EFFORTS)] if thinking.budget is None else thinking.budget
    )
    return replace(thinking, on=True, effort=None, budget=tokens)


def _to_effort(thinking: Thinking, context: AdaptContext) -> Thinking:
    converted = thinking
    if context.accepts_effort_only and thinking.budget is not None:
        converted = replace(thinking, effort=thinking.as_effort(), budget=None)
    efforts = context.profile.efforts
    if not efforts or converted.effort in (None, "none", *efforts):
        return converted
    return replace(converted, effort=_nearest_effort(converted.effort, efforts))


def _nearest_effort(effort: str | None, efforts: Iterable[str]) -> str:
    """Return the nearest of these efforts; of two at the same distance, the higher."""
    target = EFFORTS.index(effort if effort in EFFORTS else DEFAULT_EFFORT)
    return min(efforts, key=lambda candidate: (abs(EFFORTS.index(candidate) - target), -EFFORTS.index(candidate)))


def limit_thinking(request: Request, context: AdaptContext) -> Request:
    """Request the least thinking from a model whose thinking cannot be disabled."""
    if context.profile.can_stop_thinking or request.thinking.requested is not False:
        return request
    context.report("thinking-wish", "thinking cannot be disabled: the lowest amount is requested")
    if not context.accepts_effort:
        return replace(request, thinking=Thinking())
    return replace(request, thinking=Thinking(effort=_nearest_effort("low", context.profile.efforts or EFFORTS)))


def limit_thinking_budget(request: Request, context: AdaptContext) -> Request:
    """Lower the thinking budget to three quarters of the token limit, because thinking and answer share the tokens."""
    requested, max_tokens = request.thinking.budget, request.max_tokens
    if not requested or not request.thinking.requested:
        return request
    if max_tokens is not None and max_tokens <= requested and max_tokens <= MIN_BUDGET_TOKENS:
        context.report("budget-lowered", f"{max_tokens} tokens leave no room for thinking: thinking is disabled")
        off = disable_thinking(request.thinking, context)
        return replace(request, thinking=off if context.profile.can_stop_thinking else Thinking())
    budget, minimum = requested, context.traits.min_thinking_budget
    if max_tokens is not None and max_tokens <= requested:
        budget = max(MIN_BUDGET_TOKENS, max_tokens - max_tokens // 4)
        context.report(
            "budget-lowered", f"{requested} of {max_tokens} tokens for thinking: lowered to {budget} for the answer"
        )
    elif minimum and requested < minimum and (max_tokens is None or max_tokens > minimum):
        budget = minimum
        context.report("thinking-wish", f"{requested} tokens for thinking: raised to the minimum of {budget}")
    return request if budget == requested else replace(request, thinking=replace(request.thinking, budget=budget))


# ── where thinking is not allowed ─────────────────────────────────────────────────────────────────────────────────────


def no_thinking_in_tool_loop(request: Request, context: AdaptContext) -> Request:
    """Disable thinking in a tool loop that has no signed thinking: thinking cannot start between a call and its
    result."""
    if not context.profile.thinking_first or not context.will_think(request.thinking):
        return request
    if not request.thinking.budget or open_loop_is_signed(request.messages, context) is not False:
        return request
    context.report("thinking-stopped", "open tool loop without its thinking: thinking is disabled for this reply")
    return replace(request, thinking=disable_thinking(request.thinking, context))


def open_loop_is_signed(messages: list[Message], context: AdaptContext) -> bool | None:
    """Return whether the turn that started the current tool loop has signed thinking. None if there is no tool loop,
    which means that the conversation does not end with results."""
    is_signed = context.earlier.signed_loop
    by_side = groupby(messages, lambda message: message.role == "assistant")
    turn: list[Message] | None = None
    for by_model, side in by_side:
        if by_model:
            turn = [*side]
        elif turn is None or not any(isinstance(piece, Result) for message in side for piece in message.pieces):
            is_signed, turn = None, None
        else:
            is_signed, turn = _has_signed_reasoning(turn, context) if is_signed is None else is_signed, None
    return is_signed if turn is None else None


def _has_signed_reasoning(turn: list[Message], context: AdaptContext) -> bool:
    return any(
        isinstance(piece, Reasoning) and context.can_carry_signature(piece)
        for message in turn
        for piece in message.pieces
    )


def no_thinking_after_prefill(request: Request, context: AdaptContext) -> Request:
    """Disable thinking if the conversation ends with assistant text from the client (prefill), which has no thinking. A
    turn that the server has paused has thinking."""
    last = request.messages[-1] if request.messages else None
    if last is None or last.role != "assistant" or not context.profile.thinking_first:
        return request
    if (
        not context.will_think(request.thinking)
        or not context.profile.can_stop_thinking
        or _has_signed_reasoning([last], context)
    ):
        return request
    message = "the last message is from the assistant, without thinking: thinking is disabled for this reply"
    context.report("thinking-stopped", message)
    return replace(request, thinking=disable_thinking(request.thinking, context))


def drop_thinking_edits(request: Request, context: AdaptContext) -> Request:
    """Drop the edit that removes old thinking, as Claude Code sends it, if thinking is disabled."""
    edit_type = context.traits.clear_thinking_edit
    if not edit_type or request.wire != context.wire or request.thinking.requested is not False:
        return request
    context_management = request.extra.get("context_management")
    edits = context_management.get("edits") if isinstance(context_management, dict) else None
    kept = [edit for edit in edits if not _has_type(edit, edit_type)] if isinstance(edits, list) else edits
    if not isinstance(context_management, dict) or kept == edits:
        return request
    context.report("setting-dropped", f"{edit_type}: not sent, because thinking is disabled")
    extra = {key: value for key, value in request.extra.items() if key != "context_management"}
    return replace(
        request, extra=extra | ({"context_management": {**context_management, "edits": kept}} if kept else {})
    )


def _has_type(edit: Any, edit_type: str) -> bool:
    return isinstance(edit, dict) and edit.get("type") == edit_type


def drop_foreign_signatures(request: Request, context: AdaptContext) -> Request:
    """Keep the text of other upstreams' thinking, but mark its signature as unusable: an empty wire name matches no
    wire."""
    if not request.has_piece(Reasoning):
        return request

    def strip_signature(piece: Piece) -> Piece:
        match piece:
            case Reasoning(seal=Seal() as seal) if seal.wire == context.wire and not context.is_own(seal):
                return Reasoning(piece.text, Seal("", seal.data))
        return piece

    messages = [
        Message(message.role, [*map(strip_signature, message.pieces)], message.name) for message in request.messages
    ]
    return msgspec.structs.replace(request, messages=messages)
