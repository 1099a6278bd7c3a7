"""What becomes of a request's things on a wire that has no word for them. Each such step is a finding.

What one upstream does not take is no matter of its wire: `adapt` sees to that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any

import msgspec

from interlingua.core.findings import FindingCollector
from interlingua.core.reply import Text
from interlingua.core.request import CacheMark, Content, Document, Extra, Image, Message, Request, Result, Thinking
from interlingua.core.tools import Tool, is_hosted
from interlingua.errors import BadRequest

__all__ = [
    "as_functions",
    "as_text",
    "complete_schema",
    "drop_cache_mark",
    "drop_message_name",
    "drop_thinking_display",
    "extra_fields",
    "hosted_tools",
    "join_text",
    "mark_error",
    "note_inexact_effort",
    "require_single_choice",
    "tools_for_wire",
    "unmark_error",
    "visible_tools",
]

ERROR_PREFIX = "[tool error]"
_TOOL_FOUND_TEXT = "[the tool {} can be called from now on]"


# ── text and content ──────────────────────────────────────────────────────────────────────────────────────────────


def mark_error(result: Result) -> list[Content]:
    """What the tool answered, and that it failed, in its first words: for wires without a field for that."""
    if not result.error:
        return list(result.content)
    files, remainder = _split_leading_files(result.content)
    match remainder:
        case [Text(text), *following] if text:
            return [*files, Text(f"{ERROR_PREFIX} {text}"), *following]
    return [*files, Text(ERROR_PREFIX), *remainder]


def unmark_error(content: Sequence[Content]) -> tuple[list[Content], bool]:
    """The inverse of `error_marked`."""
    files, remainder = _split_leading_files(content)
    match remainder:
        case [Text(text), *following] if text == ERROR_PREFIX:
            return [*files, *following], True
        case [Text(text), *following] if text.startswith(
            (f"{ERROR_PREFIX} ", f"{ERROR_PREFIX}\n")
        ):  # the latter joins what stood apart
            return [*files, Text(text[len(ERROR_PREFIX) + 1 :]), *following], True
    return list(content), False


def _split_leading_files(content: Sequence[Content]) -> tuple[list[Content], list[Content]]:
    """The files that stand first, and what is behind them."""
    files = list(takewhile(lambda piece: isinstance(piece, Image | Document), content))
    return files, list(content[len(files) :])


def drop_message_name(message: Message, wire: str, notes: FindingCollector, path: str) -> None:
    """A speaker who is named, where messages have no names."""
    if message.name:
        notes.report("field-dropped", f"name of a message has no place on {wire}: dropped", f"{path}.name")


def as_text(piece: Content, notes: FindingCollector, path: str) -> str | None:
    """What a model can be told of a piece that its wire cannot carry; None if that is nothing."""
    match piece:
        case Text():
            return piece.text
        case Document(text=text) if text:
            notes.report("document-as-text", "a document of plain text: sent as text", path)
            return f"{piece.name}\n\n{text}" if piece.name else text
        case Document():
            name = piece.name or piece.file_id or ("" if piece.url.startswith("data:") else piece.url)
            notes.report("content-dropped", "a document that the wire cannot carry: its name is sent instead", path)
            return (
                f"[a document that cannot be shown here: {name}]" if name else "[a document that cannot be shown here]"
            )
        case Image():
            notes.report("content-dropped", "an image where the wire has none: dropped", path)
            return "[an image that cannot be shown here]"
        case Extra(data={"type": "tool_reference", "tool_name": str(name)}):
            notes.report("content-as-text", "a reference to a tool: told in words", path)
            return _TOOL_FOUND_TEXT.format(name)
        case Extra(data={"text": str(text)}):
            notes.report("content-as-text", f"{_describe_type(piece)} of {piece.wire}: sent as its text", path)
            return text
        case Extra():
            text = _extra_text(piece.data)
            outcome = "sent as its text" if text else "dropped"
            notes.report(
                "content-as-text" if text else "content-dropped",
                f"{_describe_type(piece)} of {piece.wire}: {outcome}",
                path,
            )
            return text or None
        case CacheMark():
            return None


def _extra_text(data: Mapping[str, Any]) -> str:
    """What there is to tell of what others say, of what they have found, and of what the client has run for it."""
    match data:
        case {"type": "tool_search_output", "tools": [*tools]}:
            found_tools = (
                tool for definition in tools if not is_hosted(definition) for tool in Tool.read_all(definition)
            )
            return "\n".join(_TOOL_FOUND_TEXT.format(tool.name) for tool in found_tools)
        case (
            {"type": "agent_message" | "search_result", "content": content}
            | {"type": "local_shell_call_output" | "shell_call_output", "output": content}
            | {"type": "document", "source": {"content": content}}
        ):
            title = data.get("title")
            return "\n\n".join(text for text in (title, _part_texts(content)) if isinstance(text, str) and text)
    return ""


def _part_texts(content: object) -> str:
    """A text, or those of all parts."""
    if isinstance(content, str):
        return content
    parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    texts = (part.get(key) for part in parts for key in ("text", "stdout", "stderr"))
    return "\n".join(text for text in texts if isinstance(text, str) and text)


def join_text(pieces: Iterable[Content], separator: str, notes: FindingCollector, path: str) -> str:
    """All of it as one text."""
    texts = (as_text(piece, notes, path) for piece in pieces if not isinstance(piece, CacheMark))
    return separator.join(text for text in texts if text)


def drop_cache_mark(mark: CacheMark | None, notes: FindingCollector, path: str) -> None:
    """A piece that cannot be marked as worth keeping."""
    if mark is not None:
        notes.report("cache-mark-dropped", "cache_control has no place here on this wire: dropped", path)


def _describe_type(extra: Extra) -> str:
    return f"a {extra.data.get('type') or 'part'}"


# ── tools ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def visible_tools(request: Request, wire: str) -> list[Tool]:
    """The tools that the model sees. Those that it has yet to search for wait, where the wire knows of that."""
    return [tool for tool in request.tools if request.wire == wire or not tool.deferred]


def tools_for_wire(request: Request, wire: str, notes: FindingCollector) -> list[Tool]:
    """The same, with what is lost of them."""
    tools = visible_tools(request, wire)
    for n, tool in enumerate(request.tools):
        path = f"tools[{n}]"
        if tool not in tools:
            notes.report("deferred-tool", f"the model has not searched for {tool.name!r} yet: not shown", path)
        for key in tool.extra if tool in tools and request.wire != wire else ():
            notes.report("field-dropped", f"{key} of a tool has no place on {wire}: dropped", f"{path}.{key}")
    return [msgspec.structs.replace(tool, extra=tool.extra if request.wire == wire else {}) for tool in tools]


def as_functions(tools: Iterable[Tool], notes: FindingCollector) -> list[Tool]:
    """The tools for a wire that knows only functions."""
    return [_as_function(tool, notes) for tool in tools]


def _as_function(tool: Tool, notes: FindingCollector) -> Tool:
    description = tool.description
    if tool.kind == "custom":
        notes.report("custom-tool", "a tool that takes text: offered as a function with one string", "tools")
        description = "\n\n".join(filter(None, (description, _grammar_text(tool))))
    if tool.namespace:
        notes.report("namespace", f"the tools of {tool.namespace!r}: offered under names with it in front", "tools")
    if tool.about:
        notes.report("field-dropped", f"what is said of {tool.namespace!r}, whose tools these are: dropped", "tools")
    return msgspec.structs.replace(tool, description=description, schema=complete_schema(tool.schema))


def complete_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema of arguments as all upstreams take it: that of an object, with properties."""
    complete = dict(schema) if schema.get("type") else {"type": "object", **schema}
    return complete if "properties" in complete else {**complete, "properties": {}}


