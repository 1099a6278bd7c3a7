"""Translation of some turns of a conversation, apart from the rest of the request and from the turns before.

A turn begins where a message of the model follows one of another side. Reading, repair, adaptation and writing treat
one turn after the other, and all that they know of the turns before is in a `ConversationState`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from interlingua.core.options import Options
from interlingua.core.request import Message, Request, Role
from interlingua.core.tools import Tool
from interlingua.events import Finding
from interlingua.translation.history_repair import NO_CALLS, CallHistory, repair_turns
from interlingua.translation.request_translation import (
    RequestContext,
    TranslationFindings,
    call_ids,
    dropped_field_findings,
)
from interlingua.upstreams import profile_for_model
from interlingua.upstreams.adapt import NO_TURNS, AdaptedTurns, adapt_content, adapted_turns
from interlingua.upstreams.profile import UNKNOWN_PROFILE
from interlingua.wires import reasoning_fields
from interlingua.wires.base import Json, TurnCodec, Wire
from interlingua.wires.requests.passthrough import preserve_items

__all__ = ["NO_CONVERSATION", "ConversationState", "NotResumable", "TranslatedTurns", "TurnContext", "translate_turns"]

replace = msgspec.structs.replace


class NotResumable(Exception):
    """Turns that cannot be translated apart from the rest of the request."""


class ConversationState(msgspec.Struct, frozen=True):
    """The beginning of a conversation: all that the translation of the rest of the request depends on."""

    item_count: int = 0
    calls: CallHistory = NO_CALLS
    adapted: AdaptedTurns = NO_TURNS
    client_ids: tuple[str, ...] = ()
    """Ids of all calls as the client sent them."""
    seal_bytes: int = 0
    """Size of the sealed thinking, unpacked."""
    found_tools: tuple[str, ...] = ()
    """Names of the deferred tools that a tool search has found."""
    last_role: Role | None = None
    """Role of the last adapted message."""
    findings: TranslationFindings = TranslationFindings()
    is_changed: bool = False
    """True if items for an upstream of the same wire were changed."""
    keeps_item_count: bool = True
    """True if each item for an upstream of the same wire is known to be written as one item."""
    measure: Any = None
    """The result of the cache's `measure` function."""


NO_CONVERSATION = ConversationState()


class TurnContext(msgspec.Struct, frozen=True):
    """Context of the translation of turns: that of the request, the model, and the tools that the client offers."""

    request: RequestContext
    model: str
    tools: list[Tool]

    def complete(self, request: Request) -> Request:
        """Return a request that has only messages with all that their translation depends on."""
        return replace(request, model=self.model, tools=self.tools)


class TranslatedTurns(msgspec.Struct, frozen=True):
    """Translated turns, and the state of the conversation after them."""

    items: list[Json]
    """The items for the upstream."""
    messages: list[Message]
    """The adapted messages."""
    state: ConversationState


class _Turns(msgspec.Struct, frozen=True):
    """Turns in each form, from the client's to the upstream's."""

    original: Request
    request: Request
    items: list[Json]
    calls: CallHistory
    adapted: AdaptedTurns
    findings: TranslationFindings
    is_changed: bool = False
    keeps_item_count: bool = True


def translate_turns(
    items: list[Json], before: ConversationState, context: TurnContext, *, may_have_seals: bool
) -> TranslatedTurns:
    """Translate complete turns of a conversation.

    Args:
        items: The items of the client's request.
        before: State of the conversation before these turns.
        context: Context of the request.
        may_have_seals: Whether the items may have signed or encrypted thinking.

    Raises:
        NotResumable: The turns can be translated only together with the rest of the request.
        BadRequest: They are malformed. Their paths are not exact.
    """
    wire, options = context.request.source, context.request.options
    body = {wire.TRAITS.conversation_field: items}
    seal_bytes = before.seal_bytes
    if may_have_seals:
        seal_bytes = reasoning_fields.check_unpacked_size(
            body, wire.REASONING_FIELDS, options.seal_key, options.limits.seals, seal_bytes
        )
    translate = _translate_same_wire if context.request.same_wire else _translate_across
    turns = translate(body, before, context, may_have_seals=may_have_seals)
    messages = turns.request.messages
    if turns.request.system or (messages and messages[0].role == (before.last_role or "system")):
        raise NotResumable  # some messages belong to those before
    state = ConversationState(
        item_count=before.item_count + len(items),
        calls=turns.calls,
        adapted=turns.adapted,
        client_ids=before.client_ids + call_ids(turns.original),
        seal_bytes=seal_bytes,
        found_tools=before.found_tools + turns.original.found_tools,
        last_role=messages[-1].role if messages else before.last_role,
        findings=before.findings.followed_by(turns.findings),
        is_changed=before.is_changed or turns.is_changed,
        keeps_item_count=before.keeps_item_count and turns.keeps_item_count,
    )
    return TranslatedTurns(turns.items, messages, state)


