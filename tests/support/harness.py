"""Checks for each row of a dialect's fixtures: whole, per character, two-piece cuts, random cuts, truncations."""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

import interlingua as il
from interlingua import events as ev
from interlingua.core.tools import ToolSet
from interlingua.dialects.registry import get_dialect
from interlingua.events import EventOrder
from interlingua.parsing.markers import SPECIAL_TOKEN_PREFIXES, compile_markers
from interlingua.parsing.shapes.framed_json.grammar import FramedJson
from interlingua.parsing.shapes.json_envelope.grammar import INLINE_CALL_STARTS, JsonEnvelope
from interlingua.parsing.shapes.line_params.grammar import LineParams
from interlingua.parsing.shapes.literals.grammar import Literals
from interlingua.parsing.shapes.literals.pythonic_grammar import Pythonic
from interlingua.parsing.shapes.tagged_params.grammar import TaggedParams
from interlingua.parsing.suffixes import add_suffix, suffixed_tags
from tests.support.paths import DATA

FIXTURES = DATA / "fixtures"
USER_DIALECTS = {path.stem: il.load_dialect(path) for path in sorted((DATA / "dialects").glob("*.yaml"))}
"""Dialects of users, for the shapes that no built-in dialect has."""
QUOTES = ("'", "''", '"', '""')  # may become a longer quote
POSSIBLE_CALL_ENDS = " \n}]),;"  # may end a call whose last quote is missing
GENERATED_ID = re.compile(r"call_[0-9a-f]{24}|[0-9a-f]{9}")  # nine characters for Mistral


