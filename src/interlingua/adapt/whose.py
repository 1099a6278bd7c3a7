"""Whose thinking is it: no upstream gets what another has signed, not even one that speaks the same wire."""

from __future__ import annotations

import msgspec

from interlingua.events import Seal
from interlingua.reply import Reasoning
from interlingua.request import Message, Piece, Request
from interlingua.seals import LOST

__all__ = ["disown"]


def disown(request: Request, upstream: str, wire: str, nameless: bool) -> Request:
    """The request for the upstream of this name, on this wire: others' thinking stays, without what they signed.

    `nameless`: what has no name may be its own, because a client gets that as it is.
    """
    if not request.holds(Reasoning):
        return request

    def own(seal: Seal) -> bool:
        return seal.wire != wire or (seal.upstream == upstream if seal.upstream else nameless)

    def told(piece: Piece) -> Piece:
        if not isinstance(piece, Reasoning) or piece.seal is None or own(piece.seal):
            return piece
        return Reasoning(piece.text, Seal(LOST, piece.seal.data))

    messages = [Message(one.role, [*map(told, one.pieces)], one.name) for one in request.messages]
    return msgspec.structs.replace(request, messages=messages)
