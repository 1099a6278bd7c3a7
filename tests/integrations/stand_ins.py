"""Stand-ins for the packages that the plugins extend: only the names that a plugin imports, and who calls it when.

The plugins run with the real packages in `tests/integrations/engines`. These stand-ins need no installation.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest


def import_plugin(monkeypatch: pytest.MonkeyPatch, name: str, modules: dict[str, dict[str, Any]]) -> ModuleType:
    """Import a plugin while these modules stand in for a package: the names in each of them."""
    for path in modules:
        parts = path.split(".")
        for end in range(1, len(parts) + 1):
            parent = ".".join(parts[:end])
            if parent not in sys.modules or not isinstance(sys.modules[parent], StandIn):
                monkeypatch.setitem(sys.modules, parent, StandIn(parent))
        for attribute, value in modules[path].items():
            setattr(sys.modules[path], attribute, value)
    monkeypatch.delitem(sys.modules, f"interlingua.integrations.{name}", raising=False)
    plugin = importlib.import_module(f"interlingua.integrations.{name}")
    monkeypatch.delitem(sys.modules, plugin.__name__)  # the next test imports it with its own stand-ins
    return plugin


class StandIn(ModuleType):
    """A module of a package that is not installed."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__: list[str] = []


@dataclass
class Fields:
    """A model of pydantic, as far as plugins use it."""

    def model_dump(self, **_: Any) -> dict[str, Any]:
        return dict(vars(self))


class Registry(dict[str, Any]):
    """Parsers by name."""

    def register_module(self, name: str, *, module: Any) -> None:
        self[name] = module


@dataclass
class FunctionDelta(Fields):
    name: str | None = None
    arguments: str | None = None


@dataclass
class CallDelta(Fields):
    index: int
    id: str | None = None
    type: str | None = None
    function: FunctionDelta | None = None


@dataclass
class MessageDelta(Fields):
    reasoning: str | None = None
    content: str | None = None
    tool_calls: list[CallDelta] = field(default_factory=list)


class Record(SimpleNamespace):
    """An object with the attributes that it was created with."""

    def model_dump(self, **_: Any) -> dict[str, Any]:
        return dict(vars(self))


class VllmToolParser:
    def __init__(self, tokenizer: Any, tools: Any = None) -> None:
        self.model_tokenizer, self.tools = tokenizer, tools


class VllmReasoningParser:
    def __init__(self, tokenizer: Any, *_: Any, **__: Any) -> None:
        self.model_tokenizer = tokenizer

    @property
    def vocab(self) -> dict[str, int]:
        vocab: dict[str, int] = self.model_tokenizer.get_vocab()
        return vocab


class CharTokenizer:
    """Tokenizer with one token per character."""

    def __init__(self, name_or_path: str = "") -> None:
        self.name_or_path = name_or_path

    def get_vocab(self) -> dict[str, int]:
        return {}

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:  # noqa: ARG002
        return [ord(char) for char in text]

    def decode(self, tokens: Iterable[int]) -> str:
        return "".join(map(chr, tokens))


def vllm_modules() -> dict[str, dict[str, Any]]:
    return {
        "vllm.entrypoints.generate.base.protocol": {
            "DeltaFunctionCall": FunctionDelta,
            "DeltaMessage": MessageDelta,
            "DeltaToolCall": CallDelta,
            "ExtractedToolCallInformation": Record,
            "FunctionCall": Record,
            "ToolCall": Record,
        },
        "vllm.reasoning": {"ReasoningParser": VllmReasoningParser, "ReasoningParserManager": Registry()},
        "vllm.sampling_params": {"StructuredOutputsParams": Record},
        "vllm.tool_parsers": {"ToolParser": VllmToolParser, "ToolParserManager": Registry()},
    }


def stream_through_vllm(
    tool_parser: Any, reasoning_parser: Any, prompt: list[int], pieces: Iterable[str], request: Any
) -> list[MessageDelta]:
    """Stream a reply in the order in which vLLM 0.31 to 0.33 call parsers that have `engine_based_streaming`."""
    deltas: list[MessageDelta | None] = []
    reasoning_ended = reasoning_parser is None or reasoning_parser.is_reasoning_end(prompt)
    if not reasoning_ended:
        reasoning_parser.adjust_initial_state_from_prompt(prompt)
    for piece in pieces:
        text = piece
        if not reasoning_ended:
            delta = reasoning_parser.extract_reasoning_streaming("", piece, piece, [], [], [])
            deltas.append(delta)
            reasoning_ended = reasoning_parser.has_engine_confirmed_reasoning_end()
            rest = reasoning_parser.finish_streaming() if reasoning_ended else None
            text = ((delta.content if delta else None) or "") + ((rest.content if rest else None) or "")
        if reasoning_ended and tool_parser is not None:
            deltas.append(tool_parser.extract_tool_calls_streaming("", text, text, [], [], [], request))
        elif reasoning_ended:
            deltas.append(MessageDelta(content=text))
    if reasoning_parser is not None and not reasoning_ended:
        deltas.append(reasoning_parser.finish_streaming())
    if tool_parser is not None:
        deltas.append(tool_parser.finish_streaming())
    return [delta for delta in deltas if delta is not None]