def _grammar_text(tool: Tool) -> str:
    """What a custom tool's text may be, told to the model in words."""
    grammar = tool.grammar or {}
    if not (definition := grammar.get("definition")):
        return ""
    return f"`input` is text of this {grammar.get('syntax') or ''} grammar:\n{definition}"


def hosted_tools(request: Request, wire: str, notes: FindingCollector) -> list[dict[str, Any]]:
    """The tools that only one wire knows, if this is it."""
    if request.wire == wire:
        return request.hosted
    for tool in request.hosted:
        tool_type = tool.get("type")
        notes.report("hosted-tool", f"{tool_type} is known on {request.wire} only: not offered", "tools")
    return []


def extra_fields(request: Request, wire: str, notes: FindingCollector, shared: Iterable[str] = ()) -> dict[str, Any]:
    """The fields that only the client's wire has, if this is the same; of another, those that both have."""
    if request.wire == wire:
        return request.extra
    for key in request.extra:
        if key not in shared:
            notes.report("field-dropped", f"{key} has no place on {wire}: dropped", key)
    return {key: value for key, value in request.extra.items() if key in shared}


# ── settings ──────────────────────────────────────────────────────────────────────────────────────────────────────


def require_single_choice(request: Request) -> None:
    """Refuses what a wire with one choice cannot do."""
    if (n := request.sampling.get("n", 1)) != 1:
        raise BadRequest("n", f"the upstream's wire gives one choice, not {n}", "ask n times, or choose another model")


def drop_thinking_display(thinking: Thinking, notes: FindingCollector) -> None:
    """A wish what to see of the thinking, in words that the wire does not have."""
    if thinking.show is not None:
        notes.report("field-dropped", f"what to show of the thinking ({thinking.show}): cannot be said", "thinking")


def note_inexact_effort(thinking: Thinking, notes: FindingCollector) -> None:
    """A wish how much to think, in a measure that cannot be told."""
    requested = thinking.effort or (f"{thinking.budget} tokens" if thinking.budget is not None else "on")
    notes.report(
        "thinking-wish", f"how much to think ({requested}) cannot be told to the upstream as asked", "thinking"
    )
