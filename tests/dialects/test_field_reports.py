"""Problems with tool calls that users reported: the rows of field_reports.toml, and tests for reports about more than
text."""

from __future__ import annotations

import random
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import msgspec
import pytest

import interlingua as il
from interlingua.dialects.registry import DIALECTS_BY_NAME, get_dialect
from tests.support import chat_scenarios as chat
from tests.support import sdk
from tests.support.budget import sample
from tests.support.cuts import random_pieces, single_units
from tests.support.growth import check_growth
from tests.support.harness import Case, parse_reply, reply_as_row
from tests.support.paths import DATA

NUMBERS = [f"E{number:02}" for number in range(1, 99)]
NOT_A_PARSER = {
    "E20": "a request: the ids in its history have to be the model's own; a test of translate_request",
    "E43": "a request: arguments in its history that are no JSON; a test of translate_request",
    "E84": "the Anthropic wire: one content block for each call; a test of its emitter",
    "E85": "the Anthropic wire: tool_use only with a block of that kind; a test of its emitter",
}
"""Reports without a row or test in this file: the reason, and the place of their test."""


class Row(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One report in one dialect."""

    report: str
    dialect: str
    why: str
    text: str
    parts: list[dict[str, Any]]
    tools: dict[str, Any] | None = None
    prefill: str = ""
    stop: str = "tool_calls"
    findings: list[str] | None = None
    without: list[str] = []

    @property
    def case(self) -> Case:
        tools, prefill = self.tools, self.prefill
        return Case(name=self.why, dialect=self.dialect, text=self.text, tools=tools, prefill=prefill, parts=self.parts)


def read_rows() -> list[Row]:
    path = DATA / "field_reports.toml"
    return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8"))["row"], list[Row])


def row_ids(rows: list[Row]) -> Iterator[str]:
    """Yield a unique id per row: `E08-hermes`, `E08-hermes-2`, …"""
    counts: Counter[str] = Counter()
    for row in rows:
        name = f"{row.report}-{row.dialect}"
        counts[name] += 1
        yield name if counts[name] == 1 else f"{name}-{counts[name]}"


ROWS = read_rows()
each_row = pytest.mark.parametrize("row", ROWS, ids=list(row_ids(ROWS)))
each_dialect = pytest.mark.parametrize("dialect", [d for d in il.dialects() if d.shape], ids=lambda d: d.name)


# ── rows ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def part_matches(expected: dict[str, Any], part: dict[str, Any]) -> bool:
    """Return whether a part matches a row. Fields of a call that are not in the row are ignored."""
    if "call" in expected:
        return {"complete": True, **part} == {"complete": True, **part, **expected}
    for kind in ("text", "reasoning"):
        if f"{kind}_with" in expected:
            return str(expected[f"{kind}_with"]) in part.get(kind, "")
    return part == expected


def parts_match(expected: Sequence[dict[str, Any]], parts: Sequence[dict[str, Any]]) -> bool:
    if not expected:
        return not parts
    if "anything" in expected[0]:
        return any(parts_match(expected[1:], parts[skipped:]) for skipped in range(len(parts) + 1))
    return bool(parts) and part_matches(expected[0], parts[0]) and parts_match(expected[1:], parts[1:])


@each_row
def test_report(row: Row) -> None:
    case = row.case
    uncut = parse_reply(case, [row.text])
    got = reply_as_row(uncut)
    report = f"\n  report:   {row.why}\n  text:     {row.text!r}\n  got:      {got}\n  expected: {row.parts} {row.stop}"
    assert parts_match(row.parts, got["parts"]), report
    assert got["stop"] == row.stop, report
    assert row.findings is None or got["findings"] == row.findings, f"{report} {row.findings}"
    assert not [marker for marker in row.without if marker in uncut.text + uncut.reasoning], report
    assert len({call.id for call in uncut.calls}) == len(uncut.calls), report
    for cut in [single_units(row.text), *(random_pieces(row.text, seed) for seed in range(20))]:
        assert parse_reply(case, cut) == uncut, f"{report}\n  cut:      {cut}"


@pytest.mark.one_row_in(4)
@each_row
@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.slow), 5])
def test_report_cut_off_anywhere(row: Row, step: int) -> None:
    case = row.case
    for end in range(0, len(row.text), step):
        parse_reply(case, [row.text[:end]])


def test_every_report_is_covered() -> None:
    tested = {name[5:8].upper() for name in globals() if re.match(r"test_e\d\d_", name)}
    rows = {row.report for row in ROWS}
    assert sorted(rows | tested | set(NOT_A_PARSER)) == NUMBERS
    assert not (rows | tested) & set(NOT_A_PARSER)


def test_every_dialect_is_covered() -> None:
    assert {row.dialect for row in ROWS} <= set(DIALECTS_BY_NAME)


# ── on the wire ───────────────────────────────────────────────────────────────────────────────────────────────────

KIMI_CALL = ("functions.get_weather:0", "get_weather", '{"city": "Paris"}')


def first_choice(stream: bytes, **options: Any) -> sdk.ChoiceView:
    """Return the first choice as a strict client parses it."""
    translator = il.Translator(**options)
    return sdk.read_strict(translator.feed(stream) + translator.close()).choices[0]


def sent_calls(stream: bytes) -> list[dict[str, Any]]:
    """Return all entries of tool_calls in the output."""
    translator = il.Translator()
    frames = sdk.frames(translator.feed(stream) + translator.close())
    deltas = [choice["delta"] for frame in frames for choice in frame["choices"]]
    return [entry for delta in deltas for entry in delta.get("tool_calls") or ()]


def test_e19_model_call_counter_is_not_used_as_index() -> None:
    section = chat.SECTION + chat.kimi_call("functions.a:7", "{}") + chat.kimi_call("functions.b:8", "{}") + chat.CLOSE
    entries = [entry for entry in sent_calls(chat.text_stream([section])) if "id" in entry]
    assert [(entry["index"], entry["id"]) for entry in entries] == [(0, "functions.a:7"), (1, "functions.b:8")]


@pytest.mark.parametrize("dialect", ["kimi_k3", "hermes", "qwen3_coder"])
def test_e21_generated_ids_are_unique_across_turns(dialect: str) -> None:
    text = chat.choice({"role": "assistant", "content": get_dialect(dialect).sample}, "stop")
    turns = [chat.sse({**chat.chunk(text), "id": f"gen-{turn}"}) for turn in range(3)]
    ids = [id for turn in turns for id, _, _ in first_choice(turn, dialect=dialect).calls]
    assert len(set(ids)) == len(ids) >= 6


@pytest.mark.parametrize("finish", ["length", "tool_calls", "stop"])
def test_e42_truncated_call_is_not_reported_as_finished(finish: str) -> None:
    native = chat.text_stream([chat.SECTION + chat.CALL + "functions.f:0" + chat.ARGS + '{"a": "lo'], finish=finish)
    structured = chat.call_stream([chat.call_start("f", '{"a": "lo')], finish=finish)
    assert first_choice(native).finish == first_choice(structured).finish == "length"


@pytest.mark.parametrize(
    "stream", [chat.text_stream([chat.SECTION_OF_PARIS]), chat.call_stream([chat.call_start("f", '{"a": 1}')])]
)
def test_e73_first_delta_of_a_call_has_all_required_fields(stream: bytes) -> None:
    first, *other_deltas = sent_calls(stream)
    assert first.keys() == {"index", "id", "type", "function"}
    assert first["type"] == "function"
    assert all(
        isinstance(value, str) for value in (first["id"], first["function"]["name"], first["function"]["arguments"])
    )
    assert not [entry for entry in other_deltas if "id" in entry or "name" in entry["function"]]


@pytest.mark.parametrize("finish", ["stop", "eos", "", None])
def test_e74_finish_reason_with_calls(finish: str | None) -> None:
    assert first_choice(chat.text_stream([chat.SECTION_OF_PARIS], finish=finish)).finish == "tool_calls"
    assert first_choice(chat.call_stream([chat.call_start("f", '{"a": 1}')], finish=finish)).finish == "tool_calls"


def test_e75_finish_reason_without_calls() -> None:
    assert first_choice(chat.text_stream(["Done."], finish="tool_calls")).finish == "stop"
    assert first_choice(chat.call_stream({"content": "Done."}, finish="tool_calls")).finish == "stop"


def test_e82_utf8_characters_split_between_chunks() -> None:
    text = "São 東京 🚀 " + chat.SECTION + chat.kimi_call("functions.f:0", '{"a": "🚀東"}') + chat.CLOSE
    stream = chat.text_stream([text]).replace(b"\\ud83d\\ude80", "🚀".encode())
    translator = il.Translator()
    out = b"".join([translator.feed(byte) for byte in single_units(stream)] + [translator.close()])
    content = sdk.read_strict(out).choices[0]
    assert (content.text, content.calls) == ("São 東京 🚀 ", [("functions.f:0", "f", '{"a": "🚀東"}')])


def test_e91_choices_share_no_state() -> None:
    texts = [chat.SECTION_OF_PARIS, f"One: {chat.SECTION_OF_PARIS} Two.", "<think>Hm.</think>Three."]
    dice = random.Random(91)
    deltas = [[chat.choice({"content": piece}, index=n) for piece in text] for n, text in enumerate(texts)]
    chunks = []
    while any(deltas):
        chunks.append(chat.chunk(dice.choice([waiting for waiting in deltas if waiting]).pop(0)))
    ends = [chat.chunk(chat.choice({}, "stop", index=n)) for n in range(3)]
    assert sdk.read_strict(il.Translator().feed(chat.sse(*chunks, *ends))).choices == {
        0: sdk.ChoiceView(calls=[KIMI_CALL], finish="tool_calls"),
        1: sdk.ChoiceView(text="One:  Two.", calls=[KIMI_CALL], finish="tool_calls"),
        2: sdk.ChoiceView(reasoning="Hm.", text="Three.", finish="stop"),
    }


@pytest.mark.parametrize("residue", [chat.END, chat.END + chat.CLOSE, "}" + chat.END, " " + chat.CLOSE + "\n"])
def test_e96_markers_after_structured_arguments(residue: str) -> None:
    stream = chat.call_stream([chat.call_start("f", '{"a"')], [chat.call_delta(": 1}" + residue)], model=chat.KIMI)
    assert first_choice(stream).calls == [("call_1", "f", '{"a": 1}')]


@pytest.mark.parametrize("done", [True, False])
def test_e97_stream_without_finish_reason(done: bool) -> None:
    """Calls that have ended are calls. A stream without [DONE] may be truncated, and the client must be informed."""
    called = chat.text_stream([chat.SECTION_OF_PARIS, " <|tool_ca"], finish=None, done=done)
    assert first_choice(called) == sdk.ChoiceView(
        text=" <|tool_ca", calls=[KIMI_CALL], finish="tool_calls" if done else None
    )
    assert first_choice(chat.text_stream(["Hello <|tool_ca"], finish=None, done=done)).finish == (
        "stop" if done else None
    )


# ── ids ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("dialect", ["mistral_v3", "mistral_v11", "mistral_v13"])
def test_e65_mistral_ids_have_nine_letters_and_digits(dialect: str) -> None:
    calls = il.parse(get_dialect(dialect).sample, dialect).calls
    assert calls
    assert not [call.id for call in calls if not re.fullmatch("[A-Za-z0-9]{9}", call.id)]


# ── time ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def in_pieces(text: str, dialect: il.Dialect) -> il.Reply:
    parser = il.Parser(dialect)
    events = [event for at in range(0, len(text), 16) for event in parser.feed(text[at : at + 16])]
    return il.fold(events + parser.close())


@pytest.mark.one_row_in(5)
@each_dialect
def test_e89_time_per_piece_is_constant_for_long_arguments(dialect: il.Dialect) -> None:
    short, long = (dialect.sample.replace("Paris", "x" * size) for size in (8_000, 64_000))
    assert "x" * 64_000 in "".join(call.arguments for call in in_pieces(long, dialect).calls)
    check_growth(partial(in_pieces, dialect=dialect), short, long, limit=24)


@pytest.mark.one_row_in(5)
@pytest.mark.sampled
@each_dialect
def test_e90_no_text_makes_the_parser_backtrack(dialect: il.Dialect) -> None:
    grammar = dialect.grammar
    assert grammar
    every = (*dialect.markers, *grammar.inner_markers)
    halves = "".join(marker[:-1] for marker in every)
    units = ["".join(every), halves, *grammar.openers[:1], "<", '{"a":[', '{"name": "', '\\"']
    for unit in sample(units, 3):
        short = unit * (4_000 // len(unit) + 1)
        check_growth(partial(in_pieces, dialect=dialect), short, short * 8, limit=24)


@each_dialect
def test_e98_second_parser_compiles_no_patterns(dialect: il.Dialect, monkeypatch: pytest.MonkeyPatch) -> None:
    il.parse(dialect.sample, dialect)
    monkeypatch.setattr(re, "compile", None)
    assert il.parse(dialect.sample, dialect).calls
