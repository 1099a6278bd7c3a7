"""Move files out of tool results for upstreams whose tool messages accept only text.

The files move to the user message after the results, each after a line that states its origin. `restore_files` is the
inverse, for clients that send requests in this form.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from interlingua.core.reply import Text
from interlingua.core.request import CacheMark, Content, Document, Image, Message, Piece, Request, Result, with_marks
from interlingua.upstreams.adapt.context import AdaptContext

__all__ = ["is_file", "move_files", "restore_files"]

SEE_NEXT_MESSAGE = "[see the next message]"
"""Text of a tool message whose only content were files."""


def is_file(piece: object) -> bool:
    """Return whether this is an image, or a document in the request or at a URL."""
    return isinstance(piece, Image) or (isinstance(piece, Document) and bool(piece.url))


def _origin_line(piece: object, id: str) -> Text:
    """Return the line before a moved file."""
    return Text(f"[{'image' if isinstance(piece, Image) else 'document'} from tool call {id}]")


def move_files(request: Request, context: AdaptContext) -> Request:
    accepts_files = context.profile.images_in_results or not context.traits.varies_by_server
    if accepts_files or not request.has_piece(Image, Document):
        return request
    messages = [_move_message_files(message) for message in request.messages]
    if messages != request.messages:
        context.report("image-moved", "images and documents of tool results: moved to a user message")
    return msgspec.structs.replace(request, messages=messages)


def _move_message_files(message: Message) -> Message:
    results: list[Piece] = []
    moved: list[Piece] = []
    others: list[Piece] = []
    for piece, mark in with_marks(message.pieces):
        target = others
        if isinstance(piece, Result):
            target, (piece, files) = results, _split_files(piece)
            moved += files
        target += [piece] if mark is None else [piece, mark]
    return Message(message.role, [*results, *moved, *others], message.name) if moved else message


def _split_files(result: Result) -> tuple[Result, list[Content]]:
    """Return the result without its files, and the files."""
    texts: list[Content] = []
    files: list[Content] = []
    for piece, mark in with_marks(result.content):
        marked = [piece] if mark is None else [piece, mark]
        if is_file(piece):
            files += [_origin_line(piece, result.id), *marked]
        else:
            texts += marked
    if not files:
        return result, []
    return msgspec.structs.replace(result, content=texts or [Text(SEE_NEXT_MESSAGE)]), files


def restore_files(results: list[Piece], content: Sequence[Content]) -> list[Content]:
    """Move files back into their results. Return the remaining content."""
    result_indexes = {
        _origin_line(file, result.id): n
        for n, result in enumerate(results)
        if isinstance(result, Result)
        for file in (Image(""), Document())
    }
    remaining = list(content)
    while len(remaining) > 1 and isinstance(remaining[0], Text) and remaining[0] in result_indexes:
        n = result_indexes[remaining[0]]
        result = results[n]
        assert isinstance(result, Result)
        previous = [] if result.content == [Text(SEE_NEXT_MESSAGE)] else result.content
        marks = [piece for piece in remaining[2:3] if isinstance(piece, CacheMark)]
        results[n] = msgspec.structs.replace(result, content=[*previous, remaining[1], *marks])
        remaining = remaining[2 + len(marks) :]
    return remaining
