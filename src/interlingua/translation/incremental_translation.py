"""Incremental translation of requests: a conversation that continues an earlier one is translated from there on.

    {"model": …, "tools": […], "messages": [ A, B, C, D, E, F ]}
                                             ╰───────╯  ╰──╯
                                    in the cache: copied  translated as turns

The rest of the request (settings, tools, system prompt) is translated as if the conversation were empty. Where the
client changed something near the end of the conversation, the turns before are kept apart from those after it, so that
the next request finds them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import msgspec

from interlingua.common.jsontext.codec import encode_json
from interlingua.common.jsontext.value_count import count_separators
from interlingua.core.tool_choice import ToolChoice
from interlingua.core.tools import Tool
from interlingua.errors import BadRequest
from interlingua.events import Finding
from interlingua.translation.request_cache import (
    MAX_CUTS,
    MAX_TOOL_LIST_BYTES,
    Cut,
    RequestCache,
    TranslatedConversation,
    TranslatedHead,
)
from interlingua.translation.request_translation import (
    RequestContext,
    Tail,
    echo_request,
    offered_tools,
    translate_body,
    unique_ids,
)
from interlingua.translation.turn_translation import (
    NO_CONVERSATION,
    ConversationState,
    NotResumable,
    TranslatedTurns,
    TurnContext,
    translate_turns,
)
from interlingua.translation.undecoded_request import TOOLS, UndecodedRequest
from interlingua.upstreams import profile_for_model
from interlingua.upstreams.profile import Profile
from interlingua.wires.base import Json, TurnCodec
from interlingua.wires.requests.object_reader import ObjectReader
from interlingua.wires.requests.passthrough import is_written_alike
from interlingua.wires.requests.shared_tools import SharedToolList, tools_digest
from interlingua.wires.requests.tool_reader import read_tools

__all__ = ["EncodedRequest", "IncrementalTranslation"]

replace = msgspec.structs.replace

FUNCTIONS = "functions"
"""Legacy field for tools."""
_WHITESPACE = b" \t\r\n"
_DECODE_ERRORS = (msgspec.MsgspecError, UnicodeError, RecursionError)

_decode_items = msgspec.json.Decoder(list[dict[str, Any]]).decode
_split_items = msgspec.json.Decoder(list[msgspec.Raw]).decode


class EncodedRequest(msgspec.Struct, frozen=True):
    """Request for the upstream, and the data that is needed to translate its reply. See `PreparedRequest`."""

    body: dict[str, Any]
    """The body. Some of its values are encoded already."""
    findings: list[Finding]
    tools: list[Tool]
    tool_choice: ToolChoice | None
    taken_ids: tuple[str, ...]
    echo: Json


class IncrementalTranslation:
    """Translation of a request with the help of earlier ones. The constructor finds what they have in common.

    Args:
        request: The client's request.
        context: Wires, upstream and options.
        model: Name of the model at the upstream.
        cache: The earlier requests. `run` adds this one.
        owner: The client. It finds only requests of its own.
    """

    def __init__(
        self, request: UndecodedRequest, context: RequestContext, model: str, cache: RequestCache, owner: str
    ) -> None:
        assert context.source.TURNS is not None
        assert context.target.TURNS is not None
        self._request = request
        self._context = context
        self._cache = cache
        self._owner = owner
        self._source_codec: TurnCodec = context.source.TURNS
        self._target_codec: TurnCodec = context.target.TURNS
        self._source = request.encoded(request.conversation_field).rstrip(_WHITESPACE)
        self._model = model
        # The token limit of the upstream may depend on the size of the conversation. It has no effect on turns.
        self._turn_context = replace(context, profile=replace(context.profile, largest=0))
        self._encoded_tools, options = request.encoded(TOOLS), context.options
        self._known_tools = cache.find_tools(owner, self._encoded_tools)
        # All that the translation of turns depends on, and the client.
        self._key = (
            owner,
            context.source.NAME,
            context.target.NAME,
            self._turn_context.profile,
            self._model,
            self._known_tools.digest if self._known_tools is not None else tools_digest(self._encoded_tools),
            context.strict,
            options.upstream,
            options.seal_key,
            options.limits.seals,
        )
        self._match = cache.find(self._key, self._source)
        self._cuts = self._find_cuts()
        """The cuts up to the one at which the translation starts; empty if it starts at the beginning."""

    @classmethod
    def plan(
        cls, request: UndecodedRequest, context: RequestContext, model: str | None, cache: RequestCache, owner: str
    ) -> IncrementalTranslation | None:
        """Return the translation; None if the request has to be translated as a whole. `model`: None for that of the
        request."""
        has_codecs = context.source.TURNS is not None and context.target.TURNS is not None
        if not has_codecs or not cache.max_bytes or not request.has_items or FUNCTIONS in request.fields:
            return None
        if request.size(TOOLS) > MAX_TOOL_LIST_BYTES:
            return None
        try:
            model = request.get("model") if model is None else model
            return cls(request, context, model, cache, owner) if isinstance(model, str) else None
        except _DECODE_ERRORS:
            return None

    @cached_property
    def new_json(self) -> bytes:
        """The JSON that has to be decoded: fields and items that no earlier request had."""
        start = self._cuts[-1].source_end if self._cuts else 0
        large_fields = (self._request.conversation_field, TOOLS)
        fields = [bytes(value) for name, value in self._request.fields.items() if name not in large_fields]
        tools = [self._encoded_tools] if self._known_tools is None else []
        return b",".join([*fields, *tools, self._source[start:]])

    @property
    def max_value_count(self) -> int:
        """The largest number of JSON values that the request can have."""
        known = self._cuts[-1].separators if self._cuts else 0
        known += self._known_tools.separators if self._known_tools is not None else 0
        return known + count_separators(self.new_json) + len(self._request.fields)

    def run(self, fit: Callable[[Any, list[Any]], Profile] | None = None) -> EncodedRequest | None:
        """Translate the request.

        Args:
            fit: Function that returns the profile for the rest of the request, when the turns are translated. Its
                arguments are the measure of the conversation and the list of tools. Only `largest` may differ.

        Returns: None if the request has to be translated as a whole.
        """
        try:
            return self._run(fit)
        except (NotResumable, BadRequest, *_DECODE_ERRORS):  # the translation as a whole raises errors with exact paths
            return None

    def _run(self, fit: Callable[[Any, list[Any]], Profile] | None) -> EncodedRequest:
        tools: list[Any] = self._known_tools or []
        if self._known_tools is None and self._encoded_tools:
            tools = self._cache.share_tools(self._owner, self._encoded_tools)
        offered = read_tools(ObjectReader({TOOLS: tools}))[0]
        start = self._decode_start()
        parts = self._divide(start)
        translated = self._translate_parts(parts, start, TurnContext(self._turn_context, self._model, offered))
        state = translated[-1].state
        if state.found_tools and profile_for_model(self._context.profile, self._model).tools_in_messages:
            raise NotResumable  # a tool is declared once, and turns do not know what those before have declared
        before_last = translated[-2].state if len(translated) > 1 else start.state
        tail = Tail(translated[-1].messages, before_last.adapted, state.found_tools)
        context = self._context if fit is None else replace(self._context, profile=fit(state.measure, tools))
        translated_head = self._translate_head(start, tools, tail, state, context)
        head = translated_head.translated
        if head.original.continues or self._writes_other_tools(offered, head.request.tools):
            raise NotResumable
        self._check_preserved(translated_head, state)
        last_items = translated[-1].items[-1:]
        if head.added and not (last_items and self._target_codec.is_from_model(last_items[0])):
            raise NotResumable  # what is added may belong to the message before
        findings = state.findings.followed_by(head.findings)
        if findings.written and findings.keeps_messages and not findings.parts_keep_messages:
            raise NotResumable  # the parts differ, but not the sum: a path would depend on how they are divided
        outputs = [*start.outputs, *(_encode_items(turns.items) for turns in translated)]
        is_reusable = not _depends_on_tail(tail)
        self._store(start, parts, translated, outputs, translated_head if is_reusable else None)
        if head.added:
            profile = profile_for_model(context.profile, self._model)
            added, _ = self._target_codec.write(replace(head.request, system=[], messages=head.added), profile)
            outputs.append(_encode_items(added))
        return EncodedRequest(
            self._assemble(head.written, outputs),
            findings.all(),
            offered_tools(head.original, head.request, context.target.NAME),
            head.original.tool_choice,
            unique_ids(state.client_ids, state.adapted.ids),
            translated_head.echo,
        )

    # ── the client's conversation ─────────────────────────────────────────────────────────────────────────────────

    def _find_cuts(self) -> tuple[Cut, ...]:
        """Return the cuts up to the last one after which the model's turn begins."""
        match = self._match
        if match is None or match.cut is None:
            return ()
        cuts = match.conversation.cuts[: match.conversation.cuts.index(match.cut) + 1]
        while cuts:
            item = _item_after(self._source, cuts[-1].source_end)
            if item is not None and self._source_codec.is_from_model(item):
                return cuts
            cuts = cuts[:-1]
        return ()

    def _decode_start(self) -> _Start:
        """Return where the translation starts, and the items from there on."""
        if self._cuts:
            assert self._match is not None
            cut, conversation = self._cuts[-1], self._match.conversation
            items = _items_after(self._source, cut.source_end)
            outputs = conversation.outputs[: cut.output_count]
            return _Start(items, cut.source_end, outputs, conversation.system_items, cut.state, self._cuts)
        items = _decode_items(self._source)
        count = next((n for n, item in enumerate(items) if not self._source_codec.is_system_prompt(item)), len(items))
        measure = self._cache.measure(None, items[:count], self._model)
        state = replace(NO_CONVERSATION, item_count=count, measure=measure)
        return _Start(items[count:], 0, (), items[:count], state, ())

    def _divide(self, start: _Start) -> list[_Part]:
        """Divide the new items into those that an earlier request had, too, and the rest."""
        match = self._match
        sides = [self._source_codec.is_from_model(item) for item in start.items]
        if not sides or None in sides:
            raise NotResumable
        end = _end_before_bracket(self._source)
        known_end = min(match.common_bytes, len(match.conversation.source)) if match is not None else 0
        if known_end <= start.source_end:
            return [_Part(start.items, end, sides[-1] is False)]
        ends = _item_ends(self._source, start)
        turn_starts = [n for n in range(1, len(sides)) if sides[n] and not sides[n - 1]]
        divider = max((n for n in turn_starts if ends[n - 1] <= known_end), default=0)
        whole = _Part(start.items[divider:], end, sides[-1] is False)
        return [_Part(start.items[:divider], ends[divider - 1], True), whole] if divider else [whole]

    def _translate_parts(self, parts: list[_Part], start: _Start, context: TurnContext) -> list[TranslatedTurns]:
        translated: list[TranslatedTurns] = []
        state, position = start.state, start.source_end
        for part in parts:
            encoded, position = self._source[position : part.source_end], part.source_end
            may_have_seals = self._context.source.REASONING_FIELDS.may_occur_in(encoded)
            turns = translate_turns(part.items, state, context, may_have_seals=may_have_seals)
            if not turns.messages:
                raise NotResumable  # the end of the conversation is unknown
            state = replace(turns.state, measure=self._cache.measure(state.measure, part.items, self._model))
            translated.append(replace(turns, state=state))
        return translated

    # ── the upstream's request ────────────────────────────────────────────────────────────────────────────────────

    def _translate_head(
        self, start: _Start, tools: list[Any], tail: Tail, state: ConversationState, context: RequestContext
    ) -> TranslatedHead:
        """Translate all but the conversation, unless the earlier request had the same."""
        large_fields, request = (self._request.conversation_field, TOOLS), self._request
        fields = tuple([(name, b"" if name in large_fields else request.encoded(name)) for name in request.fields])
        largest, signed_loop = context.profile.largest, state.adapted.signed_loop
        known = self._match.conversation.head if self._cuts and self._match is not None else None
        if (
            known is not None
            and not _depends_on_tail(tail)
            and (known.fields, known.largest, known.signed_loop) == (fields, largest, signed_loop)
        ):
            return known
        body = self._head_body(start.system_items, tools)
        head, echo = translate_body(body, context, tail), echo_request(body, context.source)
        preserved = head.preserved
        is_alike = (
            preserved is not None
            and not preserved.is_changed
            and is_written_alike(preserved.body, head.original, context.target)
        )
        return TranslatedHead(fields, largest, signed_loop, head, echo, is_alike)

    def _head_body(self, system_items: list[Json], tools: list[Any]) -> Json:
        """Return the client's request with nothing but the system prompt in its conversation."""
        body: Json = {}
        for name in self._request.fields:
            if name == self._request.conversation_field:
                body[name] = system_items
            else:
                body[name] = tools if name == TOOLS else self._request.get(name)
        return {**body, "model": self._model}

    def _writes_other_tools(self, offered: list[Tool], adapted: list[Tool]) -> bool:
        """Return whether the upstream gets other tools than the turns were written with."""
        if not self._target_codec.depends_on_tools or adapted is offered:
            return False
        return list(map(_describe_tool, offered)) != list(map(_describe_tool, adapted))

    def _check_preserved(self, head: TranslatedHead, state: ConversationState) -> None:
        """Raise NotResumable if the client's items would not be kept one by one in the whole request."""
        preserved = head.translated.preserved
        if preserved is None:
            return
        is_changed = preserved.is_changed or state.is_changed
        keeps_items = preserved.keeps_items and (state.keeps_item_count or not is_changed) and not head.translated.added
        if keeps_items and is_changed and not preserved.is_changed:
            keeps_items = head.is_written_alike
        if not keeps_items:
            raise NotResumable

    def _assemble(self, written: Json, outputs: list[bytes]) -> Json:
        """Return the body with the conversation: what was written of it, and the encoded items that follow."""
        field = self._context.target.TRAITS.conversation_field
        items = [item for output in filter(None, [_encode_items(written[field]), *outputs]) for item in (b",", output)]
        body = {**written, field: msgspec.Raw(b"".join([b"[", *items[1:], b"]"]))}
        if isinstance(body.get(TOOLS), SharedToolList):
            body[TOOLS] = body[TOOLS].encoded
        return body

    # ── the cache ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _store(
        self,
        start: _Start,
        parts: list[_Part],
        translated: list[TranslatedTurns],
        outputs: list[bytes],
        head: TranslatedHead | None,
    ) -> None:
        """Keep this conversation, up to the last turn that is complete."""
        cuts = list(start.cuts)
        end, separators = start.source_end, cuts[-1].separators if cuts else 0
        for part, turns, count in zip(parts, translated, range(len(start.outputs) + 1, len(outputs) + 1), strict=True):
            separators += count_separators(self._source[end : part.source_end])
            end = part.source_end
            if part.is_complete:
                cuts.append(Cut(part.source_end, count, separators, turns.state))
        if len(cuts) > len(start.cuts):
            source, known = self._source[: cuts[-1].source_end], tuple(outputs[: cuts[-1].output_count])
            kept = TranslatedConversation(source, known, start.system_items, tuple(cuts[-MAX_CUTS:]), head)
            self._cache.store(self._key, kept, len(self._encoded_tools), self._match)


