"""`interlingua dialects draft`: a model's chat template → a dialect file to begin with."""

from __future__ import annotations

import argparse
import dataclasses
import re
from pathlib import Path

import interlingua as il
from interlingua.cli.common import console as io
from interlingua.cli.common.two_columns import shorten
from interlingua.cli.dialects.check import decode_arguments
from interlingua.cli.dialects.drafting.dialect_guesser import DialectGuess, guess_dialect
from interlingua.cli.dialects.drafting.template_probe import CONTENT, THINKING, TOOLS, ProbeResult, probe_template
from interlingua.cli.dialects.show import dialect_yaml
from interlingua.errors import BadInput, InterlinguaError

NAME = "draft"
HELP = "a model's chat template → a dialect file to begin with"
DESCRIPTION = """\
Has the template write a turn with thinking, text and two calls, and tells the
dialect by what it puts around them. Then it reads that turn back with the
draft and says what came of it. What is not certain stands in the draft as a
comment: read it, and try it on what the model really writes."""
EPILOG = """\
examples:
  interlingua dialects draft chat_template.jinja
  interlingua dialects draft chat_template.jinja -o my_model.yaml
  interlingua dialects check recorded.jsonl --dialect ./my_model.yaml

It needs jinja2: pip install 'interlingua[draft]'. The exit status is 1 if no
dialect could be told, or if the draft does not read the turn back.
"""
BY_HAND_HINT = "begin with the nearest of `interlingua dialects show NAME`, and write it by hand"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("template", metavar="TEMPLATE", help="the chat template (Jinja); - for standard input")
    parser.add_argument("-o", "--output", metavar="FILE", help="where the draft goes; else standard output")


def run(args: argparse.Namespace) -> None:
    text = io.read_all(args.template, "a chat template").decode("utf-8", "replace")
    probe_result = probe_template(text)
    guess = guess_dialect(probe_result)
    if guess.shape is None:
        calls = io.printable(shorten(guess.calls, 400))
        raise BadInput(f"no shape fits the calls that the template writes: {calls}", BY_HAND_HINT)
    dialect = with_sample(guess.build_dialect(_dialect_name(args.template)))
    problems = round_trip_problems(dialect, probe_result, guess)
    if dialect.sample != guess.reply:
        guess.add_note(
            "sample", "The template writes it with other white space, which makes no difference when it is read."
        )
    guess.notes[""] = _header_comment(args.template, problems)
    _write_draft(dialect_yaml(dialect, guess.notes), args.output)
    if problems:
        raise BadInput(
            f"the draft does not read what the template writes: {problems[0]}", f"mend it, or {BY_HAND_HINT}"
        )
    io.print_stderr(
        f"the draft reads what the template writes: {len(probe_result.calls)} of {len(probe_result.calls)} calls"
    )
    io.print_stderr("next: try it on what the model really writes, see `interlingua dialects check --help`")


def _dialect_name(path: str) -> str:
    stem = "my_model" if path == io.STDIN else Path(path).stem
    return re.sub(r"\W+", "_", stem.lower()).strip("_") or "my_model"


def _header_comment(path: str, problems: list[str]) -> str:
    draft = f"Drafted from {Path(path).name} by `interlingua dialects draft`."
    if problems:
        return f"{draft} It does NOT WORK yet: {'; '.join(problems)}."
    return f"{draft} It reads what the template writes. The model may write more than that."


def with_sample(dialect: il.Dialect) -> il.Dialect:
    """The dialect with its sample as we would write it; without one if it cannot be read."""
    try:
        reply = il.parse(dialect.sample, dialect)
        sample = il.render(reply, dialect) if reply.calls else ""
    except InterlinguaError:
        sample = ""
    return dataclasses.replace(dialect, sample=sample)


def round_trip_problems(dialect: il.Dialect, probe_result: ProbeResult, guess: DialectGuess) -> list[str]:
    """What does not come back as it went in."""
    try:
        dialect = il.load_dialect(dialect_yaml(dialect))
    except InterlinguaError as error:
        return [str(error)]
    reply = il.parse(guess.reply, dialect, TOOLS)
    problems = []
    expected = [(call.name, call.args) for call in probe_result.calls]
    actual = [(call.name, decode_arguments(call.arguments)) for call in reply.calls]
    if actual != expected:
        problems.append(f"{len(expected)} calls went in, and this came back: {actual or 'none'}")
    for field, text, actual_text in (("thinking", THINKING, reply.reasoning), ("text", CONTENT, reply.text)):
        if text in guess.reply and actual_text != text:
            problems.append(f"the {field} {text!r} came back as {actual_text!r}")
    return problems


def _write_draft(draft: str, path: str | None) -> None:
    if path is None:
        io.write(draft.encode())
        return
    try:
        Path(path).write_text(draft, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"cannot write {path}: {error.strerror}", "give another -o, or leave it out") from error
