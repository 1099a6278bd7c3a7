"""Rebuild the ids of past calls by position in the format that an upstream requires: clients rename, hash and reuse
ids."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Set
from hashlib import blake2s
from itertools import count
from typing import TypeAlias

import msgspec

from interlingua.core.reply import Call
from interlingua.core.request import Message, Piece, Request, Result
from interlingua.upstreams.adapt.context import AdaptContext

__all__ = ["rebuild_call_ids"]

IdMaker: TypeAlias = Callable[[Call, Set[str]], str]
"""Function that makes an id for a call, given the ids of all calls before it."""

NINE_CHARS_PATTERN = re.compile(r"[a-zA-Z0-9]{9}")


def rebuild_call_ids(request: Request, context: AdaptContext) -> Request:
    make = ID_MAKERS.get(context.profile.ids)
    if make is None or context.traits.has_own_call_ids:
        return request
    rebuilder = _IdRebuilder(make, context.earlier.ids)
    messages = [
        Message(message.role, [rebuilder.rebuild(piece) for piece in message.pieces], message.name)
        for message in request.messages
    ]
    return msgspec.structs.replace(request, messages=messages)


def _functions_id(call: Call, taken: Set[str]) -> str:
    """Return an id as Kimi numbers them: one counter over the whole conversation."""
    return f"functions.{call.name}:{len(taken)}"


def _nine_chars_id(call: Call, taken: Set[str]) -> str:
    """Return the id itself if it is valid and unused, else nine characters derived from it."""
    if NINE_CHARS_PATTERN.fullmatch(call.id) and call.id not in taken:
        return call.id
    seeds = (f"{call.id}/{attempt}".encode(errors="surrogatepass") for attempt in count())
    candidates = (blake2s(seed, digest_size=12).hexdigest()[:9] for seed in seeds)
    return next(id for id in candidates if id not in taken)


ID_MAKERS: dict[str, IdMaker] = {"functions": _functions_id, "nine": _nine_chars_id}


class _IdRebuilder:
    """Mapping of old to new ids in one conversation."""

    def __init__(self, make: IdMaker, earlier_ids: Iterable[str]) -> None:
        self._make = make
        self._taken = set(earlier_ids)
        self._current_ids: dict[str, str] = {}  # old id → new id of the last call that had it

    def rebuild(self, piece: Piece) -> Piece:
        match piece:
            case Call():
                id = self._current_ids[piece.id] = self._make(piece, self._taken)
                self._taken.add(id)
                return msgspec.structs.replace(piece, id=id)
            case Result():
                return Result(self._current_ids.get(piece.id, piece.id), piece.content, piece.error)
        return piece