class _Start(msgspec.Struct, frozen=True):
    """Place in a conversation at which the translation starts."""

    items: list[Json]
    """The items from there on."""
    source_end: int
    """Size of the client's JSON up to there."""
    outputs: tuple[bytes, ...]
    """The upstream's JSON for the items before."""
    system_items: list[Json]
    state: ConversationState
    cuts: tuple[Cut, ...]
    """The cuts up to there."""


class _Part(msgspec.Struct, frozen=True):
    """Items that are translated together."""

    items: list[Json]
    source_end: int
    is_complete: bool
    """True if a turn ends here. The turn of the model may go on in the next request."""


def _depends_on_tail(tail: Tail) -> bool:
    """Return whether the settings may depend on more of the conversation than `TranslatedHead` has: on the last message
    of the model, or on tools that a search has found."""
    return bool(tail.found_tools) or tail.messages[-1].role == "assistant"


def _describe_tool(tool: Tool) -> tuple[str, ...]:
    """Return what the items of a call depend on."""
    return tool.name, tool.kind, tool.namespace, tool.local


def _end_before_bracket(source: bytes) -> int:
    """Return the position of the end of the last item of a list."""
    end = len(source) - 1
    return len(source[:end].rstrip(_WHITESPACE)) if source[end - 1 : end] in _WHITESPACE else end


