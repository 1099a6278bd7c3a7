"""`interlingua dialects check`: recorded texts and what they should be read as → what they are read as, however cut."""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import msgspec

import interlingua as il
from interlingua.cli.common import console as io
from interlingua.cli.common import options
from interlingua.cli.common.two_columns import shorten
from interlingua.errors import BadInput, InterlinguaError

NAME = "check"
HELP = "a dialect on recorded texts, however they are cut"
DESCRIPTION = """\
Reads each line's text whole, one character at a time and cut at random, and
compares the reply with what the line expects. A line is a JSON object:

  {"text": "…", "calls": [{"name": "ls", "arguments": {"path": "/"}}]}

and may also have dialect, tools (as in a request), prefill (what the prompt had
already written of the reply), content and reasoning; what is not there is not
compared. The names generated_text, expected_calls, expected_content,
expected_reasoning and prompt_prefill are understood too. The exit status is 1
if any line is not read as expected."""
EPILOG = """\
examples:
  interlingua dialects check recorded.jsonl --dialect ./my_model.yaml
  interlingua dialects check recorded.jsonl --cuts 500 --seed 7
  interlingua dialects check recorded.jsonl --json | jq 'select(.problems != [])'
"""
ROW_HINT = (
    'a line is {"text": "…", "calls": [{"name": "…", "arguments": {…}}]}; see `interlingua dialects check --help`'
)
PROGRESS_INTERVAL_SECONDS = 2.0
"""After so many seconds, progress is told, and each time again."""
RESULT_LABELS = {True: "right", False: "WRONG", None: "–"}
COLUMN_WIDTHS = (5, 16, 5, 9, 5, 0)
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
    """One line of the file."""

    text: str
    calls: list[_ExpectedCall]
    dialect: str | None = None
    tools: list[dict[str, Any]] | None = None
    prefill: str | None = None
    content: str | None = None
    reasoning: str | None = None
    content_in_text: bool = True
    reasoning_in_text: bool = True
    """Some corpora expect what the text does not hold, and say so."""


