"""Translation of a request from one wire to another, for one upstream:

    client's body ─read▶ Request ─repair▶ Request ─adapt▶ Request ─write▶ upstream's body

If client and upstream use the same wire, everything that needs no change is sent unchanged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import chain

import msgspec

from interlingua.core.findings import FindingCollector
from interlingua.core.options import Options
from interlingua.core.reasoning_signatures import OwnershipCheck
from interlingua.core.reply import Call
from interlingua.core.request import Message, Request
from interlingua.core.tool_choice import ToolChoice
from interlingua.core.tools import Tool
from interlingua.core.wire_traits import WireLike
from interlingua.errors import BadRequest, expect_type
from interlingua.events import Finding
from interlingua.translation.history_repair import repair_history, restore_result_ids
from interlingua.upstreams import get_profile, ownership_check, profile_for_model
from interlingua.upstreams.adapt import (
    ALL_STEPS,
    MODEL_STEPS,
    NO_TURNS,
    AdaptContext,
    AdaptedTurns,
    AdaptFindings,
    AdaptSteps,
    accept_any_seal,
    adapt_content,
    adapt_settings,
)
from interlingua.upstreams.profile import UNKNOWN, UNKNOWN_PROFILE, Profile
from interlingua.wires import get_wire, reasoning_fields
from interlingua.wires.base import Json, RequestCodec, Wire
from interlingua.wires.requests.downgrades import visible_tools
from interlingua.wires.requests.passthrough import PreservedBody, preserve_unchanged

__all__ = [
    "PreparedRequest",
    "RequestContext",
    "Tail",
    "Translated",
    "TranslationFindings",
    "call_ids",
    "dropped_field_findings",
    "offered_tools",
    "prepare_request",
    "translate_body",
    "translate_request",
    "unique_ids",
]


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
    echo: Json = {}
    """Fields of the client's request that the reply repeats."""


def translate_request(
    body: Json,
    source: WireLike,
    target: WireLike,
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
    source: WireLike,
    target: WireLike,
    model: str | None = None,
    upstream: Profile | str | None = None,
    options: Options | None = None,
    strict: bool = False,
) -> PreparedRequest:
    """Translate a request as `translate_request` does, and return it with findings, offered tools and call ids.

    `strict`: raise BadRequest for a broken history instead of repairing it.
    """
    expect_type(body, dict, "a request should be a dict", "decode the JSON body first")
    context = RequestContext.create(source, target, upstream, options or Options(), strict)
    translated = translate_body(body if model is None else {**body, "model": model}, context)
    return PreparedRequest(
        translated.written,
        translated.findings.all(),
        offered_tools(translated.original, translated.request, target),
        translated.original.tool_choice,
        unique_ids(call_ids(translated.original), call_ids(translated.request)),
        echo_request(body, context.source),
    )


def echo_request(body: Json, wire: Wire) -> Json:
    """Return the fields of a request that replies of its wire repeat."""
    return wire.ECHO_REQUEST(body) if wire.ECHO_REQUEST is not None else {}


class RequestContext(msgspec.Struct, frozen=True):
    """Wires, upstream profile and options of one translation."""

    source: Wire
    target: Wire
    profile: Profile
    options: Options
    strict: bool

    @classmethod
    def create(
        cls, source: str, target: str, upstream: Profile | str | None, options: Options, strict: bool
    ) -> RequestContext:
        profile = get_profile(upstream or UNKNOWN_PROFILE)
        return cls(get_wire(source), get_wire(target), profile, options, strict)

    @property
    def same_wire(self) -> bool:
        return self.source is self.target

    @property
    def is_own_signature(self) -> OwnershipCheck:
        """Predicate that is true for the signatures of this upstream."""
        return ownership_check(self.options.upstream, self.target.TRAITS)

    @property
    def is_known(self) -> bool:
        """False on the same wire if the upstream is unknown: only facts about the model are adapted then, because the
        client knows best what else it accepts."""
        return not self.same_wire or self.profile.name != UNKNOWN

    @property
    def steps(self) -> AdaptSteps:
        return ALL_STEPS if self.is_known else MODEL_STEPS

    def adapt_context(self, profile: Profile, earlier: AdaptedTurns = NO_TURNS) -> AdaptContext:
        is_own = accept_any_seal if self.same_wire else self.is_own_signature
        return AdaptContext(profile, self.target.TRAITS, AdaptFindings(), is_own, earlier)


