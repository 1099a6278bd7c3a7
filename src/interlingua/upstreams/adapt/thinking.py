"""How much the model shall think, as an upstream can be asked it, and where it cannot think at all."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any

import msgspec

from interlingua.core.reply import Reasoning
from interlingua.core.request import EFFORT_BUDGET_TOKENS, Message, Piece, Request, Result, Thinking
from interlingua.events import Seal
from interlingua.upstreams.adapt.context import AdaptContext
from interlingua.upstreams.profile import MESSAGES

__all__ = [
    "convert_effort",
    "disable_thinking",
    "drop_foreign_signatures",
    "drop_thinking_edits",
    "limit_thinking",
    "limit_thinking_budget",
    "no_thinking_after_prefill",
    "no_thinking_in_tool_loop",
]

MIN_BUDGET_TOKENS = 1024
"""The least that upstreams with a budget for thinking take."""
EFFORTS = tuple(EFFORT_BUDGET_TOKENS)
"""All words for it, from little to much."""
DEFAULT_EFFORT = "high"
"""What a word is taken as that nobody knows; and the most that Claude Opus 5 may be asked for without thinking."""
CLEAR_THINKING = "clear_thinking_20251015"
"""How Claude Code has old thinking left out. It is refused where the model does not think."""

replace = msgspec.structs.replace


def disable_thinking(thinking: Thinking, context: AdaptContext) -> Thinking:
    """No thinking. In Messages the effort is about all of the reply: it stays."""
    if context.wire != MESSAGES or thinking.effort in (None, "none"):
        return Thinking(on=False)
    if thinking.effort in EFFORTS[: EFFORTS.index(DEFAULT_EFFORT) + 1]:
        return Thinking(on=False, effort=thinking.effort)
    context.report("thinking-wish", f"the effort {thinking.effort} wants thinking: asked for as {DEFAULT_EFFORT}")
    return Thinking(on=False, effort=DEFAULT_EFFORT)


# ── how much ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def convert_effort(request: Request, context: AdaptContext) -> Request:
    """In tokens or in words that the upstream knows, whichever it is told."""
    requested = request.thinking
    if requested.on is False and context.uses_token_budget(request):
        return replace(request, thinking=replace(requested, effort=None))
    if not requested.requested:
        return request
    if requested.budget == 0:
        context.report("thinking-wish", "0 tokens for thinking: it is switched off")
        return replace(request, thinking=Thinking(on=False))
    converted = _to_budget(requested) if context.uses_token_budget(request) else _to_effort(requested, context)
    if (converted.effort, converted.budget) != (requested.effort, requested.budget):
        original, replacement = (thinking.effort or f"{thinking.budget} tokens" for thinking in (requested, converted))
        context.report("thinking-wish", f"how much to think ({original}): asked for as {replacement}")
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
    """Of two that are as near, the higher."""
    target = EFFORTS.index(effort if effort in EFFORTS else DEFAULT_EFFORT)
    return min(efforts, key=lambda candidate: (abs(EFFORTS.index(candidate) - target), -EFFORTS.index(candidate)))


def limit_thinking(request: Request, context: AdaptContext) -> Request:
    """What always thinks."""
    if context.profile.can_stop_thinking or request.thinking.requested is not False:
        return request
    context.report("thinking-wish", "it always thinks: as little as it can is asked for")
    if not context.accepts_effort:
        return replace(request, thinking=Thinking())
    return replace(request, thinking=Thinking(effort=_nearest_effort("low", context.profile.efforts or EFFORTS)))


def limit_thinking_budget(request: Request, context: AdaptContext) -> Request:
    """Thinking and the answer share the tokens: a budget for thinking leaves a quarter for the answer."""
    requested, max_tokens = request.thinking.budget, request.max_tokens
    if not requested or not request.thinking.requested:
        return request
    if max_tokens is not None and max_tokens <= requested and max_tokens <= MIN_BUDGET_TOKENS:
        context.report("budget-lowered", f"{max_tokens} tokens leave no room for thinking: none is asked for")
        off = disable_thinking(request.thinking, context)
        return replace(request, thinking=off if context.profile.can_stop_thinking else Thinking())
    budget = requested
    if max_tokens is not None and max_tokens <= requested:
        budget = max(MIN_BUDGET_TOKENS, max_tokens - max_tokens // 4)
        context.report(
            "budget-lowered", f"{requested} of {max_tokens} tokens for thinking: {budget} leave some for the answer"
        )
    elif (
        context.wire == MESSAGES
        and requested < MIN_BUDGET_TOKENS
        and (max_tokens is None or max_tokens > MIN_BUDGET_TOKENS)
    ):
        budget = MIN_BUDGET_TOKENS
        context.report("thinking-wish", f"{requested} tokens for thinking: {budget}, which is the least it takes")
    return request if budget == requested else replace(request, thinking=replace(request.thinking, budget=budget))


# ── where it cannot think ─────────────────────────────────────────────────────────────────────────────────────────────


def no_thinking_in_tool_loop(request: Request, context: AdaptContext) -> Request:
    """Between a call and its result thinking cannot begin: it has to be there already, signed."""
    if not context.profile.thinking_first or not context.will_think(request.thinking):
        return request
    if not request.thinking.budget or _is_loop_signed(request.messages, context):
        return request
    context.report("thinking-stopped", "calls without their thinking wait for it to go on: it does not think now")
    return replace(request, thinking=disable_thinking(request.thinking, context))


def _is_loop_signed(messages: list[Message], context: AdaptContext) -> bool:
    """Whether the turn that began the calls whose results come last has its thinking; or no results do."""
    turns = [(by_model, [*turn]) for by_model, turn in groupby(messages, lambda message: message.role == "assistant")]
    first_turn: list[Message] | None = None
    for (by_model, turn), (_, results) in zip(turns[-2::-2], turns[::-2], strict=False):
        if not by_model or not any(isinstance(piece, Result) for one in results for piece in one.pieces):
            break
        first_turn = turn
    return first_turn is None or _has_signed_reasoning(first_turn, context)


def _has_signed_reasoning(turn: list[Message], context: AdaptContext) -> bool:
    return any(
        isinstance(piece, Reasoning) and context.can_carry_signature(piece)
        for message in turn
        for piece in message.pieces
    )


def no_thinking_after_prefill(request: Request, context: AdaptContext) -> Request:
    """What the client has begun to say for the model has no thinking before it. A turn that the server has paused
    does."""
    last = request.messages[-1] if request.messages else None
    if last is None or last.role != "assistant" or not context.profile.thinking_first:
        return request
    if (
        not context.will_think(request.thinking)
        or not context.profile.can_stop_thinking
        or _has_signed_reasoning([last], context)
    ):
        return request
    context.report("thinking-stopped", "the last words are the model's, without thinking: it does not think now")
    return replace(request, thinking=disable_thinking(request.thinking, context))


def drop_thinking_edits(request: Request, context: AdaptContext) -> Request:
    """What Claude Code wants done with old thinking, where there is none to be."""
    context_management = request.extra.get("context_management")
    if context.wire != MESSAGES or request.wire != MESSAGES or request.thinking.requested is not False:
        return request
    edits = context_management.get("edits") if isinstance(context_management, dict) else None
    kept = [edit for edit in edits if not _is_clear_thinking(edit)] if isinstance(edits, list) else edits
    if not isinstance(context_management, dict) or kept == edits:
        return request
    context.report("setting-dropped", f"{CLEAR_THINKING}: not sent, for it does not think now")
    extra = {key: value for key, value in request.extra.items() if key != "context_management"}
    return replace(
        request, extra=extra | ({"context_management": {**context_management, "edits": kept}} if kept else {})
    )


def _is_clear_thinking(edit: Any) -> bool:
    return isinstance(edit, dict) and edit.get("type") == CLEAR_THINKING


def drop_foreign_signatures(request: Request, context: AdaptContext) -> Request:
    """Others' thinking stays, without what they signed: that is of no wire which the upstream could be asked on."""
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
