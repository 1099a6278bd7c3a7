"""Where client and upstream speak one wire: a request goes out like the one that came, but for what has to change."""

from __future__ import annotations

from typing import Any

import msgspec

from interlingua.core.options import Options
from interlingua.core.request import Request
from interlingua.errors import BadRequest
from interlingua.events import Finding
from interlingua.upstreams.profile import Profile
from interlingua.wires.base import Json, Requests

__all__ = ["like"]

ABLE = Profile(allowed_tools=True)
"""Names all fields as most do: what is written so says all that was read."""


def like(
    body: Json, given: Request, request: Request, profile: Profile | None, wire: Requests
) -> tuple[Json, list[Finding]]:
    """The request as it came, but for what was changed in it, and for what a known upstream wants otherwise."""
    if profile is None and request == given:
        return body, []
    wanted, lost = wire.write_request(request, profile or ABLE)
    plain, lost_before = wire.write_request(given, _contrary(profile) if profile else ABLE)
    merged = {key: _merged(body.get(key), plain.get(key), value) for key, value in wanted.items()}
    if profile is None:
        kept = {key: value for key, value in body.items() if plain.get(key) == wanted.get(key)}
        merged = kept | {key: value for key, value in merged.items() if plain.get(key) != wanted[key]}
        lost = [finding for finding in lost if finding not in lost_before]
    if merged == wanted:  # as it mostly is: agents write as we do
        return merged, lost
    # Places in what came and in what is wanted may not be the same: then it would say something else, or nothing.
    meant = _read(wanted, wire)
    return (merged if meant is not None and _read(merged, wire) == meant else wanted), lost


def _read(body: Json, wire: Requests) -> Request | None:
    """What the body says; None if nobody can tell."""
    try:
        return msgspec.structs.replace(wire.read_request(body, Options()), unread=(), places={})
    except BadRequest:
        return None


def _contrary(profile: Profile) -> Profile:
    """An upstream that wants otherwise named what this one wants just so: what is written for both alike needs no
    change, whatever the client has written."""
    return msgspec.structs.replace(
        ABLE,
        cache_marks=profile.cache_marks,
        system_role="developer" if profile.system_role == "system" else "system",
        replay="reasoning" if profile.replay == "reasoning_content" else "reasoning_content",
    )


def _merged(came: Any, plain: Any, wanted: Any) -> Any:
    """`plain` is what came, in our words: where just these are wanted, what came may stay."""
    match came, plain, wanted:
        case None, _, _:
            return wanted
        case _ if plain == wanted:
            return came
        case dict(), dict(), dict():
            return {key: _merged(came.get(key), plain.get(key), value) for key, value in wanted.items()}
        case list(), list(), list() if len(came) == len(plain):
            return _merged_lists(came, plain, wanted)
    return wanted


def _merged_lists(came: list[Any], plain: list[Any], wanted: list[Any]) -> list[Any]:
    """What stands before and behind a change stays as it came."""
    head = _alike(plain, wanted)
    tail = _alike(plain[head:][::-1], wanted[head:][::-1])
    middle = wanted[head : len(wanted) - tail]
    if len(plain) == len(wanted):
        changed = slice(head, len(wanted) - tail)
        middle = [_merged(*each) for each in zip(came[changed], plain[changed], middle, strict=True)]
    return [*came[:head], *middle, *came[len(came) - tail :]]


def _alike(one: list[Any], other: list[Any]) -> int:
    """How many of their first items are the same."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