def _translate_across(body: Json, before: ConversationState, context: TurnContext, *, may_have_seals: bool) -> _Turns:
    """Translate turns to another wire."""
    request_context, first = context.request, before.item_count
    source, target, options = request_context.source, request_context.target, request_context.options
    items: list[Json] = body[source.TRAITS.conversation_field]
    original = context.complete(_codec(source).read(items, options, first))
    signatures: list[Finding] = []
    if may_have_seals:
        signatures = reasoning_fields.unreadable_signatures(body, source.REASONING_FIELDS, options.seal_key, first)
    messages, history, calls = repair_turns(original, before.calls, request_context.strict)
    profile = profile_for_model(request_context.profile, context.model)
    adapt_context = request_context.adapt_context(profile, before.adapted)
    request = adapt_content(replace(original, messages=messages), adapt_context, request_context.steps)
    written, write_findings = _codec(target).write(request, profile)
    if request.messages and not _writes_both_ends(request.messages, written, _codec(target)):
        raise NotResumable  # without the first or last message, the turns beside it may become one message
    findings = TranslationFindings.collect(
        original,
        request.messages,
        signatures=signatures,
        history=history,
        adapted=adapt_context.findings,
        written=write_findings,
        dropped=dropped_field_findings(original.unread, (), target.NAME),
    )
    return _Turns(original, request, written, calls, adapted_turns(request, adapt_context), findings)


def _translate_same_wire(
    body: Json, before: ConversationState, context: TurnContext, *, may_have_seals: bool
) -> _Turns:
    """Prepare turns for an upstream on the same wire, and keep everything that needs no change."""
    request_context, first = context.request, before.item_count
    wire, options = request_context.source, request_context.options
    field, codec = wire.TRAITS.conversation_field, _codec(wire)
    restored, signatures = body, list[Finding]()
    if may_have_seals or request_context.profile.own_seals:
        restored, signatures = reasoning_fields.restore_reasoning(
            body,
            wire.REASONING_FIELDS,
            options.seal_key,
            request_context.is_own_signature,
            request_context.profile.own_seals,
            first,
        )
    incoming: list[Json] = restored[field]
    original = context.complete(codec.read(body[field] if signatures else incoming, options, first))
    parsed = original
    if signatures:
        messages = codec.read(incoming, options, first).messages
        parsed = replace(original, messages=messages)
    messages, history, calls = repair_turns(parsed, before.calls, request_context.strict)
    profile = profile_for_model(request_context.profile, context.model)
    adapt_context = request_context.adapt_context(profile, before.adapted)
    request = adapt_content(replace(parsed, messages=messages), adapt_context, request_context.steps)
    is_changed = request.messages != parsed.messages
    kept: tuple[list[Json], list[Finding]] | None = (incoming, [])
    # Nothing is changed for most unknown upstreams. Then it does not matter how the items would be written.
    is_checked = is_changed or profile != UNKNOWN_PROFILE
    if is_checked:
        kept = preserve_items(incoming, parsed, request, profile if request_context.is_known else None, codec)
    if kept is None or _loses_fields(original, kept[0], codec):
        raise NotResumable
    items, write_findings = kept
    findings = TranslationFindings.collect(
        original,
        request.messages,
        signatures=signatures,
        history=history,
        adapted=adapt_context.findings,
        written=write_findings,
    )
    adapted = adapted_turns(request, adapt_context)
    return _Turns(original, request, items, calls, adapted, findings, is_changed, is_checked)


def _writes_both_ends(messages: list[Message], items: list[Json], codec: TurnCodec) -> bool:
    """Return whether the first and the last item are written for the first and the last message."""
    return bool(items) and all(
        (codec.is_from_model(items[end]) is True) is (messages[end].role == "assistant") for end in (0, -1)
    )


def _loses_fields(original: Request, items: list[Json], codec: TurnCodec) -> bool:
    """Return whether fields that were not read are missing in the written items."""
    surviving = codec.read(items, Options(), 0).unread if original.unread else ()
    return bool(dropped_field_findings(original.unread, surviving, original.wire))


def _codec(wire: Wire) -> TurnCodec:
    assert wire.TURNS is not None, "turns are translated only if both wires can read and write them"
    return wire.TURNS
