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
PATIENCE = 2.0
"""After so many seconds, progress is told, and each time again."""
MARKS = {True: "right", False: "WRONG", None: "–"}
COLUMNS = (5, 16, 5, 9, 5, 0)
ALIASES = {
    "generated_text": "text",
    "expected_calls": "calls",
    "expected_content": "content",
    "expected_reasoning": "reasoning",
    "prompt_prefill": "prefill",
}


class _Call(msgspec.Struct):
    name: str
    arguments: dict[str, Any] | str = {}


class _Row(msgspec.Struct, kw_only=True):
    """One line of the file."""

    text: str
    calls: list[_Call]
    dialect: str | None = None
    tools: list[dict[str, Any]] | None = None
    prefill: str | None = None
    content: str | None = None
    reasoning: str | None = None
    content_in_text: bool = True
    reasoning_in_text: bool = True
    """Some corpora expect what the text does not hold, and say so."""


class _Result(msgspec.Struct, kw_only=True):
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
    dialect = options.dialect_called(args.dialect) if args.dialect else None
    lines = io.read_all(args.file, "lines of JSON").splitlines()
    rows = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if not rows:
        raise BadInput(f"there is no line in {args.file}", ROW_HINT)
    dice = random.Random(args.seed)
    results = _with_progress((_check(number, line, dialect, args.cuts, dice) for number, line in rows), len(rows))
    wrong = _write_lines(results) if args.json else _write_table(results)
    if wrong:
        raise BadInput(f"{wrong} of {len(rows)} not read as expected", "what is wrong stands at the end of each line")
    io.tell(f"{len(rows)} of {len(rows)} right")


# ── one line ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _check(number: int, line: bytes, dialect: il.Dialect | None, cuts: int, dice: random.Random) -> _Result:
    try:
        row = _read(line)
        dialect = dialect or _dialect_of(row)
        tools = None if row.tools is None else [il.Tool.read(tool) for tool in row.tools]
    except InterlinguaError as error:
        return _Result(row=number, problems=[f"{error} ({error.hint})" if error.hint else str(error)])
    prefill = row.prefill or ""
    reply = il.parse(row.text, dialect, tools, prefill)
    wrong_calls = list(_wrong_calls(row.calls, reply.calls, typed=tools is not None))
    wrong_text = list(_wrong_text(row, reply))
    wrong_cuts = [
        f"cut otherwise ({how}), it is read otherwise: {_told(pieces)}"
        for how, pieces in _cuttings(row.text, cuts, dice)
        if _parse_pieces(pieces, dialect, tools, prefill) != reply
    ]
    return _Result(
        row=number,
        dialect=dialect.name,
        calls_right=not wrong_calls,
        cut_proof=not wrong_cuts,
        text_right=not wrong_text,
        problems=wrong_calls + wrong_text + wrong_cuts[:1],
    )


def _read(line: bytes) -> _Row:
    fields = io.read_json(line, dict[str, Any], "it", ROW_HINT)
    known = {ALIASES.get(name, name): value for name, value in fields.items() if ALIASES.get(name, name) not in fields}
    try:
        return msgspec.convert({**fields, **known}, _Row)
    except msgspec.ValidationError as error:
        raise BadInput(f"it cannot be used: {error}", ROW_HINT) from None


def _dialect_of(row: _Row) -> il.Dialect:
    if row.dialect is None:
        raise BadInput("it names no dialect", "give --dialect NAME")
    return options.dialect_called(row.dialect)


def _cuttings(text: str, cuts: int, dice: random.Random) -> Iterator[tuple[str, list[str]]]:
    yield "per character", list(text)
    for n in range(cuts):
        at = sorted(dice.choices(range(len(text) + 1), k=dice.randint(1, 12)))
        yield f"random cut {n + 1}", [text[start:end] for start, end in pairwise([0, *at, len(text)])]


def _parse_pieces(pieces: Iterable[str], dialect: il.Dialect, tools: list[il.Tool] | None, prefill: str) -> il.Reply:
    parser = il.Parser(dialect, tools, prefill)
    return il.fold([event for piece in pieces for event in parser.feed(piece)] + parser.close())


def _wrong_calls(expected: list[_Call], got: list[il.Call], *, typed: bool) -> Iterator[str]:
    if len(expected) != len(got):
        names = ", ".join(call.name for call in got) or "none"
        yield f"expected {len(expected)} calls, got {len(got)}: {names}"
    for number, (wanted, call) in enumerate(zip(expected, got, strict=False), 1):
        if wanted.name != call.name:
            yield f"call {number}: expected the name {wanted.name!r}, got {call.name!r}"
        elif not call.complete:
            yield f"call {number}: it is cut off: {_told(call.arguments)}"
        elif as_value(wanted.arguments) != as_value(call.arguments):
            alike = not typed and _as_texts(wanted.arguments) == _as_texts(call.arguments)
            hint = "; only `tools` in the line would tell its types" if alike else ""
            yield f"call {number}: expected the arguments {_told(wanted.arguments)}, got {_told(call.arguments)}{hint}"


def as_value(arguments: dict[str, Any] | str) -> Any:
    """What the arguments say, however they are written."""
    if not isinstance(arguments, str):
        return arguments
    try:
        return msgspec.json.decode(arguments)
    except msgspec.DecodeError:
        return arguments


def _as_texts(arguments: dict[str, Any] | str) -> Any:
    """The same, with all that is not a text written as one."""
    value = as_value(arguments)
    if not isinstance(value, dict):
        return value
    return {key: one if isinstance(one, str) else msgspec.json.encode(one).decode() for key, one in value.items()}


def _wrong_text(row: _Row, reply: il.Reply) -> Iterator[str]:
    content = row.content if row.content_in_text else None
    reasoning = row.reasoning if row.reasoning_in_text else None
    for what, expected, got in (("text", content, reply.text), ("reasoning", reasoning, reply.reasoning)):
        if expected is not None and expected != got:
            yield f"expected the {what} {_told(expected)}, got {_told(got)}"


def _told(value: Any) -> str:
    text = value if isinstance(value, str) and value.startswith("{") else msgspec.json.encode(value).decode()
    return io.printable(shorten(text, 120))


# ── all of them ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _with_progress(results: Iterable[_Result], total: int) -> Iterator[_Result]:
    told = time.monotonic()
    for done, result in enumerate(results, 1):
        yield result
        if time.monotonic() - told > PATIENCE:
            told = time.monotonic()
            io.tell(f"checked {done} of {total}")


def _write_lines(results: Iterable[_Result]) -> int:
    wrong = 0
    for result in results:
        io.write_line(result)
        wrong += bool(result.problems)
    return wrong


def _write_table(results: Iterable[_Result]) -> int:
    wrong = 0
    io.write(_line("  row", "dialect", "calls", "cut-proof", "text", "problems"))
    for result in results:
        marks = (MARKS[right] for right in (result.calls_right, result.cut_proof, result.text_right))
        first, *more = [io.printable(problem) for problem in result.problems] or [""]
        io.write(_line(f"{result.row:5}", result.dialect, *marks, first))
        io.write(b"".join(_line("", "", "", "", "", problem) for problem in more))
        wrong += bool(result.problems)
    return wrong


def _line(*cells: str) -> bytes:
    aligned = (f"{cell:{width}}" for cell, width in zip(cells, COLUMNS, strict=True))
    return "  ".join(aligned).rstrip().encode() + b"\n"
