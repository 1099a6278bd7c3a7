"""Move files out of tool results for upstreams whose tool messages accept only text.

The files move to the user message after the results, each after a line that states its origin. `OpenResults` moves
them back, for clients that send requests in this form.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from interlingua.core.reply import Text
from interlingua.core.request import CacheMark, Content, Document, Image, Message, Piece, Request, Result, with_marks
from interlingua.upstreams.adapt.context import AdaptContext

__all__ = ["OpenResults", "is_file", "move_files"]

SEE_NEXT_MESSAGE = "[see the next message]"
"""Text of a tool message whose only content were files."""
_match_origin_line = re.compile(r"\[(?:image|document) from tool call (.*)\]", re.S).fullmatch
"""Match of the line before a moved file, with the id of its call."""


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


class OpenResults:
    """Results of one message while a request is read. Files that were moved out of them can be moved back."""

    def __init__(self, pieces: list[Piece]) -> None:
        self.pieces = pieces
        """The pieces of the message: results and their cache marks."""
        self._content_by_id: dict[str, list[Content]] = {}  # of the last result with this id

    def add(self, result: Result, marks: Sequence[CacheMark]) -> None:
        self.pieces += [result, *marks]
        self._content_by_id[result.id] = result.content

    def restore_files(self, content: Sequence[Content]) -> list[Content]:
        """Move files back into their results. Return the remaining content."""
        start = 0
        while start + 1 < len(content) and (result_content := self._content_for(content[start])) is not None:
            end = start + 2
            end += end < len(content) and isinstance(content[end], CacheMark)
            if result_content == [Text(SEE_NEXT_MESSAGE)]:
                result_content.clear()
            result_content += content[start + 1 : end]
            start = end
        return list(content[start:])

    def _content_for(self, line: Content) -> list[Content] | None:
        """Return the content of the result that this line names; None if it names none."""
        origin = _match_origin_line(line.text) if isinstance(line, Text) else None
        return self._content_by_id.get(origin[1]) if origin else None
