"""The conversation as an upstream takes it: who may speak where, and what becomes of thinking that is not its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import takewhile
from typing import TypeAlias, TypeVar

import msgspec

from interlingua.core.reply import Call, Reasoning, Text
from interlingua.core.request import NO_CONTENT, CacheMark, Content, Extra, Message, Piece, Request, Result
from interlingua.upstreams.adapt.context import Upstream
from interlingua.upstreams.profile import CHAT

__all__ = ["PIECES", "SPEAKERS"]

P = TypeVar("P")
BILLING_LINE = re.compile(r"(?:x-anthropic-billing-header:[^\n]*\n*)+")
"""What Claude Code writes before everything else. It changes with every request, and no prompt cache survives it."""
BRIDGE = Message("assistant", [Text("Understood.")])
GO_ON = Message("user", [Text("Go on.")])
BLANK = Reasoning(" ")
"""Stands for thinking that a client did not send back. Upstreams that want some take an empty one as none."""


def _replace(request: Request, messages: list[Message]) -> Request:
    return msgspec.structs.replace(request, messages=[message for message in messages if message.pieces])


def _changed(message: Message, change: Callable[[Piece], Piece | None]) -> Message:
    """The message with each piece changed; with a piece that is none any more, its cache marks go, too."""
    pieces: list[Piece] = []
    kept = True
    for piece in message.pieces:
        changed = (piece if kept else None) if isinstance(piece, CacheMark) else change(piece)
        kept = changed is not None
        if changed is not None:
            pieces.append(changed)
    return Message(message.role, pieces, message.name)


# ── the system ────────────────────────────────────────────────────────────────────────────────────────────────────────


def billing_line(request: Request, upstream: Upstream) -> Request:
    if upstream.profile.billing_line:
        return request

    def without(piece: Piece) -> Piece | None:
        if not isinstance(piece, Text) or not (line := BILLING_LINE.match(piece.text)):
            return piece
        upstream.report("billing-line", "Claude Code's billing line, which is not for this upstream: removed")
        rest = piece.text[line.end() :]
        return Text(rest) if rest else None

    return msgspec.structs.replace(request, system=_content(_changed(Message("system", [*request.system]), without)))


def system_messages(request: Request, upstream: Upstream) -> Request:
    """System messages of an upstream that has one system prompt: the first join it, later ones are the user's."""
    if upstream.profile.system_anywhere:
        return request
    first = next((n for n, message in enumerate(request.messages) if message.role != "system"), len(request.messages))
    system = [*request.system, *(piece for message in request.messages[:first] for piece in _content(message))]
    messages = [_of_the_user(message) if message.role == "system" else message for message in request.messages[first:]]
    later = sum(message.role == "system" for message in request.messages[first:])
    if later:
        upstream.report("system-as-user", f"{later} in the middle of the conversation: told as text of the user")
    return msgspec.structs.replace(_replace(request, messages), system=system)


def _content(message: Message) -> list[Content]:
    return [piece for piece in message.pieces if not isinstance(piece, Reasoning | Call | Result)]


def _of_the_user(message: Message) -> Message:
    """A system message as text of the user, marked as what it is."""
    pieces = message.pieces
    marked = [Text(f"<system>\n{one.text}\n</system>") if isinstance(one, Text) else one for one in pieces]
    return Message("user", marked, message.name)


# ── pieces ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def thinking(request: Request, upstream: Upstream) -> Request:
    """Thinking of others: its text for upstreams that take text, and nothing for those that want their own seal."""
    if not request.holds(Reasoning):
        return request
    nowhere = upstream.wire == CHAT and upstream.profile.replay == "none"
    as_text = not upstream.profile.own_seals

    def taken(piece: Piece) -> Piece | None:
        if not isinstance(piece, Reasoning):
            return piece
        told = upstream.signed(piece) or (as_text and piece.text)
        return piece if told and not nowhere else None

    adapted = _replace(request, [_changed(message, taken) for message in request.messages])
    dropped = _count(request, Reasoning) - _count(adapted, Reasoning)
    if dropped:
        upstream.report("thinking-dropped", f"{dropped} pieces of past thinking that it does not take: dropped")
    return adapted


def _count(request: Request, kind: type[Piece]) -> int:
    return sum(isinstance(piece, kind) for message in request.messages for piece in message.pieces)


def lost_thinking(request: Request, upstream: Upstream) -> Request:
    if not upstream.profile.thinking_with_calls:
        return request
    messages = [
        Message(message.role, [BLANK, *message.pieces], message.name) if _lacks_thinking(message) else message
        for message in request.messages
    ]
    lost = sum(map(_lacks_thinking, request.messages))
    if lost:
        upstream.report("thinking-lost", f"{lost} past messages with calls have lost their thinking: it gets a blank")
    return _replace(request, messages)


