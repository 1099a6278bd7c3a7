"""Fuzz every dialect with hostile text, cut anywhere and on two channels.

The text consists of random markers, truncated samples and fragments of JSON.

    python -m fuzz.dialects                        a minute of random input, without atheris
    python -m fuzz.dialects --seconds 600 --seed 7
    python -m fuzz.dialects -max_total_time=600    with atheris installed: libFuzzer, guided by coverage

Both generate bytes, and the bytes select everything else: `Row.from_bytes`. Every row must pass all `CHECKS`. A failing
row is printed as a row of a fixture file.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from fuzz.engine import BrokenPromise, ByteChooser, Fuzzer, instrument_imports

with instrument_imports():
    import interlingua as il
    from interlingua import events as ev
    from interlingua.core.tools import ToolSet
    from interlingua.dialects.registry import get_dialect
    from interlingua.errors import RenderError
    from interlingua.parsing.choice_pipeline import ChoicePipeline
    from interlingua.parsing.markers import compile_markers

NAMES = [dialect.name for dialect in il.dialects() if dialect.shape] + ["detect"]
PARAMS = {
    "get_weather": {"city": "string", "unit": "string", "days": "integer"},
    "write": {"path": "string", "content": "string", "meta": "object", "lines": "array", "force": "boolean"},
}
TOOLS: list[list[str] | None] = [None, [], ["get_weather", "write"], ["write"]]
"""Unknown; none; both; one, so that the samples call a tool that was not offered."""
SCRAPS = [
    *("get_weather", "write", "city", "path", "content", "meta", "days", "ls", "functions.", ":0", "call_1", "name"),
    *('{"city": "', '{"name": "write", "arguments": ', '"path": ', '{"a": [1, {"b": "', "{}", "{", "}", "[", "]", '"'),
    *('"}', '"}}', "\\", "\\u00", '\\"', "'", ",", ", ", ":", ": ", "=", "(", ")", "null", "true", "-1.5e", "3", "0"),
    *(
        "city='Paris', days=3",
        'path="a", ',
        "path=r'x\\",
        "[write(",
        ")]",
        "<",
        ">",
        "</",
        "/>",
        '="',
        "|>",
        "<|",
        "＜",
    ),
    *("\n", "\n\n", " ", "\t", "```json\n", "```", "assistant", " to=", "Hello. ", "if a < b: ", "\x00", "\u2028", "é"),
    *("\ud83d", "\U0001f600", "\r\n", "<think>", "</think>", "<tool_call>", "</tool_call>", "<arg_key>", "None", "# "),
]
WORDS = [f"zq{n}" for n in range(10)]
"""Words that occur nowhere else, so that a check can find them in the result."""
MAX_TEXT_CHARS = 300
"""Maximum size of a text in characters. Longer texts are slower and find no more failures."""


@dataclass(frozen=True)
class Row:
    """Text to parse, with dialect and tools, and the positions where it is cut."""

    dialect: str
    tools: list[str] | None
    prefill: str
    text: str
    cuts: tuple[int, ...]

    @classmethod
    def from_bytes(cls, data: bytes) -> Row:
        chooser = ByteChooser(data)
        name = NAMES[chooser.below(len(NAMES))]
        tools = TOOLS[chooser.below(len(TOOLS))]
        prefill = _prefill(name, chooser)
        cuts = [chooser.below(1 << 16) for _ in range(chooser.below(6))]
        text = ""
        while chooser.left and len(text) < MAX_TEXT_CHARS:
            text += fragment(name, chooser)
        return cls(name, tools, prefill, text, tuple(sorted(cut % (len(text) + 1) for cut in cuts)))

    @property
    def offer(self) -> list[dict[str, Any]] | None:
        return offered_tools(self.tools)

    @property
    def pieces(self) -> list[str]:
        return [self.text[a:b] for a, b in zip([0, *self.cuts], [*self.cuts, len(self.text)], strict=True)]

    @cached_property
    def whole_reply(self) -> il.Reply:
        """Reply of the text in one piece."""
        return self.read([self.text])

    def read(self, pieces: Iterable[str]) -> il.Reply:
        """Parse the pieces and fold the events, which also checks their order."""
        parser = il.Parser(self.dialect, self.offer, self.prefill)
        return il.fold([event for piece in pieces for event in parser.feed(piece)] + parser.close())

    def read_on_two_channels(self, size: int) -> il.Reply:
        """Parse the pieces alternately as text and as thinking, each in parts of this size."""
        pipeline = ChoicePipeline(get_dialect(self.dialect), ToolSet(self.offer), il.Options(prefill=self.prefill))
        events: list[ev.Event] = []
        for n, piece in enumerate(self.pieces):
            for at in range(0, len(piece), size):
                part = piece[at : at + size]
                events += pipeline.process([ev.ReasoningDelta(part) if n % 2 else ev.TextDelta(part)])
        return il.fold(events + pipeline.end_of_text())

    @property
    def family(self) -> str:
        return self.dialect

    def smaller(self) -> Iterator[Row]:
        if self.prefill:
            yield replace(self, prefill="")
        if self.tools is not None:
            yield replace(self, tools=None)
        if self.tools == TOOLS[2]:
            yield replace(self, tools=TOOLS[3])
        for n in range(len(self.cuts)):
            yield replace(self, cuts=self.cuts[:n] + self.cuts[n + 1 :])
        size = len(self.text) // 2
        while size:
            for at in range(0, len(self.text), size):
                cuts = tuple(cut - min(max(cut - at, 0), size) for cut in self.cuts)
                text = self.text[:at] + self.text[at + size :]
                yield replace(self, text=text, cuts=tuple(min(cut, len(text)) for cut in cuts))
            size //= 2

    def __str__(self) -> str:
        """Format as a row of a fixture file, without the expected reply."""
        lines = [f"dialect = {_toml(self.dialect)}"]
        if self.tools is not None:
            tools = ", ".join(f"{name} = {_toml_params(PARAMS[name])}" for name in self.tools)
            lines.append(f"tools = {{ {tools} }}" if tools else "tools = {}")
        if self.prefill:
            lines.append(f"prefill = {_toml(self.prefill)}")
        lines.append(f"text = {_toml(self.text)}")
        if self.cuts:
            lines.append(f"pieces = [{', '.join(map(_toml, self.pieces))}]")
        return "\n".join(lines)


def offered_tools(names: list[str] | None) -> list[dict[str, Any]] | None:
    return None if names is None else [_tool(name, PARAMS[name]) for name in names]


def _tool(name: str, params: dict[str, str]) -> dict[str, Any]:
    schema = {"type": "object", "properties": {key: {"type": kind} for key, kind in params.items()}}
    return {"type": "function", "function": {"name": name, "parameters": schema}}


def _toml(text: str) -> str:
    odd = re.compile("[\x7f\u0080-\u00a0\u2028\u2029\ud800-\udfff\ufeff]")
    return odd.sub(lambda char: f"\\u{ord(char.group()):04x}", json.dumps(text, ensure_ascii=False))


def _toml_params(params: dict[str, str]) -> str:
    return "{ " + ", ".join(f"{key} = {_toml(kind)}" for key, kind in params.items()) + " }"


# ── text fragments ───────────────────────────────────────────────────────────────────────────────────────


def _markers_of(name: str) -> list[str]:
    dialect = get_dialect(name)
    grammar = dialect.grammar
    of_shape = (*grammar.openers, *grammar.inner_markers, *grammar.first_openers(ToolSet(None))) if grammar else ()
    return sorted({*dialect.markers, *of_shape})


def _genuine_replies(name: str) -> list[str]:
    """Return genuine replies: the sample, and calls of the tools above, with markers in their arguments."""
    if name == "detect":
        return [text for other in NAMES[:-1] for text in WRITTEN[other][:1]]
    inside = json.dumps({"path": "a b", "content": "if a < b:\n\t" + MARKERS[name][0], "meta": {"k": ["v", {}]}})
    parts: list[Any] = [il.Call("call_1", "write", inside), il.Call("call_2", "get_weather", '{"days": 3, "city": ""}')]
    written = [get_dialect(name).sample]
    for reply in (il.Reply(parts=parts), il.Reply(parts=parts[1:]), il.Reply(parts=parts[:1])):
        try:
            written.append(il.render(reply, name))
        except RenderError:
            continue
    return written


MARKERS = {name: _markers_of(name) for name in NAMES}
WRITTEN: dict[str, list[str]] = {}
for _name in NAMES:
    WRITTEN[_name] = _genuine_replies(_name)


def _prefill(name: str, chooser: ByteChooser) -> str:
    choice = chooser.below(8)
    thinking = get_dialect(name).thinking
    if choice == 0 and thinking:
        return thinking[chooser.below(len(thinking))].open
    if choice == 1:
        marker = chooser.pick(MARKERS[name])
        return marker[: chooser.below(len(marker) + 1)]
    if choice == 2:
        return _slice(chooser.pick(WRITTEN[name]), chooser, from_start=True)
    return ""


def fragment(name: str, chooser: ByteChooser) -> str:
    """Return the next fragment of a text: a marker, a scrap, or a part of a genuine reply."""
    choice = chooser.below(16)
    if choice < 4:
        return chooser.pick(MARKERS[name])
    if choice < 8:
        return chooser.pick(SCRAPS)
    if choice < 9:
        return chooser.pick(WORDS)
    if choice < 10:
        marker = chooser.pick(MARKERS[name])
        return marker[: chooser.below(len(marker) + 1)]
    if choice < 11:
        return chooser.pick(MARKERS[chooser.pick(NAMES)])
    if choice < 12:
        return chooser.pick(WRITTEN[name])
    return _slice(chooser.pick(WRITTEN[name]), chooser, from_start=choice < 14)


def _slice(text: str, chooser: ByteChooser, from_start: bool) -> str:
    at = 0 if from_start else chooser.below(len(text) + 1)
    return text[at : at + chooser.below(len(text) + 1 - at)]


# ── checks ──────────────────────────────────────────────────────────────────────────────────────────────────


def check_cuts(row: Row) -> None:
    for how, pieces in (("per character", list(row.text)), ("as cut", row.pieces)):
        _expect_same("result does not depend on cuts", how, row.read(pieces), row.whole_reply)


def check_two_channels(row: Row) -> None:
    if row.cuts:
        whole, cut = row.read_on_two_channels(MAX_TEXT_CHARS * 2), row.read_on_two_channels(1)
        _expect_same("result does not depend on cuts, on two channels", "per character", cut, whole)


def check_no_special_tokens(row: Row) -> None:
    dialect = get_dialect(row.dialect)
    if not dialect.special_tokens or _created_by_removal(row.prefill + row.text, dialect):
        return
    if row.offer == [] or any(delimiter in row.prefill + row.text for delimiter in ("`", "~~~")):
        return  # a text without tools is not changed, and neither are quotes in code
    for part in row.whole_reply.parts:
        if not isinstance(part, il.Call) and (found := compile_markers(*dialect.tokens).search(part.text, 0)):
            raise BrokenPromise("no special token is sent as text", found.group(), f"part: {part!r}")


def _created_by_removal(text: str, dialect: il.Dialect) -> bool:
    """True if removing a marker creates another marker. A stream cannot take back the first half of it."""
    return compile_markers(*dialect.markers).remove_from(text) != re.sub(
        "|".join(map(re.escape, dialect.markers)), "", text
    )


def check_nothing_lost(row: Row) -> None:
    reply = row.whole_reply
    if reply.findings:
        return
    calls = "".join(call.id + call.name + call.arguments for call in reply.calls)
    for word in WORDS:
        missing = row.text.count(word) - (reply.text + "\n" + reply.reasoning + "\n" + calls).count(word)
        if missing > 0:
            raise BrokenPromise("nothing is lost without a finding", "lost word", f"{word!r} is not in {reply!r}")


def check_render(row: Row) -> None:
    with suppress(RenderError):
        il.render(row.whole_reply, row.dialect)


CHECKS: list[Callable[[Row], None]] = [
    check_cuts,
    check_no_special_tokens,
    check_nothing_lost,
    check_render,
    check_two_channels,
]


def _expect_same(promise: str, how: str, got: il.Reply, whole: il.Reply) -> None:
    if got != whole:
        raise BrokenPromise(
            promise, _difference(got, whole), f"whole:  {_format_reply(whole)}\n{how}:  {_format_reply(got)}"
        )


def _difference(got: il.Reply, whole: il.Reply) -> str:
    """Describe the first difference of two replies, precisely enough to distinguish defects."""
    for field in ("parts", "findings"):
        ours, theirs = getattr(got, field), getattr(whole, field)
        for n in range(max(len(ours), len(theirs))):
            a, b = (_kind(items[n]) if n < len(items) else "nothing" for items in (ours, theirs))
            if a != b:
                return f"{field}: {a}, not {b}"
            if ours[n] != theirs[n]:
                return f"{field}: another {a}"
    return "stop reason"


def _kind(item: object) -> str:
    return item.kind if isinstance(item, ev.Finding) else type(item).__name__


def _format_reply(reply: il.Reply) -> str:
    findings = [f"{finding.kind} at {finding.place.removeprefix('character ')}" for finding in reply.findings]
    parts = ", ".join(map(repr, reply.parts))
    return f"[{parts}] stop={reply.stop_reason} findings={findings}"


if __name__ == "__main__":
    sys.exit(Fuzzer(__doc__, Row.from_bytes, CHECKS).main())
