"""Downgrades of request features that the target wire cannot express. Each downgrade is reported as a finding.

Features that the wire has but one upstream does not accept are handled in `upstreams/adapt`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any

import msgspec

from interlingua.core.findings import FindingCollector
from interlingua.core.reply import Text
from interlingua.core.request import CacheMark, Content, Document, Extra, Image, Message, Request, Result, Thinking
from interlingua.core.tools import NO_TOOL_FOUND_TEXT, TOOL_FOUND_TEXT, SharedTools, Tool, is_hosted
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
    "names_of_found_tools",
    "note_inexact_effort",
    "require_single_choice",
    "tools_for_wire",
    "unmark_error",
    "visible_tools",
]

_IMPLIED_FIELDS = (("include", ["reasoning.encrypted_content"]),)
"""Fields with values that ask for what every reply has: thinking that the client can send back."""
ERROR_PREFIX = "[tool error]"


# ── text and content ──────────────────────────────────────────────────────────────────────────────────────────────


def mark_error(result: Result) -> list[Content]:
    """Return the content of a tool result, marked as `[tool error]` if it failed: for wires without an error field."""
    if not result.error:
        return list(result.content)
    files, remainder = _split_leading_files(result.content)
    match remainder:
        case [Text(text), *following] if text:
            return [*files, Text(f"{ERROR_PREFIX} {text}"), *following]
    return [*files, Text(ERROR_PREFIX), *remainder]


def unmark_error(content: Sequence[Content]) -> tuple[list[Content], bool]:
    """Return the content without its `[tool error]` prefix, and whether it had one: the inverse of `mark_error`."""
    files, remainder = _split_leading_files(content)
    match remainder:
        case [Text(text), *following] if text == ERROR_PREFIX:
            return [*files, *following], True
        # A newline follows the prefix if it was a part of its own and the parts were joined.
        case [Text(text), *following] if text.startswith((f"{ERROR_PREFIX} ", f"{ERROR_PREFIX}\n")):
            return [*files, Text(text[len(ERROR_PREFIX) + 1 :]), *following], True
    return list(content), False


def _split_leading_files(content: Sequence[Content]) -> tuple[list[Content], list[Content]]:
    """Split content into the files at its start and the remainder."""
    files = list(takewhile(lambda piece: isinstance(piece, Image | Document), content))
    return files, list(content[len(files) :])


def drop_message_name(message: Message, wire: str, notes: FindingCollector, path: str) -> None:
    """Report a message name that is dropped because the wire has no field for it."""
    if message.name:
        notes.report("field-dropped", f"{wire} has no field for the name of a message: dropped", f"{path}.name")


def as_text(piece: Content, notes: FindingCollector, path: str) -> str | None:
    """Return text that replaces a piece of content which the wire cannot carry; None if there is none."""
    match piece:
        case Text():
            return piece.text
        case Document(text=text) if text:
            notes.report("document-as-text", "a plain text document: sent as text", path)
            return f"{piece.name}\n\n{text}" if piece.name else text
        case Document():
            name = piece.name or piece.file_id or ("" if piece.url.startswith("data:") else piece.url)
            notes.report("content-dropped", "a document that this wire cannot carry: only its name is sent", path)
            return (
                f"[a document that cannot be shown here: {name}]" if name else "[a document that cannot be shown here]"
            )
        case Image():
            notes.report("content-dropped", "an image where this wire allows none: dropped", path)
            return "[an image that cannot be shown here]"
        case Extra(data={"type": "tool_reference", "tool_name": str(name)}):
            notes.report("content-as-text", "a reference to a tool: sent as text", path)
            return TOOL_FOUND_TEXT.format(name)
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
    """Return the text of other agents' messages, search results, documents and shell output; "" for other types."""
    match data:
        case {"type": "tool_search_output", "tools": [*tools]}:
            found_tools = (
                tool for definition in tools if not is_hosted(definition) for tool in Tool.read_all(definition)
            )
            return "\n".join(TOOL_FOUND_TEXT.format(tool.name) for tool in found_tools) or NO_TOOL_FOUND_TEXT
        case (
            {"type": "agent_message" | "search_result", "content": content}
            | {"type": "local_shell_call_output" | "shell_call_output", "output": content}
            | {"type": "document", "source": {"content": content}}
        ):
            title = data.get("title")
            return "\n\n".join(text for text in (title, _part_texts(content)) if isinstance(text, str) and text)
    return ""


def names_of_found_tools(result: Result) -> list[str]:
    """Return the names of the tools that this result of a tool search refers to."""
    names: list[str] = []
    for piece in result.content:
        match piece:
            case Extra(data={"type": "tool_reference", "tool_name": str(name)}):
                names.append(name)
            case Extra(data={"type": "tool_search_output", "tools": [*tools]}):
                names += [tool.name for item in tools if not is_hosted(item) for tool in Tool.read_all(item)]
    return names


def _part_texts(content: object) -> str:
    """Return a string content as it is, or the joined texts of its parts."""
    if isinstance(content, str):
        return content
    parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    texts = (part.get(key) for part in parts for key in ("text", "stdout", "stderr"))
    return "\n".join(text for text in texts if isinstance(text, str) and text)


def join_text(pieces: Iterable[Content], separator: str, notes: FindingCollector, path: str) -> str:
    """Join all pieces into one text."""
    texts = (as_text(piece, notes, path) for piece in pieces if not isinstance(piece, CacheMark))
    return separator.join(text for text in texts if text)