class TranslationFindings(msgspec.Struct, frozen=True):
    """Findings of the translation of a request, or of a part of it, by the steps that report them."""

    signatures: list[Finding] = []
    history: list[Finding] = []
    adapted: AdaptFindings = msgspec.field(default_factory=AdaptFindings)
    written: list[Finding] = []
    """Findings of the writer, with paths in the client's body."""
    roughly_written: list[Finding] = []
    """The same, if messages were added or merged anywhere: their indexes no longer match then, so that a path names
    only the list of messages."""
    client_roles: str = ""
    """Roles of the client's messages, by their initials."""
    roles: str = ""
    """Roles of the messages for the upstream."""
    dropped: list[Finding] = []
    parts_keep_messages: bool = True
    """False if this joins parts in one of which messages were added or merged."""

    @classmethod
    def collect(
        cls,
        original: Request,
        messages: list[Message],
        *,
        signatures: list[Finding],
        history: list[Finding],
        adapted: AdaptFindings,
        written: list[Finding],
        dropped: Iterable[Finding] = (),
    ) -> TranslationFindings:
        """Collect the findings of all steps.

        Args:
            original: The client's request.
            messages: The messages for the upstream.
            signatures: Findings about sealed thinking.
            history: Findings of the repair of the conversation.
            adapted: Findings of the adaptation to the upstream.
            written: Findings of the writer, with paths in what it has written.
            dropped: Findings about fields that no step has read.
        """
        located, roughly_located = _locate_findings(written, original)
        return cls(
            signatures,
            history,
            adapted,
            located,
            roughly_located,
            _message_roles(original.messages),
            _message_roles(messages),
            list(dropped),
        )

    def followed_by(self, part: TranslationFindings) -> TranslationFindings:
        """Return the findings of both parts of a request."""
        client_roles, roles = self.client_roles + part.client_roles, self.roles + part.roles
        parts_keep_messages = all(other.parts_keep_messages and other.keeps_messages for other in (self, part))
        if not part.has_any:
            return replace(self, client_roles=client_roles, roles=roles, parts_keep_messages=parts_keep_messages)
        return TranslationFindings(
            FindingCollector.join((self.signatures, part.signatures)),
            self.history + part.history,
            AdaptFindings.join((self.adapted, part.adapted)),
            FindingCollector.join((self.written, part.written)),
            FindingCollector.join((self.roughly_written, part.roughly_written)),
            client_roles,
            roles,
            FindingCollector.join((self.dropped, part.dropped)),
            parts_keep_messages,
        )

    @property
    def has_any(self) -> bool:
        return bool(self.signatures or self.history or self.adapted or self.written or self.dropped)

    @property
    def keeps_messages(self) -> bool:
        """True if no messages were added or merged."""
        return self.roles == self.client_roles

    def all(self) -> list[Finding]:
        """Return the findings of all steps."""
        written = self.written if self.keeps_messages else self.roughly_written
        return [*self.signatures, *self.history, *self.adapted.findings(), *written, *self.dropped]


class Tail(msgspec.Struct, frozen=True):
    """Turns of the conversation that are translated apart from the rest of the request, before it."""

    messages: list[Message]
    """The adapted messages of the last turns, without those of `earlier`."""
    earlier: AdaptedTurns
    found_tools: tuple[str, ...]


class Translated(msgspec.Struct, frozen=True):
    """A translated request. With a `Tail`, all of it but the tail."""

    original: Request
    """The client's request."""
    repaired: Request
    """The client's request with its history repaired and its thinking unsealed."""
    request: Request
    """The request for the upstream."""
    written: Json
    findings: TranslationFindings
    added: list[Message]
    """Messages to be written after the tail; empty without a tail."""
    preserved: PreservedBody | None = None
    """The parts of the client's body that were kept; None if the upstream's wire is another."""


def translate_body(body: Json, context: RequestContext, tail: Tail | None = None) -> Translated:
    """Translate a request to its upstream's wire. Raises BadRequest."""
    fields, options = context.source.REASONING_FIELDS, context.options
    reasoning_fields.check_unpacked_size(body, fields, options.seal_key, options.limits.seals)
    return _translate_same_wire(body, context, tail) if context.same_wire else _translate_across(body, context, tail)


def _translate_across(body: Json, context: RequestContext, tail: Tail | None) -> Translated:
    """Translate a request to another wire."""
    options = context.options
    original = _with_found_tools(context.source.read_request(body, options), tail)
    reject_stored_conversation(original)
    signature_findings = reasoning_fields.unreadable_signatures(body, context.source.REASONING_FIELDS, options.seal_key)
    repaired, history_findings = repair_history(original, context.strict)
    profile = profile_for_model(context.profile, original.model)
    adapt_context = context.adapt_context(profile)
    request, added = _adapt(repaired, adapt_context, context.steps, tail)
    written, write_findings = context.target.write_request(request, profile)
    findings = TranslationFindings.collect(
        original,
        [*request.messages, *added],
        signatures=signature_findings,
        history=history_findings,
        adapted=adapt_context.findings,
        written=write_findings,
        dropped=_dropped_fields(original, written, context.target),
    )
    return Translated(original, repaired, request, written, findings, added)


