"""Translation of chat completion chunks as objects, for packages that pass chunks instead of bytes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from interlingua.core.options import Options
from interlingua.core.tool_choice import ToolChoiceLike
from interlingua.core.tools import ToolsLike
from interlingua.parsing.dialect import Dialect
from interlingua.translation.translator import Translator

__all__ = ["ChunkTranslator"]

DATA = b"data: "
EVENT_END = b"\n\n"
DONE = b"[DONE]"


class ChunkTranslator:
    """Translator of one reply: raw chunks in, chunks with calls out. Call `feed` for each chunk, then `close`.

    Args:
        dialect: The dialect of the text in the chunks.
        tools: The tools that the client offered.
        tool_choice: The `tool_choice` of the request.
        prefill: The beginning of the reply that the prompt already contains.
        taken_ids: The call ids of the conversation.
    """

    def __init__(
        self,
        dialect: Dialect,
        tools: ToolsLike = None,
        tool_choice: ToolChoiceLike = None,
        prefill: str = "",
        taken_ids: Iterable[str] = (),
    ) -> None:
        options = Options(prefill=prefill, taken_ids=frozenset(taken_ids))
        self._translator = Translator(dialect=dialect, tools=tools, options=options, tool_choice=tool_choice)

    def feed(self, chunk: dict[str, Any]) -> list[dict[str, Any]]:
        return list(_read_events(self._translator.feed(DATA + json.dumps(chunk).encode() + EVENT_END)))

    def close(self) -> list[dict[str, Any]]:
        """End the reply and return the remaining chunks."""
        end = self._translator.feed(DATA + DONE + EVENT_END) + self._translator.close()
        return list(_read_events(end))

    def translate(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return a complete reply, instead of `feed` and `close`."""
        return self._translator.reply(body)


def _read_events(data: bytes) -> Iterator[dict[str, Any]]:
    for event in data.split(EVENT_END):
        if event.startswith(DATA) and not event.startswith(DATA + DONE):
            yield json.loads(event.removeprefix(DATA))
