"""Server-run tools in the conversation of a Messages request: to the model, their blocks are calls and results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from interlingua.common.coerce import as_dict, as_list
from interlingua.core.tools import NO_TOOL_FOUND_TEXT
from interlingua.gateway.http.field_origins import Origin
from interlingua.gateway.http.sealed_values import SealedValues
from interlingua.gateway.server_tools.server_tool import ERROR_TEXT, Json, Page, ServerToolKind, pages_text

__all__ = ["RESULT_TYPES", "SEAL_PURPOSE", "has_server_calls", "messages_for_model"]

RESULT_TYPES: dict[ServerToolKind, str] = {
    "tool_search": "tool_search_tool_result",
    "web_search": "web_search_tool_result",
    "web_fetch": "web_fetch_tool_result",
}
"""Types of the blocks with the outcome."""
_KINDS = {block_type: kind for kind, block_type in RESULT_TYPES.items()}
SEAL_PURPOSE = "web_search"
"""Stands for the wire in the envelopes of excerpts, so that they are not taken for thinking."""


def has_server_calls(messages: list[Any]) -> bool:
    """Return whether a conversation has calls of server-run tools with their results."""
    return any(_results(message) for message in map(as_dict, messages) if message.get("role") == "assistant")


def _results(message: Json) -> list[Json]:
    blocks = message.get("content")
    return [block for block in map(as_dict, as_list(blocks)) if str(block.get("type")) in _KINDS]


def messages_for_model(messages: Iterable[Any], seals: SealedValues) -> Iterator[tuple[Origin, Json]]:
    """Yield the conversation with a call and a result in the place of each block of a server-run tool.

    Yields: the origin of a message, and the message.

    Raises:
        TooLarge: The excerpts of searches exceed the maximum size.
    """
    results: list[Json] = []  # of the message before
    for position, given in enumerate(messages):
        message, origin = as_dict(given), Origin(f"messages[{position}]")
        changed = origin._replace(is_same=False)
        content, role = message.get("content"), message.get("role")
        if results and role == "user":
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else as_list(content)
            message, origin = {**message, "content": [*results, *blocks]}, changed
        elif results:
            yield changed, {"role": "user", "content": results}
        results = []
        if role != "assistant" or not isinstance(content, list):
            yield origin, message
            continue
        *turns, (last, results) = _split_turns(message, seals)
        for blocks, turn_results in turns:
            yield changed, {**message, "content": blocks}
            yield changed, {"role": "user", "content": turn_results}
        if last:
            yield changed if turns else origin, {**message, "content": last}
    if results:
        yield changed, {"role": "user", "content": results}


def _split_turns(message: Json, seals: SealedValues) -> list[tuple[list[Json], list[Json]]]:
    """Divide the blocks of the model after each result of a server-run tool. Returns blocks, and the results."""
    answered_ids = {str(block.get("tool_use_id")) for block in _results(message)}
    turns: list[tuple[list[Json], list[Json]]] = [([], [])]
    called_ids: set[str] = set()
    for block in map(as_dict, message["content"]):
        kind = _KINDS.get(str(block.get("type")))
        if kind is not None and str(block.get("tool_use_id")) in called_ids:
            turns[-1][1].append(_tool_result(block, kind, seals))
            continue
        if turns[-1][1]:
            turns.append(([], []))
        if block.get("type") == "server_tool_use" and (id := str(block.get("id"))) in answered_ids:
            called_ids.add(id)
            block = {**block, "type": "tool_use"}
        turns[-1][0].append(block)
    return turns


def _tool_result(block: Json, kind: ServerToolKind, seals: SealedValues) -> Json:
    """Return the tool result for the result block of a server-run tool."""
    content = as_dict(block.get("content"))
    result: Json = {"type": "tool_result", "tool_use_id": block.get("tool_use_id")}
    if error := content.get("error_code"):
        return {**result, "content": ERROR_TEXT.format(kind, error), "is_error": True}
    if kind == "tool_search":
        return {**result, "content": content.get("tool_references") or NO_TOOL_FOUND_TEXT}
    blocks = [content] if content else as_list(block.get("content"))
    return {**result, "content": pages_text(_read_page(as_dict(page), seals) for page in blocks)}


def _read_page(block: Json, seals: SealedValues) -> Page:
    """Read a search result, or a page that was fetched."""
    document = as_dict(block.get("content"))
    text = as_dict(document.get("source")).get("data")
    if not document:
        text = seals.read(block.get("encrypted_content"), SEAL_PURPOSE)
    title, age = block.get("title") or document.get("title"), block.get("page_age")
    return Page(str(block.get("url") or ""), str(title or ""), str(text or ""), str(age or ""))
