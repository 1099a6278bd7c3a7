"""Multiplies each row of a dialect's fixtures: whole, per character, at two-piece cuts, at random cuts, cut off."""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

import interlingua as il
from interlingua import events as ev
from interlingua.core.tools import Offer
from interlingua.dialects.registry import dialect_named
from interlingua.events__order import Order
from interlingua.parsing.markers import TOKENS, markers
from interlingua.parsing.shapes.literals.grammar import Literals
from interlingua.parsing.shapes.literals.pythonic_grammar import Pythonic
from tests.support.paths import DATA

FIXTURES = DATA / "fixtures"
QUOTES = ("'", "''", '"', '""')  # may yet be a long one
ENDS = " \n}]),;"  # may yet end a call whose last quote is missing
MADE = re.compile(r"call_[0-9a-f]{24}|[0-9a-f]{9}")  # nine, where Mistral must take them


class Case(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One row of a fixture file."""

    name: str
    dialect: str = ""
    text: str = ""
    pieces: list[str] = []
    tools: dict[str, list[str] | dict[str, Any]] | list[dict[str, Any]] | None = None
    """Each tool's params: names of strings, or a schema (or just a type) for each. Or tools as a client writes."""
    prefill: str = ""
    parts: list[dict[str, Any]]
    stop: str = "tool_calls"
    findings: list[str] = []

    def __str__(self) -> str:
        return f"{self.dialect}: {self.name}"

    @property
    def whole(self) -> str:
        return self.text or "".join(self.pieces)

    @property
    def offer(self) -> list[dict[str, Any]] | None:
        if not isinstance(self.tools, dict):
            return self.tools
        return [tool(name, params) for name, params in self.tools.items()]


def tool(name: str, params: Iterable[str] | dict[str, Any] = ()) -> dict[str, Any]:
    """A tool as a chat client offers it. Params are strings where nothing else is said."""
    schemas = params if isinstance(params, dict) else dict.fromkeys(params, "string")
    properties = {key: {"type": schema} if isinstance(schema, str) else schema for key, schema in schemas.items()}
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": properties}}}


def cases(dialect: str) -> list[Case]:
    rows = tomllib.loads((FIXTURES / f"{dialect}.toml").read_text(encoding="utf-8"))["case"]
    return [msgspec.convert({"dialect": dialect, **row}, Case) for row in rows]


def cuttings(text: str) -> Iterator[tuple[str, list[str]]]:
    """The text in pieces, in every way that has ever mattered."""
    yield "per character", list(text)
    for at in range(1, len(text)):
        yield f"cut at {at}", [text[:at], text[at:]]
    yield from random_cuttings(text, 10)


def random_cuttings(text: str, count: int) -> Iterator[tuple[str, list[str]]]:
    for seed in range(count):
        dice = random.Random(seed)
        cuts = sorted(dice.choices(range(len(text) + 1), k=dice.randint(2, 12)))
        yield f"random cut {seed}", [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def events(case: Case, pieces: Iterable[str]) -> list[ev.Event]:
    parser = il.Parser(case.dialect, tools=case.offer, prefill=case.prefill)
    return [event for piece in pieces for event in parser.feed(piece)] + parser.close()


def reply(case: Case, pieces: Iterable[str]) -> il.Reply:
    return il.fold(events(case, pieces))


def shown(reply: il.Reply) -> dict[str, Any]:
    """A reply in the words of the fixture file."""
    parts: list[dict[str, Any]] = []
    for part in reply.parts:
        if isinstance(part, il.Call):
            id = "made" if MADE.fullmatch(part.id) else part.id
            row: dict[str, Any] = {"call": part.name, "id": id, "args": part.arguments}
            parts.append(row if part.complete else {**row, "complete": False})
        else:
            parts.append({type(part).__name__.lower(): part.text})
    return {"parts": parts, "stop": reply.stop_reason, "findings": [finding.kind for finding in reply.findings]}


def explain(case: Case, how: str, pieces: Iterable[str], got: object, expected: object) -> str:
    """What a failing row prints."""
    return (
        f"\n  row:      {case.name}\n  cut:      {how}: {list(pieces)!r}\n  got:      {got!r}\n  expected: {expected!r}"
    )


def check_whole(case: Case) -> il.Reply:
    """What the row says."""
    expected = {"parts": case.parts, "stop": case.stop, "findings": case.findings}
    whole = reply(case, [case.whole])
    assert shown(whole) == expected, explain(case, "whole", [case.whole], shown(whole), expected)
    return whole


def check(case: Case) -> None:
    """In every cutting the same as whole, findings and all."""
    whole = check_whole(case)
    for how, pieces in [("as it came", case.pieces), *cuttings(case.whole)]:
        if pieces:
            got = reply(case, pieces)
            assert got == whole, explain(case, how, pieces, got, whole)


def structure(case: Case) -> list[str]:
    """The markers that no text may hold. In a dialect of ordinary text, brackets and JSON may be text; and all may,
    where no tool was offered, or where a call is none before it is closed."""
    dialect = dialect_named(case.dialect)
    if dialect.special_tokens:
        return list(dialect.tokens)
    tags = [marker for marker in dialect.markers if any(map(str.isalpha, marker)) and "{" not in marker]
    return [] if case.tools == {} or "no-section" in case.findings else tags


def check_truncations(case: Case) -> None:
    """Cut at any point: no exception, no marker as text, in order, no call that the whole text does not have, streamed
    the same as whole, and at most the last call is incomplete."""
    parts = reply(case, [case.whole]).parts
    finished = [part for part in parts if isinstance(part, il.Call) and part.complete]
    said = "".join(part.text for part in parts if not isinstance(part, il.Call))
    marks = markers(*(marker for marker in structure(case) if marker not in said))
    for end in range(len(case.whole)):
        text = case.whole[:end]
        streamed = reply(case, text)
        got = reply(case, [text])
        where = explain(case, f"truncated at {end}", [text], got, streamed)
        assert got == streamed, where
        for part in got.parts:
            if not isinstance(part, il.Call):
                assert not marks.search(part.text, 0), where
        complete = [call for call in got.calls if call.complete]
        assert len(got.calls) - len(complete) <= 1, where
        assert all(call.complete for call in got.calls[:-1]), where
        for call in complete:
            same = [c for c in finished if (c.name, c.arguments) == (call.name, call.arguments)]
            assert same, where


def may_be_slip(case: Case, waits: str, openers: tuple[str, ...]) -> bool:
    """Whether this would tell, in a string, that a quote or a comma is missing: what ends the call and begins another,
    or the next param."""
    offer = Offer(case.offer)
    words = [*offer.names, *(key for name in offer.names for key in offer.params(name))]
    marks = markers(*dialect_named(case.dialect).markers)
    rest = marks.without(waits).lstrip(ENDS)
    return (
        not rest
        or marks.may_begin(rest, 0)
        or any(word.startswith(rest) or rest.startswith(word) for word in words)
        or any(opener in waits for opener in openers)
    )


def check_streams(case: Case) -> None:
    """Nothing waits that need not. After each character what is held is white space, `null` or a fence, can still
    become a marker, is a special token in a value that it ends if nothing but another follows, is the end of a section
    in a value that it ends if another section follows, or is what follows an opener and is not known to be a call or a
    param yet. In literals it may also be what would end the call, or begin the next param, if the model has forgotten a
    quote or a comma."""
    dialect = dialect_named(case.dialect)
    grammar = dialect.grammar
    literals = isinstance(dialect.shape, Literals | Pythonic)
    openers = (*grammar.openers, *grammar.first_openers(Offer(case.offer))) if grammar else ()
    inner = grammar.inner if grammar else ()
    sections = grammar.strays if grammar and inner else ()
    marks = markers(*dialect.markers, *openers, *inner)
    parser = il.Parser(case.dialect, tools=case.offer, prefill=case.prefill)
    order = Order()
    last = ""
    written = case.prefill + case.whole
    for n, char in enumerate(written):
        last = next((marker for marker in marks.literals if written[: n + 1].endswith(marker)), last)
        if n < len(case.prefill):
            continue
        for event in parser.feed(char):
            order.check(event)
        waits = parser.held.strip().removeprefix("null").lstrip()
        token = next(
            (marker for marker in marks.literals if waits.startswith(marker) and marker.startswith(TOKENS)), ""
        )
        behind_token = waits.removeprefix(token).lstrip()
        in_head = last in (*openers, *sections) or (last in inner and "\n" not in waits[: marks.tail(waits, 0)].strip())
        known = (
            waits in QUOTES
            or marks.may_begin(waits, 0)
            or in_head
            or (token and (not behind_token or marks.may_begin(behind_token, 0)))
            or any(word.startswith(waits) for word in ("null", "```json"))
            or (literals and may_be_slip(case, waits, grammar.openers if grammar else ()))
        )
        assert known, explain(case, f"after {n + 1} characters", [written[: n + 1]], waits, "nothing held")
