"""`interlingua dialects check`: parse recorded texts and compare the result with the expected replies."""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import msgspec

import interlingua as il
from interlingua.cli.common import console, options
from interlingua.common.short_text import shorten
from interlingua.errors import BadInput, InterlinguaError

DESCRIPTION = """\
Parses the text of each line as a whole, one character at a time, and split at
random positions, and compares each reply with the expected one. A line is a
JSON object:

  {"text": "…", "calls": [{"name": "ls", "arguments": {"path": "/"}}]}

Optional fields: dialect, tools (as in a request), prefill (the beginning of the
reply that the prompt already contains), content (the expected text) and
reasoning. Fields that are missing are not compared. The names generated_text,
expected_calls, expected_content, expected_reasoning and prompt_prefill are
accepted too.

The exit status is 1 if any reply differs from the expected one."""
EPILOG = """\
examples:
  interlingua dialects check recorded.jsonl --dialect ./my_model.yaml
  interlingua dialects check recorded.jsonl --cuts 500 --seed 7
  interlingua dialects check recorded.jsonl --json | jq .problems
"""
ROW_HINT = (
    'a line is {"text": "…", "calls": [{"name": "…", "arguments": {…}}]}; see `interlingua dialects check --help`'
)
PROGRESS_INTERVAL_SECONDS = 2.0
"""Time between two progress messages."""
RESULT_LABELS = {True: "right", False: "WRONG", None: "–"}
COLUMN_WIDTHS = (5, 16, 5, 9, 5, 0)
PROBLEM_INDENT = " " * 7
FIELD_ALIASES = {
    "generated_text": "text",
    "expected_calls": "calls",
    "expected_content": "content",
    "expected_reasoning": "reasoning",
    "prompt_prefill": "prefill",
}


class _ExpectedCall(msgspec.Struct):
    name: str
    arguments: dict[str, Any] | str = {}


class _CorpusRow(msgspec.Struct, kw_only=True):
    """One line of the input."""

    text: str
    calls: list[_ExpectedCall]
    dialect: str | None = None
    tools: list[dict[str, Any]] | None = None
    prefill: str | None = None
    content: str | None = None
    reasoning: str | None = None
    content_in_text: bool = True
    reasoning_in_text: bool = True
    """False in corpora whose expected content or reasoning is not part of the text; then it is not compared."""


class _RowResult(msgspec.Struct, kw_only=True):
    row: int
    dialect: str = ""
    calls_right: bool | None = None
    cut_proof: bool | None = None
    text_right: bool | None = None
    problems: list[str] = []


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--dialect",
        metavar="NAME",
        help="a name, or a file such as ./my.yaml; default: the dialect that each line names",
    )
    parser.add_argument(
        "--cuts", type=int, default=20, metavar="N", help="number of random splits of each text (default: 20)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the random splits (default: 0)")
    parser.add_argument("--json", action="store_true", help="print one JSON object per line")
    options.add_file(parser, "JSON Lines file")


def run(args: argparse.Namespace) -> None:
    dialect = options.resolve_dialect(args.dialect) if args.dialect else None
    lines = console.read_all(args.file, "lines of JSON").splitlines()
    rows = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if not rows:
        raise BadInput(f"{args.file} has no lines", ROW_HINT)
    rng = random.Random(args.seed)
    results = _with_progress((_check_row(number, line, dialect, args.cuts, rng) for number, line in rows), len(rows))
    wrong_count = _write_json_lines(results) if args.json else _write_table(results)
    if wrong_count:
        raise BadInput(
            f"{wrong_count} of {len(rows)} lines are not parsed as expected",
            "the column 'problems' describes the differences",
        )
    console.print_stderr(f"{len(rows)} of {len(rows)} right")


# ── check of one line ─────────────────────────────────────────────────────────────────────────────────────────────────


def _check_row(number: int, line: bytes, dialect: il.Dialect | None, cuts: int, rng: random.Random) -> _RowResult:
    try:
        row = _read_row(line)
        dialect = dialect or _dialect_of(row)
        tools = None if row.tools is None else [il.Tool.read(tool) for tool in row.tools]
    except InterlinguaError as error:
        return _RowResult(row=number, problems=[f"{error} ({error.hint})" if error.hint else str(error)])
    prefill = row.prefill or ""
    reply = il.parse(row.text, dialect, tools, prefill)
    call_problems = list(_call_problems(row.calls, reply.calls, typed=tools is not None))
    text_problems = list(_text_problems(row, reply))
    cut_problems = [
        f"the result differs if the text is split ({cut_name}): {_format_value(chunks)}"
        for cut_name, chunks in _cut_variants(row.text, cuts, rng)
        if _parse_chunks(chunks, dialect, tools, prefill) != reply
    ]
    return _RowResult(
        row=number,
        dialect=dialect.name,
        calls_right=not call_problems,
        cut_proof=not cut_problems,
        text_right=not text_problems,
        problems=call_problems + text_problems + cut_problems[:1],
    )


def _read_row(line: bytes) -> _CorpusRow:
    fields = console.read_json(line, dict[str, Any], "the line", ROW_HINT)
    canonical = {
        FIELD_ALIASES.get(name, name): value
        for name, value in fields.items()
        if FIELD_ALIASES.get(name, name) not in fields
    }
    try:
        return msgspec.convert({**fields, **canonical}, _CorpusRow)
    except msgspec.ValidationError as error:
        raise BadInput(f"the line cannot be used: {error}", ROW_HINT) from None