class _RowResult(msgspec.Struct, kw_only=True):
    row: int
    dialect: str = ""
    calls_right: bool | None = None
    cut_proof: bool | None = None
    text_right: bool | None = None
    problems: list[str] = []


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dialect", metavar="NAME", help="a name or a file such as ./my.yaml; else each line's own")
    parser.add_argument("--cuts", type=int, default=20, metavar="N", help="cut at random so many times (default: 20)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="for other random cuts (default: 0)")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    options.add_file(parser, "the lines, as JSON")


def run(args: argparse.Namespace) -> None:
    dialect = options.resolve_dialect(args.dialect) if args.dialect else None
    lines = io.read_all(args.file, "lines of JSON").splitlines()
    rows = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if not rows:
        raise BadInput(f"there is no line in {args.file}", ROW_HINT)
    rng = random.Random(args.seed)
    results = _with_progress((_check_row(number, line, dialect, args.cuts, rng) for number, line in rows), len(rows))
    wrong_count = _write_json_lines(results) if args.json else _write_table(results)
    if wrong_count:
        raise BadInput(
            f"{wrong_count} of {len(rows)} not read as expected", "what is wrong stands at the end of each line"
        )
    io.print_stderr(f"{len(rows)} of {len(rows)} right")


# ── one line ──────────────────────────────────────────────────────────────────────────────────────────────────────────


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
        f"cut otherwise ({cut_name}), it is read otherwise: {_format_value(chunks)}"
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
    fields = io.read_json(line, dict[str, Any], "it", ROW_HINT)
    canonical = {
        FIELD_ALIASES.get(name, name): value
        for name, value in fields.items()
        if FIELD_ALIASES.get(name, name) not in fields
    }
    try:
        return msgspec.convert({**fields, **canonical}, _CorpusRow)
    except msgspec.ValidationError as error:
        raise BadInput(f"it cannot be used: {error}", ROW_HINT) from None


def _dialect_of(row: _CorpusRow) -> il.Dialect:
    if row.dialect is None:
        raise BadInput("it names no dialect", "give --dialect NAME")
    return options.resolve_dialect(row.dialect)


def _cut_variants(text: str, cuts: int, rng: random.Random) -> Iterator[tuple[str, list[str]]]:
    yield "per character", list(text)
    for n in range(cuts):
        positions = sorted(rng.choices(range(len(text) + 1), k=rng.randint(1, 12)))
        yield f"random cut {n + 1}", [text[start:end] for start, end in pairwise([0, *positions, len(text)])]


def _parse_chunks(chunks: Iterable[str], dialect: il.Dialect, tools: list[il.Tool] | None, prefill: str) -> il.Reply:
    parser = il.Parser(dialect, tools, prefill)
    return il.fold([event for chunk in chunks for event in parser.feed(chunk)] + parser.close())


def _call_problems(expected: list[_ExpectedCall], actual: list[il.Call], *, typed: bool) -> Iterator[str]:
    if len(expected) != len(actual):
        names = ", ".join(call.name for call in actual) or "none"
        yield f"expected {len(expected)} calls, got {len(actual)}: {names}"
    for number, (expected_call, call) in enumerate(zip(expected, actual, strict=False), 1):
        if expected_call.name != call.name:
            yield f"call {number}: expected the name {expected_call.name!r}, got {call.name!r}"
        elif not call.complete:
            yield f"call {number}: it is cut off: {_format_value(call.arguments)}"
        elif decode_arguments(expected_call.arguments) != decode_arguments(call.arguments):
            equal_as_text = not typed and _stringify_values(expected_call.arguments) == _stringify_values(
                call.arguments
            )
            hint = "; only `tools` in the line would tell its types" if equal_as_text else ""
            expected_text, actual_text = _format_value(expected_call.arguments), _format_value(call.arguments)
            yield f"call {number}: expected the arguments {expected_text}, got {actual_text}{hint}"


def decode_arguments(arguments: dict[str, Any] | str) -> Any:
    """What the arguments say, however they are written."""
    if not isinstance(arguments, str):
        return arguments
    try:
        return msgspec.json.decode(arguments)
    except msgspec.DecodeError:
        return arguments


def _stringify_values(arguments: dict[str, Any] | str) -> Any:
    """The same, with all that is not a text written as one."""
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
    return io.printable(shorten(text, 120))


# ── all of them ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _with_progress(results: Iterable[_RowResult], total: int) -> Iterator[_RowResult]:
    last_report = time.monotonic()
    for done, result in enumerate(results, 1):
        yield result
        if time.monotonic() - last_report > PROGRESS_INTERVAL_SECONDS:
            last_report = time.monotonic()
            io.print_stderr(f"checked {done} of {total}")


def _write_json_lines(results: Iterable[_RowResult]) -> int:
    wrong_count = 0
    for result in results:
        io.write_json_line(result)
        wrong_count += bool(result.problems)
    return wrong_count


def _write_table(results: Iterable[_RowResult]) -> int:
    wrong_count = 0
    io.write(_table_row("  row", "dialect", "calls", "cut-proof", "text", "problems"))
    for result in results:
        labels = (RESULT_LABELS[right] for right in (result.calls_right, result.cut_proof, result.text_right))
        first, *remainder = [io.printable(problem) for problem in result.problems] or [""]
        io.write(_table_row(f"{result.row:5}", result.dialect, *labels, first))
        io.write(b"".join(_table_row("", "", "", "", "", problem) for problem in remainder))
        wrong_count += bool(result.problems)
    return wrong_count


def _table_row(*cells: str) -> bytes:
    aligned = (f"{cell:{width}}" for cell, width in zip(cells, COLUMN_WIDTHS, strict=True))
    return "  ".join(aligned).rstrip().encode() + b"\n"
