"""How much the model shall think, as an upstream can be asked it, and where it cannot think at all."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any

import msgspec

from interlingua.core.reply import Reasoning
from interlingua.core.request import BUDGETS, Message, Request, Result, Thinking
from interlingua.upstreams.adapt.context import Upstream
from interlingua.upstreams.profile import MESSAGES

__all__ = ["budget", "edits_of_thinking", "endless", "in_a_loop", "measure", "prefilled", "switched_off"]

SMALLEST_BUDGET = 1024
"""The least that upstreams with a budget for thinking take."""
EFFORTS = tuple(BUDGETS)
"""All words for it, from little to much."""
USUAL = "high"
"""What a word is taken as that nobody knows; and the most that Claude Opus 5 may be asked for without thinking."""
CLEAR_THINKING = "clear_thinking_20251015"
"""How Claude Code has old thinking left out. It is refused where the model does not think."""

replace = msgspec.structs.replace


def switched_off(thinking: Thinking, upstream: Upstream) -> Thinking:
    """No thinking. In Messages the effort is about all of the reply: it stays."""
    if upstream.wire != MESSAGES or thinking.effort in (None, "none"):
        return Thinking(on=False)
    if thinking.effort in EFFORTS[: EFFORTS.index(USUAL) + 1]:
        return Thinking(on=False, effort=thinking.effort)
    upstream.report("thinking-wish", f"the effort {thinking.effort} wants thinking: asked for as {USUAL}")
    return Thinking(on=False, effort=USUAL)


# ── how much ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def measure(request: Request, upstream: Upstream) -> Request:
    """In tokens or in words that the upstream knows, whichever it is told."""
    asked = request.thinking
    if asked.on is False and upstream.counts_tokens(request):
        return replace(request, thinking=replace(asked, effort=None))
    if not asked.wanted:
        return request
    if asked.budget == 0:
        upstream.report("thinking-wish", "0 tokens for thinking: it is switched off")
        return replace(request, thinking=Thinking(on=False))
    told = _in_tokens(asked) if upstream.counts_tokens(request) else _in_words(asked, upstream)
    if (told.effort, told.budget) != (asked.effort, asked.budget):
        wish, instead = (one.effort or f"{one.budget} tokens" for one in (asked, told))
        upstream.report("thinking-wish", f"how much to think ({wish}): asked for as {instead}")
    return replace(request, thinking=told)


def _in_tokens(asked: Thinking) -> Thinking:
    if asked.effort in (None, "none"):
        return replace(asked, effort=None)
    tokens = BUDGETS[_nearest(asked.effort, EFFORTS)] if asked.budget is None else asked.budget
    return replace(asked, on=True, effort=None, budget=tokens)


def _in_words(asked: Thinking, upstream: Upstream) -> Thinking:
    told = asked
    if upstream.knows_no_budgets and asked.budget is not None:
        told = replace(asked, effort=asked.as_effort(), budget=None)
    words = upstream.profile.efforts
    if not words or told.effort in (None, "none", *words):
        return told
    return replace(told, effort=_nearest(told.effort, words))


def _nearest(effort: str | None, words: Iterable[str]) -> str:
    """Of two that are as near, the higher."""
    wished = EFFORTS.index(effort if effort in EFFORTS else USUAL)
    return min(words, key=lambda word: (abs(EFFORTS.index(word) - wished), -EFFORTS.index(word)))


def endless(request: Request, upstream: Upstream) -> Request:
    """What always thinks."""
    if upstream.profile.can_stop_thinking or request.thinking.wanted is not False:
        return request
    upstream.report("thinking-wish", "it always thinks: as little as it can is asked for")
    if not upstream.knows_efforts:
        return replace(request, thinking=Thinking())
    return replace(request, thinking=Thinking(effort=_nearest("low", upstream.profile.efforts or EFFORTS)))


def budget(request: Request, upstream: Upstream) -> Request:
    """Thinking and the answer share the tokens: a budget for thinking leaves a quarter for the answer."""
    asked, most = request.thinking.budget, request.max_tokens
    if not asked or not request.thinking.wanted:
        return request
    if most is not None and most <= asked and most <= SMALLEST_BUDGET:
        upstream.report("budget-lowered", f"{most} tokens leave no room for thinking: none is asked for")
        off = switched_off(request.thinking, upstream)
        return replace(request, thinking=off if upstream.profile.can_stop_thinking else Thinking())
    fitting = asked
    if most is not None and most <= asked:
        fitting = max(SMALLEST_BUDGET, most - most // 4)
        upstream.report("budget-lowered", f"{asked} of {most} tokens for thinking: {fitting} leave some for the answer")
    elif upstream.wire == MESSAGES and asked < SMALLEST_BUDGET and (most is None or most > SMALLEST_BUDGET):
        fitting = SMALLEST_BUDGET
        upstream.report("thinking-wish", f"{asked} tokens for thinking: {fitting}, which is the least it takes")
    return request if fitting == asked else replace(request, thinking=replace(request.thinking, budget=fitting))


# ── where it cannot think ─────────────────────────────────────────────────────────────────────────────────────────────


def in_a_loop(request: Request, upstream: Upstream) -> Request:
    """Between a call and its result thinking cannot begin: it has to be there already, signed."""
    if not upstream.profile.thinking_first or not upstream.thinks(request.thinking):
        return request
    if not request.thinking.budget or _signed_loop(request.messages, upstream):
        return request
    upstream.report("thinking-stopped", "calls without their thinking wait for it to go on: it does not think now")
    return replace(request, thinking=switched_off(request.thinking, upstream))


def _signed_loop(messages: list[Message], upstream: Upstream) -> bool:
    """Whether the turn that began the calls whose results come last has its thinking; or no results do."""
    turns = [(by_model, [*turn]) for by_model, turn in groupby(messages, lambda one: one.role == "assistant")]
    first: list[Message] | None = None
    for (by_model, turn), (_, answers) in zip(turns[-2::-2], turns[::-2], strict=False):
        if not by_model or not any(isinstance(piece, Result) for one in answers for piece in one.pieces):
            break
        first = turn
    return first is None or _signed(first, upstream)


def _signed(turn: list[Message], upstream: Upstream) -> bool:
    return any(isinstance(piece, Reasoning) and upstream.signed(piece) for one in turn for piece in one.pieces)


def prefilled(request: Request, upstream: Upstream) -> Request:
    """What the client has begun to say for the model has no thinking before it. A turn that the server has paused
    does."""
    last = request.messages[-1] if request.messages else None
    if last is None or last.role != "assistant" or not upstream.profile.thinking_first:
        return request
    if not upstream.thinks(request.thinking) or not upstream.profile.can_stop_thinking or _signed([last], upstream):
        return request
    upstream.report("thinking-stopped", "the last words are the model's, without thinking: it does not think now")
    return replace(request, thinking=switched_off(request.thinking, upstream))


def edits_of_thinking(request: Request, upstream: Upstream) -> Request:
    """What Claude Code wants done with old thinking, where there is none to be."""
    edited = request.extra.get("context_management")
    if upstream.wire != MESSAGES or request.wire != MESSAGES or request.thinking.wanted is not False:
        return request
    edits = edited.get("edits") if isinstance(edited, dict) else None
    kept = [edit for edit in edits if not _clears(edit)] if isinstance(edits, list) else edits
    if not isinstance(edited, dict) or kept == edits:
        return request
    upstream.report("setting-dropped", f"{CLEAR_THINKING}: not sent, for it does not think now")
    extra = {key: value for key, value in request.extra.items() if key != "context_management"}
    return replace(request, extra=extra | ({"context_management": {**edited, "edits": kept}} if kept else {}))


def _clears(edit: Any) -> bool:
    return isinstance(edit, dict) and edit.get("type") == CLEAR_THINKING
