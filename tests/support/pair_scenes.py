"""What an upstream may answer, whatever its wire: one neutral description for each scene of the table of wire pairs."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from tests.support.chat_scenarios import CALL, END, SECTION, SECTION_OF_PARIS, kimi
from tests.support.responses_scenarios import CUSTOM, PATCH, SPACE
from tests.support.sdk import Json

Stop: TypeAlias = Literal["stop", "length", "tool_calls", "content_filter"]
Ends: TypeAlias = Literal["well", "error", "broken off"]


@dataclass(frozen=True)
class Thought:
    """Thinking; `seal` is what its upstream wants back with it. It may be all that is shown of it."""

    text: str
    seal: str = ""


@dataclass(frozen=True)
class Speech:
    text: str


@dataclass(frozen=True)
class Refusal:
    text: str


@dataclass(frozen=True)
class Call:
    """A call. `args` may be cut. On the Responses wire one of a custom tool has `text` instead, and one of a namespace
    its `local` name there."""

    name: str
    args: str
    id: str = "call_1"
    text: str | None = None
    space: str = ""
    local: str = ""

    @property
    def whole(self) -> bool:
        try:
            return isinstance(json.loads(self.args or "{}"), dict)
        except ValueError:
            return False


Part: TypeAlias = Thought | Speech | Refusal | Call


@dataclass(frozen=True)
class Tokens:
    """`input` includes `cached` and `written`, `output` includes `reasoning`."""

    input: int
    output: int
    cached: int = 0
    written: int = 0
    reasoning: int = 0


@dataclass(frozen=True)
class Scene:
    """`parts` is what the upstream sends, `heard` what a client is to understand, if that is something else."""

    name: str
    parts: list[Part] = field(default_factory=list)
    stop: Stop = "stop"
    sequence: str | None = None
    tokens: Tokens = Tokens(100, 20)
    ends: Ends = "well"
    heard: list[Part] | None = None
    dialect: str = "standard"
    tools: list[Json] | None = None
    json_text: bool = False
    """The text is JSON, for clients that parse it."""

    @property
    def understood(self) -> list[Part]:
        return self.parts if self.heard is None else self.heard

    @property
    def calls(self) -> list[Call]:
        return [part for part in self.understood if isinstance(part, Call)]

    @property
    def inside(self) -> bool:
        """Whether it ends inside its last part."""
        last = self.parts[-1] if self.parts else None
        return bool(last) and (self.ends != "well" or (isinstance(last, Call) and not last.whole))

    def __str__(self) -> str:
        return self.name


def wrapped(text: str) -> str:
    """The text of a custom tool, as the arguments of a function."""
    return json.dumps({"input": text}, ensure_ascii=False, separators=(",", ":"))


BOOM = "boom: try again"
HI = Speech("Héllo 😀, wörld.")
HM, SIGNED = Thought("Hm. Let me\nsee."), Thought("Hm. Let me\nsee.", "U2lnbmVk")
HIDDEN = Thought("", "SGlkZGVu")
F = Call("f", '{"a": "é\\n😀", "b": [1, 2.50, null]}')
G = Call("g", '{ "deep" : {"x": "\\u00e9"} }', "call_2")
NOTHING = Call("f", "")
EMPTY = Call("f", "{}")
CUT = Call("f", '{"a": "lo')
PARIS = Call("get_weather", '{"city": "Paris"}', "functions.get_weather:0")
ROME = Call("get_weather", '{"city": "Rome"}', "functions.get_weather:1")
SECTION_OF_TWO = SECTION_OF_PARIS.replace(END, END + kimi(ROME.id, ROME.args), 1)
APPLY = Call("apply_patch", wrapped(PATCH), text=PATCH)
LIST = Call("mcp__docs__list", '{"x": 1}', space="mcp__docs", local="list")

SCENES = [
    Scene("text", [HI]),
    Scene("JSON as text", [Speech('{"city": "Paris"}')], json_text=True),
    Scene("thinking", [HM, HI]),
    Scene("sealed thinking", [SIGNED, HI]),
    Scene("sealed thinking and a call", [SIGNED, F], "tool_calls"),
    Scene("a call", [F], "tool_calls"),
    Scene("parallel calls", [F, G], "tool_calls"),
    Scene("two calls of one tool", [F, Call("f", "{}", "call_2")], "tool_calls"),
    Scene("no arguments", [NOTHING], "tool_calls", heard=[EMPTY]),
    Scene("empty arguments", [EMPTY], "tool_calls"),
    Scene("text and calls", [HI, F, G], "tool_calls"),
    Scene("thinking, text and a call", [HM, HI, F], "tool_calls"),
    Scene("text behind a call", [HI, F, Speech("So.")], "tool_calls"),
    Scene("thinking between calls", [SIGNED, F, Thought("And now?", "QWdhaW4"), G], "tool_calls"),
    Scene("thinking twice", [SIGNED, Thought("Again.", "QWdhaW4"), HI]),
    Scene("thinking that is not shown", [HIDDEN, HI]),
    Scene("thinking that is not shown, and a call", [SIGNED, HIDDEN, F], "tool_calls"),
    Scene("an id that is not legal everywhere", [PARIS, ROME], "tool_calls"),
    Scene("refusal", [Refusal("I cannot.")]),
    Scene("text and a refusal", [HI, Refusal("I cannot.")]),
    Scene("length", [HI], "length"),
    Scene("length behind a call", [F], "length"),
    Scene("length inside a call", [F, Call("g", CUT.args, "call_2")], "length"),
    Scene("content filter", [HI], "content_filter"),
    Scene("stop sequence", [HI], sequence="END"),
    Scene("nothing", []),
    Scene("usage", [HI], tokens=Tokens(100, 20, cached=60, written=10, reasoning=5)),
    Scene("native call", [Speech(SECTION_OF_PARIS)], heard=[PARIS], dialect="kimi_k2"),
    Scene("native text and calls", [HI, Speech(SECTION_OF_TWO)], heard=[HI, PARIS, ROME], dialect="kimi_k2"),
    Scene("thinking and a native call", [HM, Speech(SECTION_OF_PARIS)], heard=[HM, PARIS], dialect="kimi_k2"),
    Scene("a native call in thinking", [Thought(HM.text + SECTION_OF_PARIS)], heard=[HM, PARIS], dialect="kimi_k2"),
    Scene(
        "sealed thinking and a native call",
        [SIGNED, Speech(SECTION_OF_PARIS)],
        heard=[SIGNED, PARIS],
        dialect="kimi_k2",
    ),
    Scene("a call of a model with a dialect", [HI, F], "tool_calls", dialect="kimi_k2"),
    Scene("custom tool", [APPLY], "tool_calls", tools=CUSTOM),
    Scene("tool of a namespace", [HI, LIST], "tool_calls", tools=[SPACE]),
    Scene("error at once", ends="error"),
    Scene("error inside text", [HI], ends="error"),
    Scene("error behind a call", [F], ends="error"),
    Scene("error inside a call", [HI, CUT], ends="error"),
    Scene("broken off at once", ends="broken off"),
    Scene("broken off inside text", [HI], ends="broken off"),
    Scene("broken off inside thinking", [HM], ends="broken off"),
    Scene("broken off inside a call", [HI, CUT], ends="broken off"),
    Scene(
        "broken off inside a native call",
        [HI, Speech(SECTION + CALL + "functions.f:0")],
        ends="broken off",
        heard=[Speech(HI.text + "functions.f:0")],
        dialect="kimi_k2",
    ),
]
