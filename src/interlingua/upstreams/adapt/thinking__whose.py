"""Whose thinking is it: no upstream gets what another has signed, not even one that speaks the same wire."""

from __future__ import annotations

import msgspec

from interlingua.core.reply import Reasoning
from interlingua.core.request import Message, Piece, Request
from interlingua.events import Seal
from interlingua.upstreams.adapt.context import Upstream

__all__ = ["disown"]


def disown(request: Request, upstream: Upstream) -> Request:
    """Others' thinking stays, without what they signed: that is of no wire which the upstream could be asked on."""
    if not request.holds(Reasoning):
        return request

    def told(piece: Piece) -> Piece:
        match piece:
            case Reasoning(seal=Seal() as seal) if seal.wire == upstream.wire and not upstream.own(seal):
                return Reasoning(piece.text, Seal("", seal.data))
        return piece

    messages = [Message(one.role, [*map(told, one.pieces)], one.name) for one in request.messages]
    return msgspec.structs.replace(request, messages=messages)
