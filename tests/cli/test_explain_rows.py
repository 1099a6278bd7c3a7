"""Rows that `translate --explain` selects, and `interlingua explain`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from interlingua import events as ev
from interlingua import trace
from interlingua.cli import main
from interlingua.cli.common.two_columns import ColumnLine, ColumnRow
from interlingua.cli.translate.chunk_runs import forwarded_part, held_back_part, rewritten_part
from interlingua.cli.translate.row_selection import ExplainedRow, RowSelection, RowSelector
from interlingua.core.finding_severity import Severity
from interlingua.core.findings import FINDING_KINDS
from tests.cli.test_explain import stream
from tests.support.paths import ROOT


def row_of(number: int, *right: str) -> ColumnRow:
    return ColumnRow(str(number), [ColumnLine(f"chunk {number}")], [ColumnLine(text) for text in right])


def unchanged(number: int, **fields: str | int) -> ExplainedRow:
    row = row_of(number, "unchanged, byte for byte")
    return ExplainedRow(row, is_unchanged=True, run_part=forwarded_part(row, fields))


def changed(number: int, severity: Severity | None = None) -> ExplainedRow:
    return ExplainedRow(row_of(number), severity=severity)


def rewritten(number: int, text: str, index: int = 0) -> ExplainedRow:
    """Return a chunk whose text is forwarded to a client of Messages."""
    frame = {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": text}}
    row = row_of(number, "frame", "text forwarded")
    return ExplainedRow(row, run_part=rewritten_part(row, {"content": text}, frame, ev.TextDelta(text)))


def held_back(number: int, text: str, so_far: str, reason: trace.HoldReason = "marker") -> ExplainedRow:
    row = row_of(number, f"buffered: {so_far}")
    event = trace.HeldBack(number, 0, trace.Channel.TEXT, so_far, reason)
    return ExplainedRow(row, run_part=held_back_part(row, {"content": text}, event))


TEXT = [unchanged(number, content=f"{number},") for number in range(1, 6)]
ROWS: dict[str, tuple[list[ExplainedRow], list[tuple[str, str]]]] = {
    "run of texts": ([*TEXT, changed(6)], [("1", '… to 5: {"content":"1,2,3,4,5,"}'), ("6", "chunk 6")]),
    "run at the end": ([changed(1), *TEXT[1:]], [("1", "chunk 1"), ("2", '… to 5: {"content":"2,3,4,5,"}')]),
    "too short for a run": (TEXT[:2], [("1", "chunk 1"), ("2", "chunk 2")]),
    "fields of different names": (
        [unchanged(1, a="x"), unchanged(2, b="y"), unchanged(3, a="z")],
        [("1", "chunk 1"), ("2", "chunk 2"), ("3", "chunk 3")],
    ),
    "the end of the text": (
        [*TEXT[:3], unchanged(4, stop="x")],
        [("1", '… to 3: {"content":"1,2,3,"}'), ("4", "chunk 4")],
    ),
    "fields that are no text": ([unchanged(n, tokens=n) for n in (1, 2, 3)], [("1", "… to 3: 3 chunks")]),
    "two runs": (
        [*TEXT[:3], changed(4), *(unchanged(n, content="x") for n in (5, 6, 7))],
        [("1", '… to 3: {"content":"1,2,3,"}'), ("4", "chunk 4"), ("5", '… to 7: {"content":"xxx"}')],
    ),
}


def select(
    rows: list[ExplainedRow], only: RowSelection | None = None, *, is_collapsed: bool = True
) -> list[tuple[str, str]]:
    selector = RowSelector(only, is_collapsed=is_collapsed)
    selected = [row for explained in rows for row in selector.feed(explained)] + selector.flush()
    return [(row.number, row.left[0].text) for row in selected]


@pytest.mark.parametrize(("rows", "expected"), ROWS.values(), ids=ROWS)
def test_runs_of_unchanged_chunks_are_one_row(rows: list[ExplainedRow], expected: list[tuple[str, str]]) -> None:
    assert select(rows) == expected


def collapsed(*rows: ExplainedRow) -> list[tuple[str, list[str]]]:
    selector = RowSelector(None, is_collapsed=True)
    selected = [row for explained in rows for row in selector.feed(explained)] + selector.flush()
    return [(row.left[0].text, [line.text for line in row.right]) for row in selected]


def test_texts_forwarded_in_frames_of_one_form_are_one_row() -> None:
    """The text of a chunk may occur in it as another value, too: then the chunk has a row of its own."""
    rows = [rewritten(1, "I "), rewritten(2, "will "), rewritten(3, "call."), rewritten(4, "text_delta")]
    assert collapsed(*rows) == [
        (
            '… to 3: {"content":"I will call."}',
            [
                '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"I will call."}}',
                "text forwarded, in 3 frames",
            ],
        ),
        ("chunk 4", ["frame", "text forwarded"]),
    ]
    blocks = [rewritten(1, "a"), rewritten(2, "b"), rewritten(3, "c", 1), rewritten(4, "d", 1)]
    assert [left for left, _ in collapsed(*blocks)] == ["chunk 1", "chunk 2", "chunk 3", "chunk 4"]


def test_texts_held_back_for_one_reason_are_one_row() -> None:
    rows = [held_back(1, "<", "<"), held_back(2, "too", "<too"), held_back(3, "l", "<tool")]
    assert collapsed(*rows, held_back(4, ">", "<tool>", "call")) == [
        ('… to 3: {"content":"<tool"}', ["buffered: <tool"]),
        ("chunk 4", ["buffered: <tool>"]),
    ]


def test_every_chunk_has_a_row_if_asked_for() -> None:
    assert len(select(TEXT, is_collapsed=False)) == 5


@pytest.mark.parametrize(
    ("only", "numbers"),
    [("changes", "2345"), ("findings", "345"), ("warnings", "45"), ("errors", "5")],
)
def test_only_some_rows(only: RowSelection, numbers: str) -> None:
    rows = [unchanged(1), changed(2), changed(3, "info"), changed(4, "warning"), changed(5, "error")]
    assert "".join(number for number, _ in select(rows, only)) == numbers


@pytest.mark.parametrize(("options", "rows"), [(["--only", "findings"], 1), (["--only", "errors"], 0)])
def test_only_findings_of_a_stream(capsys: pytest.CaptureFixture[str], options: list[str], rows: int) -> None:
    assert main(["translate", "--explain", *options, str(ROOT / "examples" / "kimi_stream.sse")]) == 0
    out = capsys.readouterr().out
    assert out.count(" stop-reason: ") == rows
    assert "chunks in" in out, "the summary counts all chunks"


@pytest.mark.parametrize("options", [["--only", "findings"], ["--all-chunks"]])
def test_selection_needs_explain(capsys: pytest.CaptureFixture[str], options: list[str], tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    assert main(["translate", *options, str(tmp_path / "x")]) == 2
    assert capsys.readouterr().err == f"error: {options[0]} needs --explain\nhint: add --explain\n"


# ── interlingua explain ───────────────────────────────────────────────────────────────────────────────────────────────


def test_explanation_of_a_finding(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert main(["explain", "cut-short", "noise"]) == 0
    assert capsys.readouterr().out == (
        "cut-short (error)\n"
        "  a reply that ends inside a call\n"
        "  → the call is marked as incomplete\n"
        "  to do: the client must not run the call; raise the token\n"
        "         limit (`max_tokens`)\n"
        "\n"
        "noise (info)\n"
        "  a token that is not part of a reply, such as an\n"
        "  end-of-turn token\n"
        "  → dropped\n"
    )


def test_list_of_all_findings(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [entry["kind"] for entry in listed] == list(FINDING_KINDS)
    assert main(["explain", "--severity", "error", "--json"]) == 0
    assert {entry["severity"] for entry in json.loads(capsys.readouterr().out)} == {"error"}


def test_unknown_finding(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "bad-argument"]) == 2
    error = "error: no finding is called 'bad-argument'\nhint: did you mean 'bad-arguments'?\n"
    assert capsys.readouterr().err == error


def test_failures_of_a_card_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "no-call"]) == 0
    assert capsys.readouterr().out.startswith("no-call (failure of verify)\n  a call is expected, and there is none\n")
    assert main(["explain", "bad-json", "--json"]) == 0
    assert [entry["severity"] for entry in json.loads(capsys.readouterr().out)] == ["error", "failure of verify"]


def test_unknown_finding_without_a_similar_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "xyzxyz"]) == 2
    assert capsys.readouterr().err == "error: no finding is called 'xyzxyz'\nhint: `interlingua explain` lists all\n"


CUT_CALL = stream(
    "kimi-k2",
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.ls:0<|tool_call_argument_begin|>{",
    finish="length",
)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["translate"], CUT_CALL),
        (["translate", "--explain"], CUT_CALL),
        (["parse", "--dialect", "kimi_k2"], "<|tool_calls_section_begin|><|tool_call_begin|>functions.ls:0{"),
    ],
)
def test_findings_name_the_command_that_explains_them(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], text: str
) -> None:
    (tmp_path / "reply").write_text(text)
    main([*arguments, str(tmp_path / "reply")])
    last_line = capsys.readouterr().err.splitlines()[-1]
    command = re.fullmatch("hint: what to do: `interlingua (explain .*)`", last_line)
    assert command is not None
    assert main(command[1].split()) == 0
    assert "to do: " in capsys.readouterr().out


def test_harmless_findings_have_no_hint(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["translate", str(ROOT / "examples" / "kimi_stream.sse")]) == 0
    assert "hint: " not in capsys.readouterr().err
