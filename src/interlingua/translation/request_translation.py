"""A request of one wire becomes a request of another, for one upstream:

    client's body ─read▶ Request ─mend▶ Request ─adapt▶ Request ─write▶ upstream's body

Where both speak the same wire, all that needs no change goes out as it came.
"""

from __future__ import annotations

from collections import Counter
from typing import TypeAlias

import msgspec

from interlingua.core.findings__notes import Notes
from interlingua.core.options import Options
from interlingua.core.reply import Call
from interlingua.core.request import Request
from interlingua.core.tools import Tool
from interlingua.errors import BadRequest, expect
from interlingua.events import Finding
from interlingua.translation.history_repair import mend
from interlingua.upstreams import for_model, owned_by, profile_named
from interlingua.upstreams.adapt import adapt
from interlingua.upstreams.profile import ANY, Profile
from interlingua.wires import reasoning_fields as opaque
from interlingua.wires import wire_named
from interlingua.wires.base import Json, Requests
from interlingua.wires.requests.downgrades import shown
from interlingua.wires.requests.passthrough import like

__all__ = ["Translation", "prepare_request", "translate_request"]


replace = msgspec.structs.replace


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
    options = options or Options()
    reads, writes = wire_named(source), wire_named(target)
    if model is not None:
        body = {**body, "model": model}
    asked = _Asked(profile_named(upstream or ANY), options, strict)
    if source == target:
        given, request, written, found = _same_wire(body, asked, writes)
    else:
        given, request, written, found = _another_wire(body, asked, reads, writes)
    return Translation(
        written, found + _unread(given, written, writes), _offered(request, target), _ids(given, request)
    )


class _Asked(msgspec.Struct, frozen=True):
    """Who is asked, and how."""

    profile: Profile
    options: Options
    strict: bool


Told: TypeAlias = tuple[Request, Request, Json, list[Finding]]
"""What the client asks and what the upstream is asked, the latter as its wire has it, and what was found on the way."""


def _another_wire(body: Json, asked: _Asked, reads: Requests, writes: Requests) -> Told:
    """All of it is said in the other wire's words."""
    options = asked.options
    given = reads.read_request(body, options)
    if given.continues:
        raise BadRequest(
            given.continues,
            "refers to what another server keeps of the conversation; nothing is kept here",
            "send the whole conversation with each request (store: false)",
        )
    lost = opaque.unreadable(body, reads.NAME, options.seal_key)
    mended, found = mend(given, asked.strict)
    profile = for_model(asked.profile, given.model)
    request, adapted = adapt(mended, profile, writes.NAME, owned_by(options.upstream, writes.NAME))
    written, unsaid = writes.write_request(request, profile)
    return given, request, written, [*lost, *found, *adapted, *_placed(unsaid, given, request)]


def _same_wire(body: Json, asked: _Asked, wire: Requests) -> Told:
    """All that needs no change stays as it came: only so do prompt caches hold, and what nobody here knows passes. Of a
    stranger the client knows best what it takes."""
    options, known = asked.options, asked.profile != ANY
    own = owned_by(options.upstream, wire.NAME)
    came, lost = opaque.opened(body, wire.NAME, options.seal_key, own, asked.profile.own_seals)
    given = wire.read_request(body if lost else came, options)
    read = replace(wire.read_request(came, options), places=given.places) if lost else given
    request, found = (read, list[Finding]()) if given.continues else mend(read, asked.strict)
    profile, adapted = None, list[Finding]()
    if known:
        profile = for_model(asked.profile, given.model)
        request, adapted = adapt(request, profile, wire.NAME)
    written, unsaid = like(came, read, request, profile, wire)
    return given, request, written, [*lost, *found, *adapted, *_placed(unsaid, given, request)]


def _placed(found: list[Finding], given: Request, request: Request) -> list[Finding]:
    """What was found while writing, with its places in the client's body. Where messages were added or joined, those
    of the others are not known any more: then it is somewhere among them."""
    same = [message.role for message in request.messages] == [message.role for message in given.messages]
    known = given if same else replace(given, places=_roots(given))
    return [replace(finding, place=known.place(finding.place)) for finding in found]


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


def _ids(*conversations: Request) -> tuple[str, ...]:
    """Those that the client holds, and those that the upstream is told in their place."""
    messages = [message for one in conversations for message in one.messages]
    ids = (piece.id for message in messages for piece in message.pieces if isinstance(piece, Call))
    return tuple(dict.fromkeys(ids))
