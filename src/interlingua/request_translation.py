"""A request of one wire becomes a request of another, for one upstream:

    client's body ─read▶ Request ─mend▶ Request ─adapt▶ Request ─write▶ upstream's body

Where both speak the same wire, all that needs no change goes out as it came.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from interlingua.adapt import adapt, disown
from interlingua.errors import BadRequest, expect
from interlingua.events import Finding
from interlingua.history import mend
from interlingua.json_text import write_json
from interlingua.options import Options
from interlingua.profile import ANY, CHAT, Profile
from interlingua.reply import Call
from interlingua.request import Request
from interlingua.seals import PREFIX
from interlingua.tools import Tool
from interlingua.upstreams import for_model, profile_named, signs
from interlingua.wire import opaque
from interlingua.wire.downgrades import shown
from interlingua.wire.notes import Notes
from interlingua.wire.wire import Json, Requests
from interlingua.wires import wire_named

__all__ = ["Translation", "prepare_request", "translate_request"]


class Translation(msgspec.Struct, frozen=True):
    """What goes to the upstream, and what its reply is to be read with."""

    body: Json
    findings: list[Finding]
    tools: list[Tool]
    """What the model is offered; nothing if it shall call nothing."""
    taken_ids: tuple[str, ...]
    """The call ids that the conversation already has."""


def translate_request(
    body: Json,
    source: str,
    target: str,
    model: str | None = None,
    upstream: Profile | str | None = None,
    options: Options | None = None,
) -> Json:
    """The request for an upstream that speaks the target wire. `model` is its name there, if it has another.

    `upstream` tells how that upstream differs from others of its wire; of one that nobody knows, a client that speaks
    its wire knows best what it takes. Raises BadRequest, with the place in the body, if the request cannot be
    understood or cannot be sent there.
    """
    return prepare_request(body, source, target, model, upstream, options).body


def prepare_request(
    body: Json,
    source: str,
    target: str,
    model: str | None = None,
    upstream: Profile | str | None = None,
    options: Options | None = None,
    strict: bool = False,
) -> Translation:
    """The same, with all that a gateway has to know of it. `strict`: a history with gaps is refused, not mended."""
    expect(body, dict, "a request is a JSON object", "decode the body first")
    reads, writes = wire_named(source), wire_named(target)
    profile = profile_named(upstream or ANY)
    known = profile != ANY  # of a stranger that speaks its wire, the client knows best what it takes
    options = options or Options()
    signer = signs(options.upstream, target) if options.upstream else profile.seal_wire == target
    if not options.upstream and profile.name != ANY.name:
        options = msgspec.structs.replace(options, upstream=profile.name)
    given = reads.read_request(body, options)
    if given.continues and source != target:
        raise BadRequest(
            given.continues,
            "refers to what another server keeps of the conversation; nothing is kept here",
            "send the whole conversation with each request (store: false)",
        )
    if model is not None:
        given = msgspec.structs.replace(given, model=model)
    profile = for_model(profile, given.model)
    request, found = (given, list[Finding]()) if given.continues else mend(given, strict)
    if options.upstream:
        request = disown(request, options.upstream, target, nameless=signer or target == CHAT)
    if known or source != target:
        request, adapted = adapt(request, profile, target)
        found = found + adapted
    came = opaque.opened(body, source, options) if source == target else body
    if source != target or PREFIX in write_json(came):  # no seal of ours goes to an upstream as it came
        written, lost = writes.write_request(request, profile if known or source != target else ABLE)
    else:
        written, lost = _like(came, given, request, profile if known else None, writes)
    found = [*found, *_placed(lost, given, request), *_unread(given, written, writes)]
    return Translation(written, found, _offered(request, target), _ids(request))


def _placed(found: list[Finding], given: Request, request: Request) -> list[Finding]:
    """What was found while writing, with its places in the client's body. Where messages were added or joined, those
    of the others are not known any more: then it is somewhere among them."""
    same = [message.role for message in request.messages] == [message.role for message in given.messages]
    known = given if same else msgspec.structs.replace(given, places=_roots(given))
    return [msgspec.structs.replace(finding, place=known.place(finding.place)) for finding in found]


def _roots(request: Request) -> dict[str, str]:
    return {path: place for path, place in request.places.items() if "[" not in path}


def _unread(given: Request, written: Json, wire: Requests) -> list[Finding]:
    """What was not read is lost, unless it is there all the same."""
    kept = wire.read_request(written, Options()).unread if given.unread and given.wire == wire.NAME else ()
    names = Counter(place.rpartition(".")[2] for place in kept)
    notes = Notes()
    for place in given.unread:
        name = place.rpartition(".")[2]
        names[name] -= 1
        if names[name] < 0:
            notes.report("field-dropped", f"{name} has no place on {wire.NAME}: dropped", place)
    return notes.findings


def _offered(request: Request, target: str) -> list[Tool]:
    """What the reply may call."""
    none = request.tool_choice is not None and request.tool_choice.mode == "none"
    return [] if none else shown(request, target)


def _ids(request: Request) -> tuple[str, ...]:
    return tuple(piece.id for message in request.messages for piece in message.pieces if isinstance(piece, Call))


# ── the same wire on both sides ───────────────────────────────────────────────────────────────────────────────────


ABLE = Profile(allowed_tools=True)
"""Names all fields as most do: what is written so says all that was read."""


def _like(
    body: Json, given: Request, request: Request, profile: Profile | None, wire: Requests
) -> tuple[Json, list[Finding]]:
    """The request as it came, but for what was changed in it, and for what a known upstream wants otherwise."""
    if profile is None and request == given:
        return {**body, "model": request.model}, []
    wanted, lost = wire.write_request(request, profile or ABLE)
    plain, lost_before = wire.write_request(given, _contrary(profile) if profile else ABLE)
    merged = {key: _merged(body.get(key), plain.get(key), value) for key, value in wanted.items()}
    if profile is None:
        kept = {key: value for key, value in body.items() if plain.get(key) == wanted.get(key)}
        merged = kept | {key: value for key, value in merged.items() if plain.get(key) != wanted[key]}
        lost = [finding for finding in lost if finding not in lost_before]
    merged["model"] = request.model
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
