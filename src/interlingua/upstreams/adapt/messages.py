"""Adapt the conversation to an upstream: order of roles, system messages, and thinking of other upstreams."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import takewhile
from typing import TypeVar

import msgspec

from interlingua.core.reasoning_signatures import CALL_SIGNATURE
from interlingua.core.reply import Call, Reasoning, Text
from interlingua.core.request import NO_CONTENT, CacheMark, Content, Extra, Image, Message, Piece, Request, Result
from interlingua.upstreams.adapt.context import AdaptContext, AdaptStep

__all__ = ["CONTENT_STEPS", "TURN_STEPS", "append_go_on"]

P = TypeVar("P")
BILLING_LINE_PATTERN = re.compile(r"(?:x-anthropic-billing-header:[^\n]*\n*)+")
"""First line of Claude Code's system prompt. It changes with every request, which invalidates every prompt cache."""
BRIDGE_MESSAGE = Message("assistant", [Text("Understood.")])
GO_ON_MESSAGE = Message("user", [Text("Go on.")])
IMAGE_OMITTED_TEXT = "[image omitted: {} takes no images]"
"""Text in the place of an image, with the model."""
BLANK_REASONING = Reasoning(" ")
"""Placeholder for thinking that a client did not return. Upstreams that require thinking reject an empty text."""


def _with_messages(request: Request, messages: list[Message]) -> Request:
    return msgspec.structs.replace(request, messages=[message for message in messages if message.pieces])


def _map_pieces(message: Message, change: Callable[[Piece], Piece | None]) -> Message:
    """Return the message with each piece changed. If a piece is removed, its cache mark is removed, too."""
    pieces: list[Piece] = []
    previous_kept = True
    for piece in message.pieces:
        changed = (piece if previous_kept else None) if isinstance(piece, CacheMark) else change(piece)
        previous_kept = changed is not None
        if changed is not None:
            pieces.append(changed)
    return Message(message.role, pieces, message.name)


# ── system prompt ─────────────────────────────────────────────────────────────────────────────────────────────────────


def drop_billing_line(request: Request, context: AdaptContext) -> Request:
    if context.profile.billing_line:
        return request

    def strip_line(piece: Piece) -> Piece | None:
        if not isinstance(piece, Text) or not (line := BILLING_LINE_PATTERN.match(piece.text)):
            return piece
        context.report("billing-line", "Claude Code's billing line, which this upstream does not use: removed")
        remainder = piece.text[line.end() :]
        return Text(remainder) if remainder else None

    return msgspec.structs.replace(
        request, system=_content(_map_pieces(Message("system", [*request.system]), strip_line))
    )


def merge_system_messages(request: Request, context: AdaptContext) -> Request:
    """Merge system messages for an upstream that has a single system prompt: leading ones are appended to it, later
    ones become user messages."""
    if context.profile.system_anywhere or context.keeps_values(request):
        return request
    first = next((n for n, message in enumerate(request.messages) if message.role != "system"), len(request.messages))
    system = [*request.system, *(piece for message in request.messages[:first] for piece in _content(message))]
    messages = [
        _as_user_message(message) if message.role == "system" else message for message in request.messages[first:]
    ]
    later_count = sum(message.role == "system" for message in request.messages[first:])
    if later_count:
        context.report_count(
            "system-as-user", "{} in the middle of the conversation: converted to user text", later_count
        )
    return msgspec.structs.replace(_with_messages(request, messages), system=system)


def _content(message: Message) -> list[Content]:
    return [piece for piece in message.pieces if not isinstance(piece, Reasoning | Call | Result)]


def _as_user_message(message: Message) -> Message:
    """Convert a system message to user text in `<system>` tags."""
    pieces = message.pieces
    marked = [Text(f"<system>\n{piece.text}\n</system>") if isinstance(piece, Text) else piece for piece in pieces]
    return Message("user", marked, message.name)


# ── pieces ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def drop_unsupported_thinking(request: Request, context: AdaptContext) -> Request:
    """Drop thinking that the upstream does not accept. Text of other upstreams' thinking is kept, unless the upstream
    requires its own signature."""
    if not request.has_piece(Reasoning):
        return request
    no_replay_field = context.traits.varies_by_server and context.profile.replay == "none"
    accepts_text = not context.profile.own_seals

    def keep_supported(piece: Piece) -> Piece | None:
        if not isinstance(piece, Reasoning):
            return piece
        is_signed = context.can_carry_signature(piece)
        if is_signed and piece.seal is not None and CALL_SIGNATURE in piece.seal.data:
            return piece  # a field of the call carries it
        return piece if (is_signed or (accepts_text and piece.text)) and not no_replay_field else None

    adapted = _with_messages(request, [_map_pieces(message, keep_supported) for message in request.messages])
    dropped = _count_pieces(request, Reasoning) - _count_pieces(adapted, Reasoning)
    if dropped:
        context.report_count(
            "thinking-dropped", "{} pieces of past thinking that the upstream rejects: dropped", dropped
        )
    return adapted


def _count_pieces(request: Request, piece_type: type[Piece]) -> int:
    return sum(isinstance(piece, piece_type) for message in request.messages for piece in message.pieces)


def fill_missing_thinking(request: Request, context: AdaptContext) -> Request:
    if not context.profile.thinking_with_calls:
        return request
    messages = [
        Message(message.role, [BLANK_REASONING, *message.pieces], message.name) if _lacks_thinking(message) else message
        for message in request.messages
    ]
    missing = sum(map(_lacks_thinking, request.messages))
    if missing:
        context.report_count(
            "thinking-lost", "past messages with calls lack their thinking ({}): placeholder added", missing
        )
    return _with_messages(request, messages)