def _translate_same_wire(body: Json, context: RequestContext, tail: Tail | None) -> Translated:
    """Prepare a request for an upstream on the same wire, and keep everything that needs no change.

    So prompt caches stay valid, and unknown fields reach the upstream.
    """
    options, wire = context.options, context.target
    incoming, signature_findings = reasoning_fields.restore_reasoning(
        body, wire.REASONING_FIELDS, options.seal_key, context.is_own_signature, context.profile.own_seals
    )
    original = _with_found_tools(wire.read_request(body if signature_findings else incoming, options), tail)
    parsed = original
    if signature_findings:
        parsed = _with_found_tools(wire.read_request(incoming, options), tail)
        parsed = replace(parsed, source_paths=original.source_paths)
    repaired, history_findings = (
        (restore_result_ids(parsed), list[Finding]()) if original.continues else repair_history(parsed, context.strict)
    )
    profile = profile_for_model(context.profile, original.model)
    adapt_context = context.adapt_context(profile)
    request, added = _adapt(repaired, adapt_context, context.steps, tail)
    preserved = preserve_unchanged(incoming, parsed, request, profile if context.is_known else None, wire)
    findings = TranslationFindings.collect(
        original,
        [*request.messages, *added],
        signatures=signature_findings,
        history=history_findings,
        adapted=adapt_context.findings,
        written=preserved.findings,
        dropped=_dropped_fields(original, preserved.body, wire),
    )
    return Translated(original, repaired, request, preserved.body, findings, added, preserved)


def _adapt(
    request: Request, context: AdaptContext, steps: AdaptSteps, tail: Tail | None
) -> tuple[Request, list[Message]]:
    """Adapt a request, and return the messages that have to follow its tail."""
    adapted = adapt_content(request, context, steps)
    if tail is None:
        return adapt_settings(adapted, context, steps), []
    whole = replace(adapted, messages=[*adapted.messages, *tail.messages])
    settings = adapt_settings(whole, replace(context, earlier=tail.earlier), steps)
    return replace(settings, messages=adapted.messages), settings.messages[len(whole.messages) :]


def _with_found_tools(request: Request, tail: Tail | None) -> Request:
    """Return the request with the deferred tools that a search in the tail has found."""
    if tail is None or not tail.found_tools:
        return request
    found = frozenset(tail.found_tools)
    tools = [replace(tool, deferred=tool.deferred and tool.name not in found) for tool in request.tools]
    return replace(request, tools=tools, found_tools=(*request.found_tools, *tail.found_tools))


def reject_stored_conversation(request: Request) -> None:
    """Raise BadRequest if the request refers to a conversation that an upstream of its own wire has stored."""
    if request.continues:
        raise BadRequest(
            request.continues,
            "refers to a conversation stored by another server; nothing is stored here",
            "send the whole conversation with each request (store: false)",
        )


# ── findings ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _message_roles(messages: list[Message]) -> str:
    """Return the initials of the roles."""
    return "".join([message.role[0] for message in messages])


def _locate_findings(findings: list[Finding], original: Request) -> tuple[list[Finding], list[Finding]]:
    """Convert the paths in findings of the writer to paths in the client's body.

    Returns: the findings, and the same with paths that name only the list of messages.
    """
    if not findings:
        return [], []
    rough_paths = {path: location for path, location in original.source_paths.items() if "[" not in path}
    rough = replace(original, source_paths=rough_paths)
    return (
        [replace(finding, place=original.source_path(finding.place)) for finding in findings],
        [replace(finding, place=rough.source_path(finding.place)) for finding in findings],
    )


def _dropped_fields(original: Request, written: Json, wire: RequestCodec) -> list[Finding]:
    """Report fields that were not read, unless they are in the written body."""
    if not original.unread:
        return []
    if original.wire != wire.NAME:
        return dropped_field_findings(original.unread, (), wire.NAME)
    without_tools = {key: value for key, value in written.items() if key != "tools"}  # nothing in tools is unread
    return dropped_field_findings(original.unread, wire.read_request(without_tools, Options()).unread, wire.NAME)


def dropped_field_findings(unread: Iterable[str], surviving: Iterable[str], wire: str) -> list[Finding]:
    """Report the paths of fields that were not read, except those whose names are among the surviving ones."""
    names = Counter(path.rpartition(".")[2] for path in surviving)
    notes = FindingCollector()
    for place in unread:
        name = place.rpartition(".")[2]
        names[name] -= 1
        if names[name] < 0:
            notes.report("field-dropped", f"{name} has no equivalent on {wire}: dropped", place)
    return notes.findings


# ── results ───────────────────────────────────────────────────────────────────────────────────────────────────────


def offered_tools(original: Request, request: Request, target: str) -> list[Tool]:
    """Return the tools that the reply may call. The client's own choice counts: a server without a tool parser receives
    `none` although the model may call tools."""
    calls_forbidden = original.tool_choice is not None and original.tool_choice.mode == "none"
    return [] if calls_forbidden else visible_tools(request, target)


def call_ids(request: Request) -> tuple[str, ...]:
    """Return the ids of the calls in a conversation."""
    pieces = (piece for message in request.messages for piece in message.pieces)
    return tuple(piece.id for piece in pieces if isinstance(piece, Call))


def unique_ids(*ids: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(chain.from_iterable(ids)))
