"""Files in what tools have answered, for upstreams whose tool messages hold text only: they move to what the user says
behind it, with a line before each that says where it is from. `take_back` is the inverse, for clients that send so.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from interlingua.core.reply import Text
from interlingua.core.request import CacheMark, Content, Document, Image, Message, Piece, Request, Result, with_marks
from interlingua.upstreams.adapt.context import Upstream
from interlingua.upstreams.profile import CHAT

__all__ = ["is_file", "move_files", "take_back"]

SEE_NEXT = "[see the next message]"
"""All that a tool message says whose files have moved."""


def is_file(piece: object) -> bool:
    """Whether this is an image, or a document that came with the request or stands at a URL."""
    return isinstance(piece, Image) or (isinstance(piece, Document) and bool(piece.url))


def _from(piece: object, id: str) -> Text:
    """The line before a file that has moved."""
    return Text(f"[{'image' if isinstance(piece, Image) else 'document'} from tool call {id}]")


def move_files(request: Request, upstream: Upstream) -> Request:
    if upstream.wire != CHAT or upstream.profile.images_in_results or not request.holds(Image, Document):
        return request
    messages = [_moved(message) for message in request.messages]
    if messages != request.messages:
        upstream.report("image-moved", "images and documents of tools' results: moved to what the user says")
    return msgspec.structs.replace(request, messages=messages)


def _moved(message: Message) -> Message:
    results: list[Piece] = []
    moved: list[Piece] = []
    said: list[Piece] = []
    for piece, mark in with_marks(message.pieces):
        place = said
        if isinstance(piece, Result):
            place, (piece, files) = results, _parted(piece)
            moved += files
        place += [piece] if mark is None else [piece, mark]
    return Message(message.role, [*results, *moved, *said], message.name) if moved else message


def _parted(result: Result) -> tuple[Result, list[Content]]:
    """The result without its files, and those."""
    words: list[Content] = []
    files: list[Content] = []
    for piece, mark in with_marks(result.content):
        marked = [piece] if mark is None else [piece, mark]
        if is_file(piece):
            files += [_from(piece, result.id), *marked]
        else:
            words += marked
    if not files:
        return result, []
    return msgspec.structs.replace(result, content=words or [Text(SEE_NEXT)]), files


def take_back(results: list[Piece], content: Sequence[Content]) -> list[Content]:
    """Puts files that were moved back into their results; returns what else is said."""
    lines = {
        _from(kind, result.id): n
        for n, result in enumerate(results)
        if isinstance(result, Result)
        for kind in (Image(""), Document())
    }
    left = list(content)
    while len(left) > 1 and isinstance(left[0], Text) and left[0] in lines:
        n = lines[left[0]]
        result = results[n]
        assert isinstance(result, Result)
        before = [] if result.content == [Text(SEE_NEXT)] else result.content
        marks = [piece for piece in left[2:3] if isinstance(piece, CacheMark)]
        results[n] = msgspec.structs.replace(result, content=[*before, left[1], *marks])
        left = left[2 + len(marks) :]
    return left
