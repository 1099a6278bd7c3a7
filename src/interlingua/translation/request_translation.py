"""A request of one wire becomes a request of another, for one upstream:

    client's body ─read▶ Request ─mend▶ Request ─adapt▶ Request ─write▶ upstream's body

Where both speak the same wire, all that needs no change goes out as it came.
"""

from __future__ import annotations

from collections import Counter
from typing import TypeAlias

import msgspec

from interlingua.core.findings import FindingCollector
from interlingua.core.options import Options
from interlingua.core.reply import Call
from interlingua.core.request import Request
from interlingua.core.tools import Tool
from interlingua.errors import BadRequest, expect_type
from interlingua.events import Finding
from interlingua.translation.history_repair import repair_history
from interlingua.upstreams import get_profile, ownership_check, profile_for_model
from interlingua.upstreams.adapt import adapt
from interlingua.upstreams.profile import UNKNOWN_PROFILE, Profile
from interlingua.wires import get_wire
from interlingua.wires import reasoning_fields as opaque
from interlingua.wires.base import Json, RequestCodec
from interlingua.wires.requests.downgrades import visible_tools
from interlingua.wires.requests.passthrough import preserve_unchanged

__all__ = ["PreparedRequest", "prepare_request", "translate_request"]


replace = msgspec.structs.replace


class PreparedRequest(msgspec.Struct, frozen=True):
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
) -> PreparedRequest:
    """The same, with all that a gateway has to know of it. `strict`: a history with gaps is refused, not mended."""
    expect_type(body, dict, "a request is a JSON object", "decode the body first")
    options = options or Options()
    source_wire, target_wire = get_wire(source), get_wire(target)
    if model is not None:
        body = {**body, "model": model}
    context = _RequestContext(get_profile(upstream or UNKNOWN_PROFILE), options, strict)
    if source == target:
        original, request, written, findings = _translate_same_wire(body, context, target_wire)
    else:
        original, request, written, findings = _translate_across_wires(body, context, source_wire, target_wire)
    return PreparedRequest(
        written,
        findings + _dropped_field_findings(original, written, target_wire),
        _offered_tools(request, target),
        _call_ids(original, request),
    )


class _RequestContext(msgspec.Struct, frozen=True):
    """Who is asked, and how."""

    profile: Profile
    options: Options
    strict: bool


_Translated: TypeAlias = tuple[Request, Request, Json, list[Finding]]
"""What the client asks and what the upstream is asked, the latter as its wire has it, and what was found on the way."""


def _translate_across_wires(
    body: Json, context: _RequestContext, source_wire: RequestCodec, target_wire: RequestCodec
) -> _Translated:
    """All of it is said in the other wire's words."""
    options = context.options
    original = source_wire.read_request(body, options)
    if original.continues:
        raise BadRequest(
            original.continues,
            "refers to what another server keeps of the conversation; nothing is kept here",
            "send the whole conversation with each request (store: false)",
        )
    signature_findings = opaque.unreadable_signatures(body, source_wire.NAME, options.seal_key)
    repaired, history_findings = repair_history(original, context.strict)
    profile = profile_for_model(context.profile, original.model)
    request, adapt_findings = adapt(
        repaired, profile, target_wire.NAME, ownership_check(options.upstream, target_wire.NAME)
    )
    written, write_findings = target_wire.write_request(request, profile)
    return (
        original,
        request,
        written,
        [*signature_findings, *history_findings, *adapt_findings, *_locate_findings(write_findings, original, request)],
    )


def _translate_same_wire(body: Json, context: _RequestContext, wire: RequestCodec) -> _Translated:
    """All that needs no change stays as it came: only so do prompt caches hold, and what nobody here knows passes. Of a
    stranger the client knows best what it takes."""
    options, is_known_upstream = context.options, context.profile != UNKNOWN_PROFILE
    is_own_signature = ownership_check(options.upstream, wire.NAME)
    incoming, signature_findings = opaque.restore_reasoning(
        body, wire.NAME, options.seal_key, is_own_signature, context.profile.own_seals
    )
    original = wire.read_request(body if signature_findings else incoming, options)
    parsed = (
        replace(wire.read_request(incoming, options), source_paths=original.source_paths)
        if signature_findings
        else original
    )
    request, history_findings = (
        (parsed, list[Finding]()) if original.continues else repair_history(parsed, context.strict)
    )
    profile, adapt_findings = None, list[Finding]()
    if is_known_upstream:
        profile = profile_for_model(context.profile, original.model)
        request, adapt_findings = adapt(request, profile, wire.NAME)
    written, write_findings = preserve_unchanged(incoming, parsed, request, profile, wire)
    return (
        original,
        request,
        written,
        [*signature_findings, *history_findings, *adapt_findings, *_locate_findings(write_findings, original, request)],
    )


def _locate_findings(findings: list[Finding], original: Request, request: Request) -> list[Finding]:
    """What was found while writing, with its places in the client's body. Where messages were added or joined, those
    of the others are not known any more: then it is somewhere among them."""
    same_roles = [message.role for message in request.messages] == [message.role for message in original.messages]
    locator = original if same_roles else replace(original, source_paths=_root_paths(original))
    return [replace(finding, place=locator.source_path(finding.place)) for finding in findings]


def _root_paths(request: Request) -> dict[str, str]:
    return {path: location for path, location in request.source_paths.items() if "[" not in path}


def _dropped_field_findings(original: Request, written: Json, wire: RequestCodec) -> list[Finding]:
    """What was not read is lost, unless it is there all the same."""
    surviving = wire.read_request(written, Options()).unread if original.unread and original.wire == wire.NAME else ()
    names = Counter(path.rpartition(".")[2] for path in surviving)
    notes = FindingCollector()
    for place in original.unread:
        name = place.rpartition(".")[2]
        names[name] -= 1
        if names[name] < 0:
            notes.report("field-dropped", f"{name} has no place on {wire.NAME}: dropped", place)
    return notes.findings


def _offered_tools(request: Request, target: str) -> list[Tool]:
    """What the reply may call."""
    calls_forbidden = request.tool_choice is not None and request.tool_choice.mode == "none"
    return [] if calls_forbidden else visible_tools(request, target)


def _call_ids(*conversations: Request) -> tuple[str, ...]:
    """Those that the client holds, and those that the upstream is told in their place."""
    messages = [message for conversation in conversations for message in conversation.messages]
    ids = (piece.id for message in messages for piece in message.pieces if isinstance(piece, Call))
    return tuple(dict.fromkeys(ids))