def _items_after(source: bytes, position: int) -> list[Json]:
    """Return the items of a list that follow this position, which is the end of an item."""
    rest = source[position:].lstrip(_WHITESPACE)
    return _decode_items(b"[" + rest[1:]) if rest.startswith(b",") else []


def _item_after(source: bytes, position: int) -> Json | None:
    """Return the first item of a list after this position, which is the end of an item; None if there is none."""
    rest = source[position:].lstrip(_WHITESPACE)
    if not rest.startswith(b","):
        return None
    item = msgspec.json.decode(_split_items(b"[" + rest[1:])[0])
    return item if isinstance(item, dict) else None


def _item_ends(source: bytes, start: _Start) -> list[int]:
    """Return the position of the end of each item from there on."""
    rest = source[start.source_end :].lstrip(_WHITESPACE + b",[")
    ends, position = [], start.source_end
    for item in map(bytes, _split_items(b"[" + rest)):  # also those of the system prompt, which come first
        position = source.index(item, position) + len(item)
        ends.append(position)
    return ends[-len(start.items) :]


def _encode_items(items: list[Json]) -> bytes:
    """Return the items as JSON, separated by commas."""
    encoded = encode_json(items)
    if not encoded.startswith(b"["):
        raise NotResumable  # nested too deeply
    return encoded[1:-1]
