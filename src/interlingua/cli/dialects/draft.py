"""`interlingua dialects draft`: draft a dialect file from a model's chat template or from recorded replies."""

from __future__ import annotations

import argparse
import dataclasses
import json
from pathlib import Path

import interlingua as il
from interlingua.cli.common import console
from interlingua.cli.common.terminal import progress
from interlingua.cli.dialects.check import decode_arguments
from interlingua.cli.dialects.drafting.dialect_guesser import DialectGuess, guess_dialect
from interlingua.cli.dialects.drafting.draft_source import (
    KnownCall,
    RecordedReply,
    RecordingSource,
    TemplateSource,
    read_source,
)
from interlingua.cli.dialects.drafting.recording_guesser import (
    find_builtin_dialect,
    find_calls,
    guess_from_recording,
    recording_problems,
)
from interlingua.cli.dialects.drafting.tag_proposal import TagProposal, propose_tag
from interlingua.cli.dialects.drafting.template_probe import CONTENT, THINKING, TOOLS, ProbeResult, probe_template
from interlingua.cli.dialects.show import dialect_yaml
from interlingua.common.short_text import shorten
from interlingua.errors import BadInput, InterlinguaError

DESCRIPTION = """\
Drafts a dialect file for a model, from one of these:

  a chat template   a Jinja file; tokenizer_config.json; a model folder, also in
                    the cache of Hugging Face; the JSON of llama.cpp's /props.
                    It is rendered with a probe (reasoning, text, two calls),
                    and the markers around them are the dialect.
  recorded replies  text as the model wrote it; a recorded stream or reply of a
                    server; a capture; lines as `dialects check` takes them. If
                    a built-in dialect reads them, the draft is a copy of it.

The command says what it took. Then it parses that with the draft, and reports
whether the result is right. Comments in the draft mark everything that is
uncertain. Review them, and test the draft with real output of the model."""
EPILOG = """\
examples:
  interlingua dialects draft chat_template.jinja -o my_model.yaml
  interlingua dialects draft tokenizer_config.json --structural-tag tag.json
  interlingua dialects draft ~/models/Acme-7B-Instruct
  interlingua dialects draft recorded.sse
  interlingua dialects check recorded.jsonl --dialect ./my_model.yaml

Templates need jinja2: pip install 'interlingua[draft]'. The exit status is 1 if
no dialect can be derived, if the draft does not parse what it was made from, or
if --structural-tag is given and the tag does not accept what the template
renders.
"""
BY_HAND_HINT = "write the dialect by hand, starting from a similar one: `interlingua dialects show NAME`"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source", metavar="SOURCE", help="a template, a model folder, or recorded replies; - for standard input"
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="file for the draft; default: standard output")
    parser.add_argument(
        "--structural-tag",
        metavar="FILE",
        help="also write the draft's structural tag, for the two tools of the probe; see `interlingua export --help`",
    )


def run(args: argparse.Namespace) -> None:
    source = read_source(args.source)
    console.print_stderr(f"took {source.description}")
    with progress("drafting"):  # a recording is parsed in every dialect
        draft = _draft_template(source) if isinstance(source, TemplateSource) else _draft_recording(source)
    _write_file(draft.text, args.output)
    if draft.problems:
        raise BadInput(
            f"the draft does not parse {draft.subject}: {draft.problems[0]}", f"correct it, or {BY_HAND_HINT}"
        )
    for line in draft.messages:
        console.print_stderr(line)
    if draft.tag is not None:
        _report_tag(draft.tag, args.structural_tag)
    elif args.structural_tag is not None:
        raise BadInput("no structural tag: it is checked with a chat template", "draft from a chat template")
    console.print_stderr("next: test it with real output of the model, see `interlingua dialects check --help`")


@dataclasses.dataclass(frozen=True)
class Draft:
    text: str
    """The dialect file."""
    subject: str
    """Replies that the draft has to parse."""
    messages: list[str]
    problems: list[str]
    tag: TagProposal | None = None
    """The structural tag of the dialect; None for a draft from recorded replies, which show no turn without calls."""


