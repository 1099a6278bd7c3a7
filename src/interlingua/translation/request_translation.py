"""Translation of a request from one wire to another, for one upstream:

    client's body ─read▶ Request ─repair▶ Request ─adapt▶ Request ─write▶ upstream's body

If client and upstream use the same wire, everything that needs no change is sent unchanged.
"""

from __future__ import annotations

from collections import Counter
from typing import TypeAlias

import msgspec

from interlingua.core.findings import FindingCollector
from interlingua.core.options import Options
from interlingua.core.reply import Call
from interlingua.core.request import Request
from interlingua.core.tool_choice import ToolChoice
from interlingua.core.tools import Tool
from interlingua.errors import BadRequest, expect_type
from interlingua.events import Finding
from interlingua.translation.history_repair import repair_history, restore_result_ids
from interlingua.upstreams import get_profile, ownership_check, profile_for_model
from interlingua.upstreams.adapt import adapt, adapt_to_model
from interlingua.upstreams.profile import UNKNOWN, UNKNOWN_PROFILE, Profile
from interlingua.wires import get_wire, reasoning_fields
from interlingua.wires.base import Json, RequestCodec, Wire
from interlingua.wires.requests.downgrades import visible_tools
from interlingua.wires.requests.passthrough import preserve_unchanged

__all__ = ["PreparedRequest", "prepare_request", "translate_request"]


replace = msgspec.structs.replace


class PreparedRequest(msgspec.Struct, frozen=True):
    """Request for the upstream, and the data that is needed to translate its reply."""

    body: Json
    findings: list[Finding]
    tools: list[Tool]
    """Tools offered to the model; empty if `tool_choice` forbids calls."""
    tool_choice: ToolChoice | None
    """The client's tool choice."""
    taken_ids: tuple[str, ...]
    """Call ids that the conversation already uses."""


def translate_request(
    body: Json,
    source: str,
    target: str,
    model: str | None = None,
    upstream: Profile | str | None = None,
    options: Options | None = None,
) -> Json:
    """Translate a request from the source wire to the target wire.

    Args:
        body: The client's request, decoded from JSON.
        source: Name of the client's wire.
        target: Name of the upstream's wire.
        model: Name of the model at the upstream, if it differs.
        upstream: Profile with the upstream's deviations from the wire. Without one, a request on the same wire is
            adapted as little as possible, because the client knows best what the upstream accepts.
        options: Options of the translation.

    Raises:
        BadRequest: The request cannot be parsed or cannot be sent to this upstream. Contains the path in the body.
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
    """Translate a request as `translate_request` does, and return it with findings, offered tools and call ids.

    `strict`: raise BadRequest for a broken history instead of repairing it.
    """
    expect_type(body, dict, "a request should be a dict", "decode the JSON body first")
    options = options or Options()
    source_wire, target_wire = get_wire(source), get_wire(target)
    if model is not None:
        body = {**body, "model": model}
    context = _RequestContext(get_profile(upstream or UNKNOWN_PROFILE), options, strict)
    reasoning_fields.check_unpacked_size(body, source_wire.REASONING_FIELDS, options.seal_key, options.limits.seals)
    if source == target:
        original, request, written, findings = _translate_same_wire(body, context, target_wire)
    else:
        original, request, written, findings = _translate_across_wires(body, context, source_wire, target_wire)
    return PreparedRequest(
        written,
        findings + _dropped_field_findings(original, written, target_wire),
        _offered_tools(original, request, target),
        original.tool_choice,
        _call_ids(original, request),
    )


class _RequestContext(msgspec.Struct, frozen=True):
    """Upstream profile and options of one translation."""

    profile: Profile
    options: Options
    strict: bool


_Translated: TypeAlias = tuple[Request, Request, Json, list[Finding]]
"""The client's request, the request for the upstream, its body, and the findings."""