class Case(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One row of a fixture file."""

    name: str
    dialect: str = ""
    text: str = ""
    pieces: list[str] = []
    tools: dict[str, list[str] | dict[str, Any]] | list[dict[str, Any]] | None = None
    """Params of each tool: names of string params, or a schema or type for each. Or tools as in a request."""
    prefill: str = ""
    parts: list[dict[str, Any]]
    stop: str = "tool_calls"
    findings: list[str] = []

    def __str__(self) -> str:
        return f"{self.dialect}: {self.name}"

    @property
    def full_text(self) -> str:
        return self.text or "".join(self.pieces)

    @property
    def offered_tools(self) -> list[dict[str, Any]] | None:
        if not isinstance(self.tools, dict):
            return self.tools
        return [tool(name, params) for name, params in self.tools.items()]


def tool(name: str, params: Iterable[str] | dict[str, Any] = ()) -> dict[str, Any]:
    """Return a tool in the format of Chat Completions. Params are strings by default."""
    schemas = params if isinstance(params, dict) else dict.fromkeys(params, "string")
    properties = {key: {"type": schema} if isinstance(schema, str) else schema for key, schema in schemas.items()}
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": properties}}}


def find_dialect(name: str) -> il.Dialect:
    return USER_DIALECTS.get(name) or get_dialect(name)


def load_cases(dialect: str) -> list[Case]:
    rows = tomllib.loads((FIXTURES / f"{dialect}.toml").read_text(encoding="utf-8"))["case"]
    return [msgspec.convert({"dialect": dialect, **row}, Case) for row in rows]


def cut_variants(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield a name and the pieces for each way to cut the text."""
    yield "per character", list(text)
    for position in range(1, len(text)):
        yield f"cut at {position}", [text[:position], text[position:]]
    yield from random_cut_variants(text, 10)


def random_cut_variants(text: str, count: int) -> Iterator[tuple[str, list[str]]]:
    for seed in range(count):
        rng = random.Random(seed)
        cuts = sorted(rng.choices(range(len(text) + 1), k=rng.randint(2, 12)))
        yield f"random cut {seed}", [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def parse_events(case: Case, pieces: Iterable[str]) -> list[ev.Event]:
    parser = il.Parser(find_dialect(case.dialect), tools=case.offered_tools, prefill=case.prefill)
    events = [event for piece in pieces for event in parser.feed(piece)] + parser.close()
    assert not any(map(is_empty_delta, events)), f"{case.name}: an empty delta in {events}"
    return events


def is_empty_delta(event: ev.Event) -> bool:
    match event:
        case ev.TextDelta() | ev.ReasoningDelta():
            return not event.text
        case ev.ArgsDelta():
            return not event.text and not event.runaway
        case _:
            return False


def parse_reply(case: Case, pieces: Iterable[str]) -> il.Reply:
    return il.fold(parse_events(case, pieces))


def reply_as_row(reply: il.Reply) -> dict[str, Any]:
    """Return a reply in the format of the fixture file."""
    parts: list[dict[str, Any]] = []
    for part in reply.parts:
        if isinstance(part, il.Call):
            id = "made" if GENERATED_ID.fullmatch(part.id) else part.id
            row: dict[str, Any] = {"call": part.name, "id": id, "args": part.arguments}
            parts.append(row if part.complete else {**row, "complete": False})
        else:
            parts.append({type(part).__name__.lower(): part.text})
    return {"parts": parts, "stop": reply.stop_reason, "findings": [finding.kind for finding in reply.findings]}


def explain(case: Case, cut_name: str, pieces: Iterable[str], actual: object, expected: object) -> str:
    """Return the message of a failing row."""
    cut = f"{cut_name}: {list(pieces)!r}"
    return f"\n  row:      {case.name}\n  cut:      {cut}\n  got:      {actual!r}\n  expected: {expected!r}"


def check_whole(case: Case) -> il.Reply:
    """Assert that the whole text yields the reply of the row."""
    expected = {"parts": case.parts, "stop": case.stop, "findings": case.findings}
    complete_reply = parse_reply(case, [case.full_text])
    assert reply_as_row(complete_reply) == expected, explain(
        case, "whole", [case.full_text], reply_as_row(complete_reply), expected
    )
    return complete_reply


def check_all_cuts(case: Case) -> None:
    """Assert that every cut yields the same reply as the whole text, including findings."""
    complete_reply = check_whole(case)
    for cut_name, pieces in [("as it came", case.pieces), *cut_variants(case.full_text)]:
        if pieces:
            actual = parse_reply(case, pieces)
            assert actual == complete_reply, explain(case, cut_name, pieces, actual, complete_reply)


def forbidden_markers(case: Case) -> list[str]:
    """Return the markers that must not appear in text.

    In a dialect without special tokens, brackets and JSON may be text. All markers may be text if no tool was offered,
    or if a call counts only once it is closed.
    """
    dialect = find_dialect(case.dialect)
    if dialect.special_tokens:
        return list(dialect.tokens)
    tags = [marker for marker in dialect.markers if any(map(str.isalpha, marker)) and "{" not in marker]
    return [] if case.tools == {} or "no-section" in case.findings else tags


def check_truncations(case: Case) -> None:
    """Truncate the text at every position and check the reply.

    No exception, no marker as text, no complete call that the whole text does not have, the same reply streamed and
    whole. Only the last call may be incomplete, and those that are incomplete in the whole text. A text that is cut off
    behind the quoted end of a call may be a whole reply of its own.
    """
    parts = parse_reply(case, [case.full_text]).parts
    calls = [part for part in parts if isinstance(part, il.Call)]
    dialect_markers = find_dialect(case.dialect).markers
    finished = [call for call in calls if call.complete]
    plain_text = "".join(part.text for part in parts if not isinstance(part, il.Call))
    marker_set = compile_markers(*(marker for marker in forbidden_markers(case) if marker not in plain_text))
    for end in range(len(case.full_text)):
        text = case.full_text[:end]
        streamed = parse_reply(case, text)
        actual = parse_reply(case, [text])
        explanation = explain(case, f"truncated at {end}", [text], actual, streamed)
        assert actual == streamed, explanation
        for part in actual.parts:
            if not isinstance(part, il.Call):
                assert not marker_set.search(part.text, 0), explanation
        complete = [call for call in actual.calls if call.complete]
        for n, call in enumerate(actual.calls[:-1]):
            assert call.complete or not calls[n].complete, explanation
        if has_quoted_end(text, case, calls) or ends_with_inline_json(text, dialect_markers):
            continue
        for call in complete:
            matches = [c for c in finished if (c.name, c.arguments) == (call.name, call.arguments)]
            assert matches, explanation


def ends_with_inline_json(text: str, dialect_markers: tuple[str, ...]) -> bool:
    """Return whether the text ends with JSON, and JSON behind a sentence may be a call at the end of a reply."""
    return set(INLINE_CALL_STARTS) <= set(dialect_markers) and text.rstrip().endswith(("}", "]"))


def has_quoted_end(text: str, case: Case, calls: list[il.Call]) -> bool:
    """Return whether the text contains the end of a tagged call that a value quotes, or a line with a closer that a
    value may quote."""
    shape = getattr(find_dialect(case.dialect).shape, "body", None) or find_dialect(case.dialect).shape
    if isinstance(shape, LineParams):
        return any(f"\n{closer}" in text for closer in shape.close) and not all(call.complete for call in calls)
    if not isinstance(shape, TaggedParams):
        return False
    ends = (*shape.call.close, *(span.close for span in shape.sections))
    return any(end in text and any(end in call.arguments for call in calls) for end in ends)


def may_be_missing_delimiter(case: Case, buffered: str, openers: tuple[str, ...]) -> bool:
    """Return whether the buffered text may show that a quote or a comma is missing in a string.

    That is text that ends the call and starts another, or that starts the next param.
    """
    tool_set = ToolSet(case.offered_tools)
    words = [*tool_set.names, *(key for name in tool_set.names for key in tool_set.param_names(name))]
    marker_set = compile_markers(*find_dialect(case.dialect).markers)
    remainder = marker_set.remove_from(buffered).lstrip(POSSIBLE_CALL_ENDS)
    return (
        not remainder
        or marker_set.is_partial(remainder, 0)
        or any(word.startswith(remainder) or remainder.startswith(word) for word in words)
        or any(opener in buffered for opener in openers)
    )


def is_end_of_call(buffered: str, dialect: il.Dialect) -> bool:
    """Return whether the text begins with the end of a tagged call, and no value of another one is behind it."""
    shape = getattr(dialect.shape, "body", None) or dialect.shape
    if not isinstance(shape, TaggedParams):
        return False
    ends = (*shape.param.close, *shape.call.close, *(span.close for span in shape.sections))
    if shape.nested:  # the name in the closing tag of the value
        buffered = re.sub(r"\A\w+>", "", buffered)
        return buffered.startswith(ends) or any(end.startswith(buffered) for end in ends)
    # The head of the next param must be complete: a quoted opener may follow the closer.
    heads = [head for opener in shape.param.open for head in buffered.split(opener)[1:]]
    return buffered.startswith(ends) and not any(end in head for head in heads for end in shape.param.end)


def json_closers(dialect: il.Dialect) -> tuple[str, ...]:
    """Return the markers of ordinary text that end a call with JSON arguments."""
    match dialect.shape:
        case JsonEnvelope(close=close, fences=fences):
            return (*close, *fences)
        case FramedJson(close=close, fences=spans):
            return (*close, *(span.close for span in spans))
        case _:
            return ()


def has_text_after_call(written: str, dialect: il.Dialect) -> bool:
    """Return whether text follows a tagged call: it waits until it is known whether the end of the call was quoted."""
    shape = getattr(dialect.shape, "body", None) or dialect.shape
    if not isinstance(shape, TaggedParams):
        return False
    ends = [span.close for span in shape.sections] or shape.call.close
    behind = [rest for end in ends for rest in written.split(end)[1:]]
    markers = compile_markers(*dialect.markers)
    texts = [rest[: rest.find("<") if "<" in rest else None] for rest in map(markers.remove_from, behind)]
    return any(text.strip() for text in texts)


def check_streaming(case: Case) -> None:
    """Assert that the parser buffers no more than necessary.

    After each character the buffered text must be one of:

    - white space, `null` or a code fence;
    - a prefix of a marker, or of a tag with an unknown suffix;
    - special tokens in a value, which end the value only if another special token, or nothing, follows; and the closers
      of a call with JSON arguments, likewise;
    - the end of a section in a value, which ends the value only if another section follows;
    - the end of a call, which a value may quote: it waits for what follows it, and so does text behind it;
    - text after an opener that is not yet known to be a call or a param;
    - in literals: text behind a closing quote, which a string may quote: it waits for what follows it;
    - in literals: text that ends the call or starts the next param if the model omitted a quote or a comma.
    """
    dialect = find_dialect(case.dialect)
    suffixed = tuple(suffixed_tags(dialect).values())
    for suffix in {
        tag.start[-1] + suffix for tag in suffixed for suffix in re.findall(rf"{tag.start}(\w+)>", case.text)
    }:
        dialect = add_suffix(dialect, suffix)
    grammar = dialect.grammar
    has_literals = isinstance(dialect.shape, Literals | Pythonic)
    openers = (*grammar.openers, *grammar.first_openers(ToolSet(case.offered_tools))) if grammar else ()
    inner = grammar.inner_markers if grammar else ()
    closers = json_closers(dialect)
    sections = grammar.strays if grammar and inner else ()
    marker_set = compile_markers(*dialect.markers, *openers, *inner)
    parser = il.Parser(find_dialect(case.dialect), tools=case.offered_tools, prefill=case.prefill)
    order = EventOrder()
    last_marker = ""
    written = case.prefill + case.full_text
    for n, char in enumerate(written):
        last_marker = next((marker for marker in marker_set.literals if written[: n + 1].endswith(marker)), last_marker)
        if n < len(case.prefill):
            continue
        for event in parser.feed(char):
            order.check(event)
        buffered = parser.held.strip().removeprefix("null").lstrip()
        token, after_token = "", buffered
        while match := marker_set.match(after_token, 0):
            if not (match.group().startswith(SPECIAL_TOKEN_PREFIXES) or match.group() in closers):
                break
            token, after_token = match.group(), after_token[match.end() :].lstrip()
        in_header = last_marker in (*openers, *sections) or (
            last_marker in inner and "\n" not in buffered[: marker_set.partial_start(buffered, 0)].strip()
        )
        is_justified = (
            buffered in QUOTES
            or marker_set.is_partial(buffered, 0)
            or any(tag.lookahead.find_word(buffered, 0, tag.max_length, None)[1] for tag in suffixed)
            or in_header
            or (token and (not after_token or marker_set.is_partial(after_token, 0)))
            or any(word.startswith(buffered) for word in ("null", "```json"))
            or is_end_of_call(buffered, dialect)
            or (isinstance(dialect.shape, Literals) and buffered.startswith((",", "}", "]")))
            or has_text_after_call(written[: n + 1], dialect)
            or (has_literals and may_be_missing_delimiter(case, buffered, grammar.openers if grammar else ()))
        )
        assert is_justified, explain(case, f"after {n + 1} characters", [written[: n + 1]], buffered, "nothing held")
