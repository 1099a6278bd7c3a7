"""A request of one wire becomes a request of another, for one upstream:

    client's body ─read▶ Request ─mend▶ Request ─adapt▶ Request ─write▶ upstream's body

Where both speak the same wire, all that needs no change goes out as it came.
"""

from __future__ import annotations

from typing import Any

import msgspec

from interlingua.errors import BadRequest, UnknownWire, UsageError, expect
from interlingua.events import Finding
from interlingua.json_text import write_json
from interlingua.options import Options
from interlingua.profile import ANY, Profile
from interlingua.reply import Call
from interlingua.request import CacheMark, Piece, Request
from interlingua.seals import PREFIX
from interlingua.tools import Tool
from interlingua.wire import anthropic_messages, openai_chat, openai_responses
from interlingua.wire.wire import Json, Requests

__all__ = ["Translation", "prepare_request", "translate_request"]

_WIRES: dict[str, Requests] = {wire.NAME: wire for wire in (openai_chat, anthropic_messages, openai_responses)}


class Translation(msgspec.Struct, frozen=True):
    """What goes to the upstream, and what its reply is to be read with."""

    body: Json
    findings: list[Finding]
    tools: list[Tool]
    """What the model is offered."""
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

    `upstream` tells how that upstream differs from others of its wire. Raises BadRequest, with the place in the body,
    if the request cannot be understood or cannot be sent there.
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
    reads, writes = _wire(source), _wire(target)
    profile = _profile(upstream)
    given = reads.read_request(body, options or Options())
    if given.continues and source != target:
        raise BadRequest(
            given.continues,
            "refers to what another server keeps of the conversation; nothing is kept here",
            "send the whole conversation with each request (store: false)",
        )
    request, found = (given, []) if given.continues else _mend(given, strict)
    request, adapted = _adapt(request, profile)
    if model is not None:
        request = msgspec.structs.replace(request, model=model)
    lost: list[Finding] = []
    passes = source == target and PREFIX not in write_json(body)  # no seals of ours go to an upstream
    if passes and profile == ANY and request == msgspec.structs.replace(given, model=request.model):
        written = {**body, "model": request.model}
    else:
        written, lost = writes.write_request(request, profile)
    if passes and profile != ANY:
        written = _like(body, given, profile, writes, written)
    return Translation(written, [*found, *adapted, *lost], _shown(request, target), _ids(request))


def _wire(name: str) -> Requests:
    if name not in _WIRES:
        raise UnknownWire(name, _WIRES)
    return _WIRES[name]


def _profile(upstream: Profile | str | None) -> Profile:
    """PLACEHOLDER: names are looked up in `upstreams`, once that is there."""
    if isinstance(upstream, str):
        raise UsageError(f"no upstream is called {upstream!r}", "give a Profile")
    return upstream or ANY


def _mend(request: Request, strict: bool) -> tuple[Request, list[Finding]]:  # noqa: ARG001
    """PLACEHOLDER: `history.mend`, once that is there."""
    return request, []


def _adapt(request: Request, profile: Profile) -> tuple[Request, list[Finding]]:  # noqa: ARG001
    """PLACEHOLDER: `adapt.adapt`, once that is there."""
    return request, []


def _shown(request: Request, target: str) -> list[Tool]:
    return [tool for tool in request.tools if request.wire == target or not tool.deferred]


def _ids(request: Request) -> tuple[str, ...]:
    return tuple(piece.id for piece in _pieces(request) if isinstance(piece, Call))


def _pieces(request: Request) -> list[Piece]:
    return [piece for message in request.messages for piece in message.pieces]


# ── the same wire on both sides ───────────────────────────────────────────────────────────────────────────────────


def _like(body: Json, given: Request, profile: Profile, wire: Requests, wanted: Json) -> Json:
    """What is wanted, but as it came wherever it says the same as before."""
    plain, _ = wire.write_request(given, _contrary(given, profile))
    return {key: _merged(body.get(key), plain.get(key), value) for key, value in wanted.items()}


def _contrary(request: Request, profile: Profile) -> Profile:
    """An upstream that takes everything, and wants otherwise what this one wants just so: what is written for both
    alike needs no change, whatever the client has written."""
    return Profile(
        name="contrary",
        system_role="developer" if profile.system_role == "system" else "system",
        replay="reasoning" if profile.replay == "reasoning_content" else "reasoning_content",
        cache_marks=any(isinstance(piece, CacheMark) for piece in [*request.system, *_pieces(request)]),
        images_in_results=True,
        strict_tools=True,
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
        case list(), list(), list() if len(came) == len(plain) == len(wanted):
            return [_merged(*each) for each in zip(came, plain, wanted, strict=True)]
    return wanted
