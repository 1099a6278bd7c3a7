"""What becomes of a request's things on a wire that has no word for them. Each such step is a finding.

Some steps leave a mark in the text, so that they are undone when a client sends it back: `[tool error]`, and the lines
in front of images that a tool has answered with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any

import msgspec

from interlingua.profile import Profile
from interlingua.reply import Text
from interlingua.request import CacheMark, Content, Document, Extra, Image, Request, Result, ToolChoice
from interlingua.schema import as_mapping
from interlingua.tools import Tool
from interlingua.wire.notes import Notes

__all__ = [
    "SEE_NEXT",
    "cache_control",
    "complete_schema",
    "error_marked",
    "error_read",
    "extra_fields",
    "functions",
    "hosted_tools",
    "in_words",
    "joined",
    "moved_from",
    "narrowed",
    "without_billing",
]

ERROR = "[tool error]"
SEE_NEXT = "[see the next message]"
"""All that a tool message says whose images have moved to the message behind it."""
BILLING = "x-anthropic-billing-header:"


# ── text and content ──────────────────────────────────────────────────────────────────────────────────────────────


def error_marked(result: Result) -> list[Content]:
    """What the tool answered, and that it failed, in its first words: for wires without a field for that."""
    if not result.error:
        return list(result.content)
    files, words = _words_apart(result.content)
    match words:
        case [Text(text), *rest] if text:
            return [*files, Text(f"{ERROR} {text}"), *rest]
    return [*files, Text(ERROR), *words]


def error_read(content: Sequence[Content]) -> tuple[list[Content], bool]:
    """The inverse of `error_marked`."""
    files, words = _words_apart(content)
    match words:
        case [Text(text), *rest] if text == ERROR:
            return [*files, *rest], True
        case [Text(text), *rest] if text.startswith((f"{ERROR} ", f"{ERROR}\n")):  # the latter joins what stood apart
            return [*files, Text(text[len(ERROR) + 1 :]), *rest], True
    return list(content), False


def _words_apart(content: Sequence[Content]) -> tuple[list[Content], list[Content]]:
    """The files that stand first, and what is behind them."""
    files = list(takewhile(lambda piece: isinstance(piece, Image | Document), content))
    return files, list(content[len(files) :])


def moved_from(piece: Image | Document, id: str) -> str:
    """The line before what a tool has answered, where that had to move to a message of the user."""
    return f"[{'image' if isinstance(piece, Image) else 'document'} from tool call {id}]"


def without_billing(system: Sequence[Content], notes: Notes) -> list[Content]:
    """Claude Code's first line of the system prompt is for Anthropic, and changes: it would spoil prompt caches."""
    kept = [piece for piece in system if not (isinstance(piece, Text) and piece.text.startswith(BILLING))]
    if len(kept) < len(system):
        notes.report("billing-line", f"a line {BILLING} is for Anthropic alone: removed", "system")
    return kept


def in_words(piece: Content, notes: Notes, place: str) -> str | None:
    """What a model can be told of a piece that its wire cannot carry; None if that is nothing."""
    match piece:
        case Text():
            return piece.text
        case Document(text=text) if text:
            notes.report("document-as-text", "a document of plain text: sent as text", place)
            return f"{piece.name}\n\n{text}" if piece.name else text
        case Document():
            name = piece.name or piece.file_id or ("" if piece.url.startswith("data:") else piece.url)
            notes.report("content-dropped", "a document that the wire cannot carry: its name is sent instead", place)
            return (
                f"[a document that cannot be shown here: {name}]" if name else "[a document that cannot be shown here]"
            )
        case Image():
            notes.report("content-dropped", "an image where the wire has none: dropped", place)
            return "[an image that cannot be shown here]"
        case Extra(data={"type": "tool_reference", "tool_name": str(name)}):
            notes.report("content-as-text", "a reference to a tool: told in words", place)
            return f"[the tool {name} can be called from now on]"
        case Extra(data={"text": str(text)}):
            notes.report("content-as-text", f"{_kind(piece)} of {piece.wire}: sent as its text", place)
            return text
        case Extra():
            notes.report("content-dropped", f"{_kind(piece)} of {piece.wire}: dropped", place)
            return None
        case CacheMark():
            return None


