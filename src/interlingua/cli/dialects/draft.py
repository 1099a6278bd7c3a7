"""`interlingua dialects draft`: draft a dialect file from a model's chat template."""

from __future__ import annotations

import argparse
import dataclasses
import json
import re
from pathlib import Path

import interlingua as il
from interlingua.cli.common import console
from interlingua.cli.common.two_columns import shorten
from interlingua.cli.dialects.check import decode_arguments
from interlingua.cli.dialects.drafting.dialect_guesser import DialectGuess, guess_dialect
from interlingua.cli.dialects.drafting.tag_proposal import TagProposal, propose_tag
from interlingua.cli.dialects.drafting.template_probe import CONTENT, THINKING, TOOLS, ProbeResult, probe_template
from interlingua.cli.dialects.show import dialect_yaml
from interlingua.errors import BadInput, InterlinguaError

DESCRIPTION = """\
Renders the chat template with a probe message (reasoning, text and two calls)
and derives the dialect from the markers around them. Then parses the rendered
message with the draft and reports whether the result equals the probe, and
whether the draft's structural tag, which constrains the model to valid calls,
accepts the message.

Comments in the draft mark everything that is uncertain. Review them, and test
the draft with real output of the model."""
EPILOG = """\
examples:
  interlingua dialects draft chat_template.jinja
  interlingua dialects draft chat_template.jinja -o my_model.yaml
  interlingua dialects draft chat_template.jinja --structural-tag tag.json > my_model.yaml
  interlingua dialects check recorded.jsonl --dialect ./my_model.yaml

This command needs jinja2: pip install 'interlingua[draft]'. The exit status is 1
if no dialect can be derived, or if the draft does not parse the rendered message,
or if --structural-tag is given and the tag does not accept it.
"""
BY_HAND_HINT = "write the dialect by hand, starting from a similar one: `interlingua dialects show NAME`"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("template", metavar="TEMPLATE", help="the chat template (Jinja); - for standard input")
    parser.add_argument("-o", "--output", metavar="FILE", help="file for the draft; default: standard output")
    parser.add_argument(
        "--structural-tag",
        metavar="FILE",
        help="also write the draft's structural tag, for the two tools of the probe; see `interlingua export --help`",
    )


def run(args: argparse.Namespace) -> None:
    text = console.read_all(args.template, "a chat template").decode("utf-8", "replace")
    probe_result = probe_template(text)
    guess = guess_dialect(probe_result)
    if guess.shape is None:
        calls = console.printable(shorten(guess.calls, 400))
        raise BadInput(f"no known shape matches the calls that the template renders: {calls}", BY_HAND_HINT)
    dialect = with_sample(guess.build_dialect(_dialect_name(args.template)))
    problems = round_trip_problems(dialect, probe_result, guess)
    if dialect.sample != guess.reply:
        guess.add_note(
            "sample", "The template renders it with different whitespace. The parser ignores that difference."
        )
    guess.notes[""] = _header_comment(args.template, problems)
    _write_file(dialect_yaml(dialect, guess.notes), args.output)
    if problems:
        raise BadInput(
            f"the draft does not parse what the template renders: {problems[0]}", f"correct it, or {BY_HAND_HINT}"
        )
    console.print_stderr(
        f"the draft parses what the template renders: {len(probe_result.calls)} of {len(probe_result.calls)} calls"
    )
    _report_tag(propose_tag(dialect, guess), args.structural_tag)
    console.print_stderr("next: test it with real output of the model, see `interlingua dialects check --help`")


def _dialect_name(path: str) -> str:
    stem = "my_model" if path == console.STDIN else Path(path).stem
    return re.sub(r"\W+", "_", stem.lower()).strip("_") or "my_model"


def _header_comment(path: str, problems: list[str]) -> str:
    draft = f"Drafted from {Path(path).name} by `interlingua dialects draft`."
    if problems:
        return f"{draft} It does NOT WORK yet: {'; '.join(problems)}."
    return f"{draft} It parses what the template renders. The model may also write other formats."


def with_sample(dialect: il.Dialect) -> il.Dialect:
    """Return the dialect with its sample parsed and rendered again; with an empty sample if that fails."""
    try:
        reply = il.parse(dialect.sample, dialect)
        sample = il.render(reply, dialect) if reply.calls else ""
    except InterlinguaError:
        sample = ""
    return dataclasses.replace(dialect, sample=sample)


def round_trip_problems(dialect: il.Dialect, probe_result: ProbeResult, guess: DialectGuess) -> list[str]:
    """Parse the rendered probe and return the differences from it; [] if there are none."""
    try:
        dialect = il.load_dialect(dialect_yaml(dialect))
    except InterlinguaError as error:
        return [str(error)]
    reply = il.parse(guess.reply, dialect, TOOLS)
    problems = []
    expected = [(call.name, call.args) for call in probe_result.calls]
    actual = [(call.name, decode_arguments(call.arguments)) for call in reply.calls]
    if actual != expected:
        problems.append(f"the probe has {len(expected)} calls, but these were parsed: {actual or 'none'}")
    for field, text, actual_text in (("reasoning", THINKING, reply.reasoning), ("text", CONTENT, reply.text)):
        if text in guess.reply and actual_text != text:
            problems.append(f"the {field} {text!r} was parsed as {actual_text!r}")
    return problems


def _report_tag(proposal: TagProposal, path: str | None) -> None:
    """Report the structural tag, and write it if it has a file."""
    if not proposal.problem:
        console.print_stderr("its structural tag accepts what the template renders")
        if path is not None:
            _write_file(json.dumps(proposal.tag, ensure_ascii=False, indent=2) + "\n", path)
    elif path is None:
        console.print_stderr(f"note: {proposal.problem}")
    else:
        raise BadInput(proposal.problem, f"correct the draft, or {BY_HAND_HINT}")


def _write_file(text: str, path: str | None) -> None:
    if path is None:
        console.write(text.encode())
        return
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput(
            f"cannot write {path}: {error.strerror}", "choose another file, or leave the option out"
        ) from error