def _translate_across_wires(body: Json, context: _RequestContext, source_wire: Wire, target_wire: Wire) -> _Translated:
    """Translate a request to another wire."""
    options = context.options
    original = source_wire.read_request(body, options)
    if original.continues:
        raise BadRequest(
            original.continues,
            "refers to a conversation stored by another server; nothing is stored here",
            "send the whole conversation with each request (store: false)",
        )
    signature_findings = reasoning_fields.unreadable_signatures(body, source_wire.REASONING_FIELDS, options.seal_key)
    repaired, history_findings = repair_history(original, context.strict)
    profile = profile_for_model(context.profile, original.model)
    traits = target_wire.TRAITS
    request, adapt_findings = adapt(repaired, profile, traits, ownership_check(options.upstream, traits))
    written, write_findings = target_wire.write_request(request, profile)
    return (
        original,
        request,
        written,
        [*signature_findings, *history_findings, *adapt_findings, *_locate_findings(write_findings, original, request)],
    )


def _translate_same_wire(body: Json, context: _RequestContext, wire: Wire) -> _Translated:
    """Prepare a request for an upstream on the same wire, and keep everything that needs no change.

    So prompt caches stay valid, and unknown fields reach the upstream. For an unknown upstream only facts about the
    model are adapted: the client knows best what else it accepts.
    """
    options, is_known_upstream = context.options, context.profile.name != UNKNOWN
    is_own_signature = ownership_check(options.upstream, wire.TRAITS)
    incoming, signature_findings = reasoning_fields.restore_reasoning(
        body, wire.REASONING_FIELDS, options.seal_key, is_own_signature, context.profile.own_seals
    )
    original = wire.read_request(body if signature_findings else incoming, options)
    parsed = (
        replace(wire.read_request(incoming, options), source_paths=original.source_paths)
        if signature_findings
        else original
    )
    request, history_findings = (
        (restore_result_ids(parsed), list[Finding]()) if original.continues else repair_history(parsed, context.strict)
    )
    profile = profile_for_model(context.profile, original.model)
    request, adapt_findings = (adapt if is_known_upstream else adapt_to_model)(request, profile, wire.TRAITS)
    written, write_findings = preserve_unchanged(
        incoming, parsed, request, profile if is_known_upstream else None, wire
    )
    return (
        original,
        request,
        written,
        [*signature_findings, *history_findings, *adapt_findings, *_locate_findings(write_findings, original, request)],
    )


def _locate_findings(findings: list[Finding], original: Request, request: Request) -> list[Finding]:
    """Convert the paths in findings of the writer to paths in the client's body.

    If messages were added or merged, their indexes no longer match. The path then names only the list of messages.
    """
    same_roles = [message.role for message in request.messages] == [message.role for message in original.messages]
    locator = original if same_roles else replace(original, source_paths=_root_paths(original))
    return [replace(finding, place=locator.source_path(finding.place)) for finding in findings]


def _root_paths(request: Request) -> dict[str, str]:
    return {path: location for path, location in request.source_paths.items() if "[" not in path}


def _dropped_field_findings(original: Request, written: Json, wire: RequestCodec) -> list[Finding]:
    """Report fields that were not read, unless they are in the written body."""
    surviving = wire.read_request(written, Options()).unread if original.unread and original.wire == wire.NAME else ()
    names = Counter(path.rpartition(".")[2] for path in surviving)
    notes = FindingCollector()
    for place in original.unread:
        name = place.rpartition(".")[2]
        names[name] -= 1
        if names[name] < 0:
            notes.report("field-dropped", f"{name} has no equivalent on {wire.NAME}: dropped", place)
    return notes.findings


def _offered_tools(original: Request, request: Request, target: str) -> list[Tool]:
    """Return the tools that the reply may call. The client's own choice counts: a server without a tool parser receives
    `none` although the model may call tools."""
    calls_forbidden = original.tool_choice is not None and original.tool_choice.mode == "none"
    return [] if calls_forbidden else visible_tools(request, target)


def _call_ids(*conversations: Request) -> tuple[str, ...]:
    """Return the call ids in the client's conversation and in the upstream's."""
    messages = [message for conversation in conversations for message in conversation.messages]
    ids = (piece.id for message in messages for piece in message.pieces if isinstance(piece, Call))
    return tuple(dict.fromkeys(ids))