# ── chat templates ────────────────────────────────────────────────────────────────────────────────────────────────────


def _draft_template(source: TemplateSource) -> Draft:
    probe_result = probe_template(source.text, source.eos_token)
    guess = guess_dialect(probe_result)
    if guess.shape is None:
        calls = console.printable(shorten(guess.calls, 400))
        raise BadInput(f"no known shape matches the calls that the template renders: {calls}", BY_HAND_HINT)
    dialect = with_sample(guess.build_dialect(source.name))
    problems = round_trip_problems(dialect, probe_result, guess)
    if dialect.sample != guess.reply:
        guess.add_note(
            "sample", "The template renders it with different whitespace. The parser ignores that difference."
        )
    subject = "what the template renders"
    guess.notes[""] = _header_comment(source.description, subject, problems)
    count = len(probe_result.calls)
    messages = [f"the draft parses {subject}: {count} of {count} calls"]
    return Draft(dialect_yaml(dialect, guess.notes), subject, messages, problems, propose_tag(dialect, guess))


def _header_comment(description: str, subject: str, problems: list[str]) -> str:
    draft = f"Drafted from {description} by `interlingua dialects draft`."
    if problems:
        return f"{draft} It does NOT WORK yet: {'; '.join(problems)}."
    return f"{draft} It parses {subject}. The model may also write other formats."


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
    plain_text = il.parse(guess.plain_reply, dialect, TOOLS).text
    if plain_text.strip() != CONTENT:
        problems.append(f"a turn without calls has the text {CONTENT!r}, which was parsed as {plain_text!r}")
    return problems


# ── recorded replies ──────────────────────────────────────────────────────────────────────────────────────────────────


def _draft_recording(source: RecordingSource) -> Draft:
    subject = "the recording"
    if (builtin := find_builtin_dialect(source.replies)) is not None:
        count = sum(len(il.parse(reply.text, builtin).calls) for reply in source.replies)
        note = f"The built-in dialect {builtin.name} reads {source.description}. This is a copy of it."
        calls = "1 call" if count == 1 else f"{count} calls"
        messages = [f"the built-in dialect {builtin.name} parses {subject}: {calls}; the draft is a copy of it"]
        return Draft(dialect_yaml(builtin, {"": note}), subject, messages, [])
    known = [dataclasses.replace(reply, calls=_calls_of(reply)) for reply in source.replies]
    count = sum(len(reply.calls or ()) for reply in known)
    if not count:
        raise BadInput(
            "no calls were found in the text",
            'name them, one line for each reply: {"text": "…", "calls": [{"name": "…", "arguments": {…}}]}',
        )
    best: Draft | None = None
    for guess in guess_from_recording(source.replies):
        draft = _recording_draft(source, guess, known, count)
        if not draft.problems:
            return draft
        best = best or draft
    if best is None:
        raise BadInput("no known shape matches the calls in the text", BY_HAND_HINT)
    return best


def _calls_of(reply: RecordedReply) -> tuple[KnownCall, ...]:
    return tuple(KnownCall(call.name, call.args) for call in find_calls(reply))


def _recording_draft(
    source: RecordingSource, guess: DialectGuess, replies: list[RecordedReply], call_count: int
) -> Draft:
    """Return the draft for a guess, checked with all replies."""
    subject, dialect = "the recording", with_sample(guess.build_dialect(source.name))
    try:
        problems = recording_problems(il.load_dialect(dialect_yaml(dialect)), replies)
    except InterlinguaError as error:
        problems = [str(error)]
    guess.notes[""] = _header_comment(source.description, subject, problems)
    messages = [f"the draft parses {subject}: {call_count} of {call_count} calls"]
    return Draft(dialect_yaml(dialect, guess.notes), subject, messages, problems)


# ── output ────────────────────────────────────────────────────────────────────────────────────────────────────────────


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