def _dialect_of(row: _CorpusRow) -> il.Dialect:
    if row.dialect is None:
        raise BadInput("the line names no dialect", "add --dialect NAME")
    return options.resolve_dialect(row.dialect)


def _cut_variants(text: str, cuts: int, rng: random.Random) -> Iterator[tuple[str, list[str]]]:
    yield "one character at a time", list(text)
    for n in range(cuts):
        positions = sorted(rng.choices(range(len(text) + 1), k=rng.randint(1, 12)))
        yield f"random split {n + 1}", [text[start:end] for start, end in pairwise([0, *positions, len(text)])]


def _parse_chunks(chunks: Iterable[str], dialect: il.Dialect, tools: list[il.Tool] | None, prefill: str) -> il.Reply:
    parser = il.Parser(dialect, tools, prefill)
    return il.fold([event for chunk in chunks for event in parser.feed(chunk)] + parser.close())


def _call_problems(expected: list[_ExpectedCall], actual: list[il.Call], *, typed: bool) -> Iterator[str]:
    if len(expected) != len(actual):
        names = ", ".join(call.name for call in actual)
        calls = "1 call" if len(expected) == 1 else f"{len(expected)} calls"
        yield f"expected {calls}, got {len(actual)}: {names}" if actual else f"expected {calls}, got none"
    for number, (expected_call, call) in enumerate(zip(expected, actual, strict=False), 1):
        if expected_call.name != call.name:
            yield f"call {number}: expected the name {expected_call.name!r}, got {call.name!r}"
        elif not call.complete:
            yield f"call {number}: incomplete: {_format_value(call.arguments)}"
        elif decode_arguments(expected_call.arguments) != decode_arguments(call.arguments):
            equal_as_text = not typed and _stringify_values(expected_call.arguments) == _stringify_values(
                call.arguments
            )
            hint = (
                "; add `tools` to the line: without it, the types of the arguments are unknown" if equal_as_text else ""
            )
            expected_text, actual_text = _format_value(expected_call.arguments), _format_value(call.arguments)
            yield f"call {number}: expected the arguments {expected_text}, got {actual_text}{hint}"


def decode_arguments(arguments: dict[str, Any] | str) -> Any:
    """Decode arguments that are JSON text. Invalid JSON is returned unchanged."""
    if not isinstance(arguments, str):
        return arguments
    try:
        return msgspec.json.decode(arguments)
    except msgspec.DecodeError:
        return arguments


def _stringify_values(arguments: dict[str, Any] | str) -> Any:
    """Decode the arguments and convert all values that are not strings to JSON text."""
    value = decode_arguments(arguments)
    if not isinstance(value, dict):
        return value
    return {key: item if isinstance(item, str) else msgspec.json.encode(item).decode() for key, item in value.items()}


def _text_problems(row: _CorpusRow, reply: il.Reply) -> Iterator[str]:
    content = row.content if row.content_in_text else None
    reasoning = row.reasoning if row.reasoning_in_text else None
    for field, expected, actual in (("text", content, reply.text), ("reasoning", reasoning, reply.reasoning)):
        if expected is not None and expected != actual:
            yield f"expected the {field} {_format_value(expected)}, got {_format_value(actual)}"


def _format_value(value: Any) -> str:
    text = value if isinstance(value, str) and value.startswith("{") else msgspec.json.encode(value).decode()
    return console.printable(shorten(text, 120))


# ── output ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _with_progress(results: Iterable[_RowResult], total: int) -> Iterator[_RowResult]:
    last_report = time.monotonic()
    for done, result in enumerate(results, 1):
        yield result
        if time.monotonic() - last_report > PROGRESS_INTERVAL_SECONDS:
            last_report = time.monotonic()
            console.print_stderr(f"checked {done} of {total}")


def _write_json_lines(results: Iterable[_RowResult]) -> int:
    wrong_count = 0
    for result in results:
        console.write_json_line(result)
        wrong_count += bool(result.problems)
    return wrong_count


def _write_table(results: Iterable[_RowResult]) -> int:
    wrong_count = 0
    console.write(_table_row("  row", "dialect", "calls", "cut-proof", "text", "problems"))
    for result in results:
        labels = (RESULT_LABELS[right] for right in (result.calls_right, result.cut_proof, result.text_right))
        problems = [console.printable(problem) for problem in result.problems]
        if console.stdout_is_terminal():  # the column would be too narrow
            console.write(_table_row(f"{result.row:5}", result.dialect, *labels, ""))
            console.write_lines(f"{PROBLEM_INDENT}{problem}" for problem in problems)
        else:
            first, *remainder = problems or [""]
            console.write(_table_row(f"{result.row:5}", result.dialect, *labels, first))
            console.write(b"".join(_table_row("", "", "", "", "", problem) for problem in remainder))
        wrong_count += bool(result.problems)
    return wrong_count


def _table_row(*cells: str) -> bytes:
    aligned = (f"{cell:{width}}" for cell, width in zip(cells, COLUMN_WIDTHS, strict=True))
    return "  ".join(aligned).rstrip().encode() + b"\n"