def joined(pieces: Iterable[Content], gap: str, notes: Notes, place: str) -> str:
    """All of it as one text."""
    words = (in_words(piece, notes, place) for piece in pieces if not isinstance(piece, CacheMark))
    return gap.join(text for text in words if text)


def cache_control(mark: CacheMark | None, known: bool, notes: Notes, place: str) -> dict[str, Any]:
    """The field that marks a piece as worth keeping, where the upstream knows of that."""
    if mark is not None and not known:
        notes.report("cache-mark-dropped", "cache_control is not known to the upstream: dropped", place)
    return {"cache_control": mark.data} if mark is not None and known else {}


def _kind(extra: Extra) -> str:
    return f"a {extra.data.get('type') or 'part'}"


# ── tools ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def functions(request: Request, profile: Profile, notes: Notes, wire: str) -> list[Tool]:
    """The tools for a wire that knows only functions, and shows all of them to the model."""
    names = narrowed(request, notes)
    tools = []
    for n, tool in enumerate(request.tools):
        place = f"tools[{n}]"
        if request.wire != wire and tool.deferred:
            notes.report("deferred-tool", f"the model has not searched for {tool.name!r} yet: not shown", place)
        elif not names or tool.name in names:
            tools.append(_as_function(tool, profile, notes, place, wire == request.wire))
    return tools


def narrowed(request: Request, notes: Notes) -> tuple[str, ...]:
    """The only tools to be shown, where the choice allows several of them and the wire cannot say so."""
    choice = request.tool_choice or ToolChoice()
    if not choice.names or (len(choice.names) == 1 and choice.mode == "required"):
        return ()
    notes.report("tools-narrowed", "tools that the choice does not allow: not shown", "tool_choice")
    return choice.names


def _as_function(tool: Tool, profile: Profile, notes: Notes, place: str, same_wire: bool) -> Tool:
    description, strict = tool.description, tool.strict
    if tool.kind == "custom":
        notes.report("custom-tool", "a tool that takes text: offered as a function with one string", place)
        description = "\n\n".join(filter(None, (description, _grammar(tool))))
    if tool.namespace:
        notes.report("namespace", f"the tools of {tool.namespace!r}: offered under names with it in front", place)
    if strict and not profile.strict_tools:
        notes.report("field-dropped", "strict is not known to the upstream: dropped", f"{place}.strict")
    if tool.extra and not same_wire:
        for key in tool.extra:
            notes.report("field-dropped", f"{key} of a tool has no place on this wire: dropped", f"{place}.{key}")
    return msgspec.structs.replace(
        tool,
        description=description,
        strict=strict if profile.strict_tools else None,
        schema=complete_schema(tool.schema),
        extra=tool.extra if same_wire else {},
    )


def complete_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema of arguments as all upstreams take it: that of an object, with properties."""
    whole = dict(schema) if schema.get("type") else {"type": "object", **schema}
    return whole if "properties" in whole else {**whole, "properties": {}}


def _grammar(tool: Tool) -> str:
    """What a custom tool's text may be, told to the model in words."""
    grammar = tool.grammar or {}
    inner = as_mapping(grammar.get("grammar")) or grammar  # chat completions nest it
    if not (definition := inner.get("definition")):
        return ""
    return f"`input` is text of this {inner.get('syntax') or ''} grammar:\n{definition}"


def hosted_tools(request: Request, wire: str, notes: Notes) -> list[dict[str, Any]]:
    """The tools that the server runs, if this is their wire."""
    if request.wire == wire:
        return request.hosted
    for tool in request.hosted:
        kind = tool.get("type")
        notes.report("hosted-tool", f"{kind} is run by servers of {request.wire}: not offered", "tools")
    return []


def extra_fields(request: Request, wire: str, notes: Notes, shared: Iterable[str] = ()) -> dict[str, Any]:
    """The fields that only the client's wire has, if this is the same; of another, those that both have."""
    if request.wire == wire:
        return request.extra
    for key in request.extra:
        if key not in shared:
            notes.report("field-dropped", f"{key} has no place on {wire}: dropped", key)
    return {key: value for key, value in request.extra.items() if key in shared}