def _lacks_thinking(message: Message) -> bool:
    has_calls = any(isinstance(piece, Call) for piece in message.pieces)
    return has_calls and not any(isinstance(piece, Reasoning) and piece.text for piece in message.pieces)


def drop_blank_text(request: Request, context: AdaptContext) -> Request:
    if context.accepts_blank_text:
        return request
    blanks = 0

    def drop_blank(piece: Piece) -> Piece | None:
        nonlocal blanks
        if isinstance(piece, Result):
            without_blanks = _map_pieces(Message("user", [*piece.content]), drop_blank)
            return Result(piece.id, _content(without_blanks), piece.error)
        blank = isinstance(piece, Text) and not piece.text.strip()
        blanks += blank
        return None if blank else piece

    system = _content(_map_pieces(Message("system", [*request.system]), drop_blank))
    messages = [_map_pieces(message, drop_blank) for message in request.messages]
    filled = [
        Message(message.role, [Text(NO_CONTENT)], message.name) if _is_empty_user_message(message) else message
        for message in messages
    ]
    if blanks:
        context.report_count("empty-content", "{} texts of whitespace only: dropped", blanks)
    return msgspec.structs.replace(_with_messages(request, filled), system=system)


def _is_empty_user_message(message: Message) -> bool:
    return message.role == "user" and not message.pieces


def drop_cache_marks(request: Request, context: AdaptContext) -> Request:
    if not context.traits.varies_by_server or context.profile.cache_marks or not request.has_piece(CacheMark):
        return request

    def unmark_result(piece: Piece) -> Piece:
        return (
            Result(piece.id, _without_cache_marks(piece.content), piece.error) if isinstance(piece, Result) else piece
        )

    messages = [
        Message(message.role, _without_cache_marks(map(unmark_result, message.pieces)), message.name)
        for message in request.messages
    ]
    system = _without_cache_marks(request.system)
    if system != request.system or messages != request.messages:
        context.report("cache-mark-dropped", "the upstream does not support cache_control: dropped")
    return msgspec.structs.replace(request, system=system, messages=messages)


def _without_cache_marks(pieces: Iterable[P]) -> list[P]:
    return [piece for piece in pieces if not isinstance(piece, CacheMark)]


def omit_images(request: Request, context: AdaptContext) -> Request:
    """Replace images by a text, for a model without vision. The same text stands for an image in every later turn."""
    if context.profile.vision or not request.has_piece(Image):
        return request
    note = Text(IMAGE_OMITTED_TEXT.format(request.model))

    def omit_image(piece: Piece) -> Piece:
        if isinstance(piece, Result):
            content: list[Content] = [note if isinstance(part, Image) else part for part in piece.content]
            return Result(piece.id, content, piece.error)
        return note if isinstance(piece, Image) else piece

    context.report("image-omitted", f"{request.model} does not accept images: each is replaced by a note")
    system = _content(_map_pieces(Message("system", [*request.system]), omit_image))
    messages = [_map_pieces(message, omit_image) for message in request.messages]
    return msgspec.structs.replace(_with_messages(request, messages), system=system)


# ── order of roles ────────────────────────────────────────────────────────────────────────────────────────────────────


def drop_names(request: Request, context: AdaptContext) -> Request:
    if context.profile.names or not any(message.name for message in request.messages):
        return request
    context.report("setting-dropped", "the names of message authors: not sent")
    return _with_messages(request, [Message(message.role, message.pieces) for message in request.messages])


def join_same_role_messages(request: Request, context: AdaptContext) -> Request:
    if not context.profile.alternating:
        return request
    joined: list[Message] = []
    for message in request.messages:
        if joined and joined[-1].role == message.role:
            joined[-1].pieces.extend(message.pieces)
        else:
            joined.append(Message(message.role, [*message.pieces], message.name))
    return _with_messages(request, joined)


def insert_bridges(request: Request, context: AdaptContext) -> Request:
    """Insert an assistant message between results and the user text that follows them."""
    if context.profile.user_after_results:
        return request
    bridged: list[Message] = []
    for message in request.messages:
        results = [*takewhile(lambda piece: isinstance(piece, Result | CacheMark), message.pieces)]
        for pieces in (results, message.pieces[len(results) :]):
            if pieces and bridged and bridged[-1].role == message.role == "user" and _has_results(bridged[-1]):
                bridged.append(BRIDGE_MESSAGE)
            bridged.append(Message(message.role, pieces, message.name))
    added = bridged.count(BRIDGE_MESSAGE) - request.messages.count(BRIDGE_MESSAGE)
    if added:
        context.report_count("bridge", "user text directly after results, {} times: assistant message inserted", added)
    return _with_messages(request, bridged)


def _has_results(message: Message) -> bool:
    return any(isinstance(piece, Result) for piece in message.pieces)


def append_go_on(request: Request, context: AdaptContext) -> Request:
    if context.profile.prefill or not request.messages or request.messages[-1].role != "assistant":
        return request
    if _is_paused(request.messages[-1], context.wire):
        return request
    context.report("go-on", "the last message is from the assistant: a user message is appended")
    return _with_messages(request, [*request.messages, GO_ON_MESSAGE])


def _is_paused(message: Message, wire: str) -> bool:
    """Return whether the message ends with a tool run by the server: the server paused its own turn and resumes it."""
    last = _without_cache_marks(message.pieces)[-1:]
    return any(isinstance(piece, Extra) and piece.wire == wire for piece in last)


CONTENT_STEPS: tuple[AdaptStep, ...] = (
    drop_billing_line,
    merge_system_messages,
    drop_unsupported_thinking,
    fill_missing_thinking,
    drop_blank_text,
    drop_cache_marks,
    omit_images,
)
TURN_STEPS: tuple[AdaptStep, ...] = (drop_names, join_same_role_messages, insert_bridges)
