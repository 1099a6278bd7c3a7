"""Text of one reply, piece by piece, as the deltas of a chat completion. The plugins for engines build on it."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import uuid4

from interlingua import events as ev
from interlingua.core.options import Options
from interlingua.core.reply import Reply, ReplyBuilder
from interlingua.core.tool_choice import ToolChoiceLike
from interlingua.core.tools import ToolSet, ToolsLike
from interlingua.dialects.registry import STANDARD_DIALECT, dialect_for, get_dialect
from interlingua.dialects.yaml_loader import load_dialect
from interlingua.parsing.choice_pipeline import ChoicePipeline
from interlingua.parsing.dialect import Dialect
from interlingua.parsing.suffixes import add_suffix, find_suffix

__all__ = [
    "DIALECT_VARIABLE",
    "CallDelta",
    "Delta",
    "ReplyStream",
    "as_json",
    "choose_dialect",
    "find_call_ids",
    "find_prefill",
]

DIALECT_VARIABLE = "INTERLINGUA_DIALECT"
"""Environment variable with the dialect of the engine's model: a name, `detect`, or the path of a YAML file."""
LOGGER = logging.getLogger("interlingua")
DIALECT_FILE_ENDINGS = (".yaml", ".yml", ".json")


def choose_dialect(*models: str | None) -> Dialect:
    """Return the dialect that the environment variable names, or else that of the first known model.

    Without either, the dialect is detected in each reply.
    """
    if setting := os.environ.get(DIALECT_VARIABLE, "").strip():
        return load_dialect(setting) if setting.endswith(DIALECT_FILE_ENDINGS) else get_dialect(setting)
    known = (dialect_for(model) for model in models if model)
    return next((dialect for dialect in known if dialect is not STANDARD_DIALECT), get_dialect("detect"))


def find_prefill(prompt: str, dialect: Dialect) -> str:
    """Return the beginning of the reply at the end of a prompt; "" if there is none.

    That is the opener of thinking that the prompt has not closed, or the last characters if a marker begins with them.
    In dialects of messages, the end of the prompt itself is returned: the parser finds the message in it.
    """
    if dialect.router is not None:
        return prompt
    if suffix := find_suffix(dialect, prompt):
        dialect = add_suffix(dialect, suffix)
    opener = max(dialect.thinking_openers, key=prompt.rfind, default="")
    closer = max((prompt.rfind(marker) for marker in dialect.thinking_closers), default=-1)
    return opener if prompt.rfind(opener) > closer and opener else _begun_marker(prompt, dialect)


def _begun_marker(prompt: str, dialect: Dialect) -> str:
    """Return the end of the prompt that is a marker, or the beginning of one."""
    openers = dialect.grammar.openers if dialect.grammar else ()
    markers = (*openers, *(span.open for span in (*dialect.thinking, *dialect.text)))
    begun = (marker[:length] for marker in markers for length in range(1, len(marker) + 1))
    return max((text for text in begun if text.strip() and prompt.endswith(text)), key=len, default="")


def as_json(value: Any) -> Any:
    """Return a model of pydantic as JSON values, without fields that are None. Any other value stays as it is."""
    return value.model_dump(exclude_none=True) if hasattr(value, "model_dump") else value


def find_call_ids(messages: Iterable[Any]) -> set[str]:
    """Return the call ids of a conversation's messages, so that the reply uses others."""
    calls = (
        call
        for message in messages
        if isinstance(message, Mapping)
        for call in message.get("tool_calls") or ()
        if isinstance(call, Mapping)
    )
    return {call["id"] for call in calls if isinstance(call.get("id"), str)}


@dataclass
class CallDelta:
    """New parts of one call. `id` and `name` are set in its first delta."""

    index: int
    id: str | None = None
    name: str | None = None
    arguments: str = ""


@dataclass
class Delta:
    """New parts of a reply."""

    reasoning: str = ""
    text: str = ""
    calls: list[CallDelta] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.reasoning or self.text or self.calls)


class ReplyStream:
    """Parser of one reply. Call `feed` for each piece of text, then `close`.

    Args:
        dialect: The dialect of the text.
        tools: The tools that the client offered; None if they are not known.
        tool_choice: The `tool_choice` of the request.
        prefill: The beginning of the reply that the prompt already contains.
        reasoning: Whether thinking is returned as such, or as text.
        taken_ids: The call ids of the conversation.
    """

    def __init__(
        self,
        dialect: Dialect,
        tools: ToolsLike = None,
        tool_choice: ToolChoiceLike = None,
        prefill: str = "",
        reasoning: Literal["keep", "as_content"] = "keep",
        taken_ids: Iterable[str] = (),
    ) -> None:
        options = Options(prefill=prefill, reasoning=reasoning, taken_ids=frozenset(taken_ids))
        # A seed instead of a reply id: the model's own call ids stay as they are, because its template expects them.
        self._pipeline = ChoicePipeline(dialect, ToolSet(tools, tool_choice), options, seed=uuid4().hex)

        self._builder = ReplyBuilder()

    def feed(self, text: str) -> Delta:
        return self._collect(self._pipeline.process_text(text))

    def close(self) -> Delta:
        """End the text and return what was held back."""
        return self._collect(self._pipeline.end_of_text())

    @property
    def held(self) -> str:
        """Text that is held back until the parser knows what follows it."""
        return self._pipeline.buffered

    def parse(self, text: str) -> Reply:
        """Return the reply of a complete text, instead of `feed` and `close`."""
        self.feed(text)
        self.close()
        return self.reply

    @property
    def reply(self) -> Reply:
        """The reply so far."""
        return self._builder.reply()

    def _collect(self, events: list[ev.Event]) -> Delta:
        for event in events:
            self._builder.add(event)
        return collect_delta(events)


def collect_delta(events: Iterable[ev.Event]) -> Delta:
    """Return the events as one delta. A call has one entry, also if its name and its arguments came together."""
    reasoning: list[str] = []
    text: list[str] = []
    calls: dict[int, CallDelta] = {}
    for event in events:
        match event:
            case ev.ReasoningDelta():
                reasoning.append(event.text)
            case ev.TextDelta():
                text.append(event.text)
            case ev.CallStart():
                calls[event.index] = CallDelta(event.index, event.id, event.name)
            case ev.ArgsDelta():
                calls.setdefault(event.index, CallDelta(event.index)).arguments += event.text
            case ev.Finding():
                LOGGER.debug("%s: %s", event.kind, event.message)
            case ev.Failure():
                LOGGER.warning("the reply is cut off: %s", event.message)
            case _:
                pass  # the engine has its own beginning, end and usage of a reply
    return Delta("".join(reasoning), "".join(text), list(calls.values()))
