"""Ids of past calls as an upstream wants them, rebuilt by position: clients rename, hash and reuse what they got."""

from __future__ import annotations

import re
from collections.abc import Callable, Set
from hashlib import blake2s
from itertools import count
from typing import TypeAlias

import msgspec

from interlingua.core.reply import Call
from interlingua.core.request import Message, Piece, Request, Result
from interlingua.upstreams.adapt.context import Upstream
from interlingua.upstreams.profile import MESSAGES

__all__ = ["rebuild"]

Make: TypeAlias = Callable[[Call, Set[str]], str]
"""Makes an id for the call; the ids of all calls before it are taken."""

NINE = re.compile(r"[a-zA-Z0-9]{9}")


def rebuild(request: Request, upstream: Upstream) -> Request:
    make = MAKERS.get(upstream.profile.ids)
    if make is None or upstream.wire == MESSAGES:  # where ids have other characters, and the upstream makes its own
        return request
    ids = _Rebuilt(make)
    messages = [Message(one.role, [ids.piece(piece) for piece in one.pieces], one.name) for one in request.messages]
    return msgspec.structs.replace(request, messages=messages)


def _functions(call: Call, taken: Set[str]) -> str:
    """As Kimi counts: one number for each call, over the whole conversation."""
    return f"functions.{call.name}:{len(taken)}"


def _nine(call: Call, taken: Set[str]) -> str:
    """The id itself if it is legal, else letters and digits that are made from it."""
    if NINE.fullmatch(call.id) and call.id not in taken:
        return call.id
    seeds = (f"{call.id}/{attempt}".encode(errors="replace") for attempt in count())
    made = (blake2s(seed, digest_size=12).hexdigest()[:9] for seed in seeds)
    return next(id for id in made if id not in taken)


MAKERS: dict[str, Make] = {"functions": _functions, "nine": _nine}


class _Rebuilt:
    """The ids of one conversation."""

    def __init__(self, make: Make) -> None:
        self._make = make
        self._taken: set[str] = set()
        self._now: dict[str, str] = {}  # by the id that the last such call had

    def piece(self, piece: Piece) -> Piece:
        match piece:
            case Call():
                id = self._now[piece.id] = self._make(piece, self._taken)
                self._taken.add(id)
                return msgspec.structs.replace(piece, id=id)
            case Result():
                return Result(self._now.get(piece.id, piece.id), piece.content, piece.error)
        return piece
