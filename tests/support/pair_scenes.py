"""Scenes for the table of wire pairs: one neutral description of a reply, independent of the wire."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from tests.support.chat_scenarios import CALL, END, SECTION, SECTION_OF_PARIS, kimi_call
from tests.support.responses_scenarios import CUSTOM_TOOLS, NAMESPACE, PATCH
from tests.support.sdk import Json

SceneStop: TypeAlias = Literal["stop", "length", "tool_calls", "content_filter"]
SceneEnding: TypeAlias = Literal["well", "error", "broken off"]


@dataclass(frozen=True)
class ThinkingPart:
    """Reasoning. `signature` is what the upstream expects back; with an empty text the reasoning is hidden."""

    text: str
    signature: str = ""


@dataclass(frozen=True)
class TextPart:
    text: str


@dataclass(frozen=True)
class RefusalPart:
    text: str


@dataclass(frozen=True)
class CallPart:
    """A call. `args` may be truncated.

    On the Responses wire a call of a custom tool has `text` instead, and a tool in a namespace its `local_name`.
    """

    name: str
    args: str
    id: str = "call_1"
    text: str | None = None
    namespace: str = ""
    local_name: str = ""

    @property
    def is_complete(self) -> bool:
        try:
            return isinstance(json.loads(self.args or "{}"), dict)
        except ValueError:
            return False


ScenePart: TypeAlias = ThinkingPart | TextPart | RefusalPart | CallPart


@dataclass(frozen=True)
class TokenUsage:
    """`input` includes `cached` and `written`, `output` includes `reasoning`."""

    input: int
    output: int
    cached: int = 0
    written: int = 0
    reasoning: int = 0


@dataclass(frozen=True)
class Scene:
    """One reply. `parts` is what the upstream sends, `expected` what a client should read if that differs."""

    name: str
    parts: list[ScenePart] = field(default_factory=list)
    stop: SceneStop = "stop"
    sequence: str | None = None
    tokens: TokenUsage = TokenUsage(100, 20)
    ending: SceneEnding = "well"
    expected: list[ScenePart] | None = None
    dialect: str = "standard"
    tools: list[Json] | None = None
    json_text: bool = False
    """The text is JSON, for clients that parse it."""

    @property
    def expected_parts(self) -> list[ScenePart]:
        return self.parts if self.expected is None else self.expected

    @property
    def calls(self) -> list[CallPart]:
        return [part for part in self.expected_parts if isinstance(part, CallPart)]

    @property
    def ends_inside_part(self) -> bool:
        """True if the reply ends inside its last part."""
        last = self.parts[-1] if self.parts else None
        return bool(last) and (self.ending != "well" or (isinstance(last, CallPart) and not last.is_complete))

    def __str__(self) -> str:
        return self.name


def custom_tool_arguments(text: str) -> str:
    """Return the text of a custom tool as the arguments of a function."""
    return json.dumps({"input": text}, ensure_ascii=False, separators=(",", ":"))


ERROR_MESSAGE = "boom: try again"
HI = TextPart("Héllo 😀, wörld.")
HM, SIGNED = ThinkingPart("Hm. Let me\nsee."), ThinkingPart("Hm. Let me\nsee.", "U2lnbmVk")
HIDDEN = ThinkingPart("", "SGlkZGVu")
F = CallPart("f", '{"a": "é\\n😀", "b": [1, 2.50, null]}')
G = CallPart("g", '{ "deep" : {"x": "\\u00e9"} }', "call_2")
NOTHING = CallPart("f", "")
EMPTY = CallPart("f", "{}")
CUT = CallPart("f", '{"a": "lo')
PARIS = CallPart("get_weather", '{"city": "Paris"}', "functions.get_weather:0")
ROME = CallPart("get_weather", '{"city": "Rome"}', "functions.get_weather:1")
SECTION_OF_TWO = SECTION_OF_PARIS.replace(END, END + kimi_call(ROME.id, ROME.args), 1)
APPLY = CallPart("apply_patch", custom_tool_arguments(PATCH), text=PATCH)
LIST = CallPart("mcp__docs__list", '{"x": 1}', namespace="mcp__docs", local_name="list")

SCENES = [
    Scene("text", [HI]),
    Scene("JSON as text", [TextPart('{"city": "Paris"}')], json_text=True),
    Scene("thinking", [HM, HI]),
    Scene("signed thinking", [SIGNED, HI]),
    Scene("signed thinking and a call", [SIGNED, F], "tool_calls"),
    Scene("a call", [F], "tool_calls"),
    Scene("parallel calls", [F, G], "tool_calls"),
    Scene("two calls of one tool", [F, CallPart("f", "{}", "call_2")], "tool_calls"),
    Scene("no arguments", [NOTHING], "tool_calls", expected=[EMPTY]),
    Scene("empty arguments", [EMPTY], "tool_calls"),
    Scene("text and calls", [HI, F, G], "tool_calls"),
    Scene("thinking, text and a call", [HM, HI, F], "tool_calls"),
    Scene("text after a call", [HI, F, TextPart("So.")], "tool_calls"),
    Scene("thinking between calls", [SIGNED, F, ThinkingPart("And now?", "QWdhaW4"), G], "tool_calls"),
    Scene("thinking twice", [SIGNED, ThinkingPart("Again.", "QWdhaW4"), HI]),
    Scene("hidden thinking", [HIDDEN, HI]),
    Scene("hidden thinking and a call", [SIGNED, HIDDEN, F], "tool_calls"),
    Scene("an id that is not valid on every wire", [PARIS, ROME], "tool_calls"),
    Scene("refusal", [RefusalPart("I cannot.")]),
    Scene("text and a refusal", [HI, RefusalPart("I cannot.")]),
    Scene("length", [HI], "length"),
    Scene("length after a call", [F], "length"),
    Scene("length inside a call", [F, CallPart("g", CUT.args, "call_2")], "length"),
    Scene("content filter", [HI], "content_filter"),
    Scene("stop sequence", [HI], sequence="END"),
    Scene("nothing", []),
    Scene("usage", [HI], tokens=TokenUsage(100, 20, cached=60, written=10, reasoning=5)),
    Scene("native call", [TextPart(SECTION_OF_PARIS)], expected=[PARIS], dialect="kimi_k2"),
    Scene("native text and calls", [HI, TextPart(SECTION_OF_TWO)], expected=[HI, PARIS, ROME], dialect="kimi_k2"),
    Scene("thinking and a native call", [HM, TextPart(SECTION_OF_PARIS)], expected=[HM, PARIS], dialect="kimi_k2"),
    Scene(
        "a native call in thinking", [ThinkingPart(HM.text + SECTION_OF_PARIS)], expected=[HM, PARIS], dialect="kimi_k2"
    ),
    Scene(
        "signed thinking and a native call",
        [SIGNED, TextPart(SECTION_OF_PARIS)],
        expected=[SIGNED, PARIS],
        dialect="kimi_k2",
    ),
    Scene("a call of a model with a dialect", [HI, F], "tool_calls", dialect="kimi_k2"),
    Scene("custom tool", [APPLY], "tool_calls", tools=CUSTOM_TOOLS),
    Scene("tool of a namespace", [HI, LIST], "tool_calls", tools=[NAMESPACE]),
    Scene("error at once", ending="error"),
    Scene("error inside text", [HI], ending="error"),
    Scene("error after a call", [F], ending="error"),
    Scene("error inside a call", [HI, CUT], ending="error"),
    Scene("broken off at once", ending="broken off"),
    Scene("broken off inside text", [HI], ending="broken off"),
    Scene("broken off inside thinking", [HM], ending="broken off"),
    Scene("broken off inside a call", [HI, CUT], ending="broken off"),
    Scene(
        "broken off inside a native call",
        [HI, TextPart(SECTION + CALL + "functions.f:0")],
        ending="broken off",
        expected=[TextPart(HI.text + "functions.f:0")],
        dialect="kimi_k2",
    ),
]
