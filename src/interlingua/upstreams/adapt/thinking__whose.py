"""Whose thinking is it: no upstream gets what another has signed, not even one that speaks the same wire."""

from __future__ import annotations

import msgspec

from interlingua.core.reply import Reasoning
from interlingua.core.request import Message, Piece, Request
from interlingua.events import Seal
from interlingua.upstreams.adapt.context import AdaptContext

__all__ = ["drop_foreign_signatures"]


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