def _lacks_thinking(message: Message) -> bool:
    calls = any(isinstance(piece, Call) for piece in message.pieces)
    return calls and not any(isinstance(piece, Reasoning) and piece.text for piece in message.pieces)


def blank_text(request: Request, upstream: Upstream) -> Request:
    if upstream.takes_blanks:
        return request
    blanks = 0

    def spoken(piece: Piece) -> Piece | None:
        nonlocal blanks
        if isinstance(piece, Result):
            told = _changed(Message("user", [*piece.content]), spoken)
            return Result(piece.id, _content(told), piece.error)
        blank = isinstance(piece, Text) and not piece.text.strip()
        blanks += blank
        return None if blank else piece

    system = _content(_changed(Message("system", [*request.system]), spoken))
    messages = [_changed(message, spoken) for message in request.messages]
    silent = [Message(one.role, [Text(NO_CONTENT)], one.name) if _is_silent(one) else one for one in messages]
    if blanks:
        upstream.report("empty-content", f"{blanks} texts of white space only: dropped")
    return msgspec.structs.replace(_replace(request, silent), system=system)


def _is_silent(message: Message) -> bool:
    return message.role == "user" and not message.pieces


def cache_marks(request: Request, upstream: Upstream) -> Request:
    if upstream.wire != CHAT or upstream.profile.cache_marks or not request.holds(CacheMark):
        return request

    def unmarked(piece: Piece) -> Piece:
        return Result(piece.id, _unmarked(piece.content), piece.error) if isinstance(piece, Result) else piece

    messages = [Message(one.role, _unmarked(map(unmarked, one.pieces)), one.name) for one in request.messages]
    system = _unmarked(request.system)
    if system != request.system or messages != request.messages:
        upstream.report("cache-mark-dropped", "cache_control is not known to it: dropped")
    return msgspec.structs.replace(request, system=system, messages=messages)


def _unmarked(pieces: Iterable[P]) -> list[P]:
    return [piece for piece in pieces if not isinstance(piece, CacheMark)]


# ── who speaks when ───────────────────────────────────────────────────────────────────────────────────────────────────


def names(request: Request, upstream: Upstream) -> Request:
    if upstream.profile.names or not any(message.name for message in request.messages):
        return request
    upstream.report("setting-dropped", "the names of those who speak: not told")
    return _replace(request, [Message(message.role, message.pieces) for message in request.messages])


def alternation(request: Request, upstream: Upstream) -> Request:
    if not upstream.profile.alternating:
        return request
    joined: list[Message] = []
    for message in request.messages:
        if joined and joined[-1].role == message.role:
            last = joined.pop()
            message = Message(last.role, [*last.pieces, *message.pieces], last.name)
        joined.append(message)
    return _replace(request, joined)


def bridges(request: Request, upstream: Upstream) -> Request:
    """A word of the model between results and what the user says behind them."""
    if upstream.profile.user_after_results:
        return request
    told: list[Message] = []
    for message in request.messages:
        results = [*takewhile(lambda piece: isinstance(piece, Result | CacheMark), message.pieces)]
        for pieces in (results, message.pieces[len(results) :]):
            if pieces and told and told[-1].role == message.role == "user" and _answers(told[-1]):
                told.append(BRIDGE)
            told.append(Message(message.role, pieces, message.name))
    added = told.count(BRIDGE) - request.messages.count(BRIDGE)
    if added:
        upstream.report("bridge", f"the user speaks right behind results, {added} times: the model says a word between")
    return _replace(request, told)


def _answers(message: Message) -> bool:
    return any(isinstance(piece, Result) for piece in message.pieces)


def last_word(request: Request, upstream: Upstream) -> Request:
    if upstream.profile.prefill or not request.messages or request.messages[-1].role != "assistant":
        return request
    if _is_paused(request.messages[-1], upstream.wire):
        return request
    upstream.report("go-on", "the last message is the model's: the user asks it to go on")
    return _replace(request, [*request.messages, GO_ON])


def _is_paused(message: Message, wire: str) -> bool:
    """Whether it ends with what the server has run: that is the server's own turn, and it goes on from there."""
    last = _unmarked(message.pieces)[-1:]
    return any(isinstance(piece, Extra) and piece.wire == wire for piece in last)


Step: TypeAlias = Callable[[Request, Upstream], Request]
PIECES: tuple[Step, ...] = (billing_line, system_messages, thinking, lost_thinking, blank_text, cache_marks)
SPEAKERS: tuple[Step, ...] = (names, alternation, bridges, last_word)