def drop_cache_mark(mark: CacheMark | None, notes: FindingCollector, path: str) -> None:
    """Report a cache mark (`cache_control`) that is dropped because the wire has no field for it here."""
    if mark is not None:
        notes.report("cache-mark-dropped", "this wire has no field for cache_control here: dropped", path)


def _describe_type(extra: Extra) -> str:
    return f"a {extra.data.get('type') or 'part'}"


# ── tools ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def visible_tools(request: Request, wire: str) -> list[Tool]:
    """Return the tools that are offered to the model.

    Deferred tools, which the model has to search for first, are offered only on the client's own wire.
    """
    if isinstance(request.tools, SharedTools):  # none of them is deferred
        return request.tools
    return [tool for tool in request.tools if _is_visible(tool, request, wire)]


def _is_visible(tool: Tool, request: Request, wire: str) -> bool:
    return request.wire == wire or not tool.deferred


def tools_for_wire(request: Request, wire: str, notes: FindingCollector) -> list[Tool]:
    """Return the tools as `visible_tools` does, and report the tools and fields that are dropped."""
    if request.wire == wire:
        return list(request.tools)
    tools: list[Tool] = []
    for n, tool in enumerate(request.tools):
        path = f"tools[{n}]"
        if not _is_visible(tool, request, wire):
            notes.report("deferred-tool", f"the model has not searched for {tool.name!r} yet: not offered", path)
            continue
        for key in tool.extra if tool.kind != "search" else ():
            notes.report("field-dropped", f"{wire} has no field for {key} of a tool: dropped", f"{path}.{key}")
        tools.append(msgspec.structs.replace(tool, extra={}))
    return tools


def as_functions(tools: Iterable[Tool], notes: FindingCollector) -> list[Tool]:
    """Return the tools as functions, for a wire that has no other kind of tool."""
    return [_as_function(tool, notes) for tool in tools]


def _as_function(tool: Tool, notes: FindingCollector) -> Tool:
    description = tool.description
    if tool.kind == "custom":
        notes.report(
            "custom-tool", "a custom tool, which takes text: offered as a function with one string parameter", "tools"
        )
        description = "\n\n".join(filter(None, (description, _grammar_text(tool))))
    if tool.namespace:
        notes.report(
            "namespace",
            f"the tools of namespace {tool.namespace!r}: offered with the namespace as prefix of their names",
            "tools",
        )
    if tool.about:
        notes.report("field-dropped", f"the description of namespace {tool.namespace!r}: dropped", "tools")
    return msgspec.structs.replace(tool, description=description, schema=complete_schema(tool.schema))


def complete_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return an arguments schema that all upstreams accept: type object, with properties."""
    complete = dict(schema) if schema.get("type") else {"type": "object", **schema}
    return complete if "properties" in complete else {**complete, "properties": {}}


def _grammar_text(tool: Tool) -> str:
    """Return the grammar of a custom tool as a sentence for its description; "" if it has none."""
    grammar = tool.grammar or {}
    if not (definition := grammar.get("definition")):
        return ""
    return f"`input` is text of this {grammar.get('syntax') or ''} grammar:\n{definition}"


def hosted_tools(request: Request, wire: str, notes: FindingCollector) -> list[dict[str, Any]]:
    """Return the hosted tools (run by the server) if they are of this wire; else report and drop them."""
    if request.wire == wire:
        return request.hosted
    for tool in request.hosted:
        tool_type = tool.get("type")
        notes.report("hosted-tool", f"{tool_type} exists on {request.wire} only: not offered", "tools")
    return []


def extra_fields(
    request: Request, wire: str, notes: FindingCollector, convert: Callable[[str, Any], Any]
) -> dict[str, Any]:
    """Return the extra fields of the request that this wire takes, and report those that are dropped.

    All of them are kept if client and upstream use the same wire.

    Args:
        request: The request.
        wire: The wire of the upstream.
        notes: Receives the findings.
        convert: Function that returns the value of a field of another wire on this wire; None if it has none.
    """
    if request.wire == wire:
        return request.extra
    converted = {key: convert(key, value) for key, value in request.extra.items()}
    for key, value in converted.items():
        if value is None and (key, request.extra[key]) not in _IMPLIED_FIELDS:
            notes.report("field-dropped", f"{wire} has no field {key} with this value: dropped", key)
    return {key: value for key, value in converted.items() if value is not None}


# ── settings ──────────────────────────────────────────────────────────────────────────────────────────────────────


def require_single_choice(request: Request) -> None:
    """Raise BadRequest if the client wants several choices, for a wire that has only one."""
    if (n := request.sampling.get("n", 1)) != 1:
        raise BadRequest(
            "n", f"the upstream's wire returns one choice, not {n}", "send n requests or use another model"
        )


def drop_thinking_display(thinking: Thinking, notes: FindingCollector) -> None:
    """Report a `display` setting for reasoning that is dropped because the wire has no field for it."""
    if thinking.show is not None:
        notes.report("field-dropped", f"no field for how much thinking to show ({thinking.show}): dropped", "thinking")


def note_inexact_effort(thinking: Thinking, notes: FindingCollector) -> None:
    """Report an effort or thinking budget that the upstream's fields cannot express."""
    requested = thinking.effort or (f"{thinking.budget} tokens" if thinking.budget is not None else "on")
    notes.report(
        "thinking-wish",
        f"the upstream has no field for this amount of thinking ({requested}): not sent as requested",
        "thinking",
    )
