"""Tests of `interlingua dialects` (list, show, check, draft) and of --dialect with a file."""

from __future__ import annotations

import dataclasses
import io
import json
import random
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import interlingua as il
from interlingua.cli import main
from interlingua.cli.dialects import check
from interlingua.cli.dialects.draft import round_trip_problems, with_sample
from interlingua.cli.dialects.drafting.dialect_guesser import guess_dialect
from interlingua.cli.dialects.drafting.tag_proposal import propose_tag
from interlingua.cli.dialects.drafting.template_probe import (
    CALL_ID_SETS,
    CALLS,
    CONTENT,
    THINKING,
    ProbeCall,
    ProbeResult,
    probe_template,
)
from interlingua.core.reply import Reasoning, Text
from interlingua.dialects.registry import get_dialect
from interlingua.errors import BadInput
from interlingua.parsing.shapes.json_envelope.grammar import JsonEnvelope
from tests.support.budget import sample
from tests.support.paths import DATA, ROOT

GUIDE = ROOT / "docs" / "guides" / "new-dialect.md"
TEMPLATES = DATA / "fixtures" / "templates"
KIMI = get_dialect("kimi_k2")
CALLS_OF_SAMPLE = [
    {"name": "get_weather", "arguments": {"city": "Paris"}},
    {"name": "get_weather", "arguments": {"city": "São Paulo"}},
]
ROW: dict[str, Any] = {"text": KIMI.sample, "dialect": "kimi_k2", "calls": CALLS_OF_SAMPLE, "reasoning": "Two cities."}


class CommandResult(NamedTuple):
    status: int
    out: str
    err: str


Cli = Callable[..., CommandResult]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.delenv("COLUMNS", raising=False)

    def run(*argv: str | Path, stdin: str = "") -> CommandResult:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8"))
        try:
            status = main([str(arg) for arg in argv])
        except SystemExit as end:
            status = int(end.code or 0)
        return CommandResult(status, *capsys.readouterr())

    return run


@pytest.fixture
def dialect_file(tmp_path: Path, cli: Cli) -> Path:
    """A copy of a dialect with another name."""
    path = tmp_path / "mine.yaml"
    path.write_text(cli("dialects", "show", "kimi_k2").out.replace('name: "kimi_k2"', "name: mine"), encoding="utf-8")
    return path


@pytest.mark.parametrize("command", ["show", "check", "draft"])
def test_every_command_has_help_with_examples(cli: Cli, command: str) -> None:
    result = cli("dialects", command, "--help")
    assert (result.status, result.err) == (0, "")
    assert f"interlingua dialects {command}" in result.out.partition("examples:")[2]
    assert command in cli("dialects", "--help").out


def test_list_includes_the_shapes(cli: Cli) -> None:
    assert "(framed_json)" in cli("dialects").out
    shapes = {entry["name"]: entry["shape"] for entry in json.loads(cli("dialects", "--json").out)}
    assert shapes["kimi_k2"] == "framed_json"
    assert shapes["standard"] is None


# ── show, and dialects from files ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.one_row_in(5)
@pytest.mark.parametrize("dialect", il.dialects(), ids=lambda dialect: dialect.name)
def test_show(cli: Cli, dialect: il.Dialect) -> None:
    result = cli("dialects", "show", dialect.name)
    assert (result.status, result.err) == (0, "")
    assert il.load_dialect(result.out) == dialect
    comments = [line for line in result.out.splitlines() if line.lstrip().startswith("# ")]
    assert all(len(line) <= 100 for line in comments)


def test_show_explains_each_field_once(cli: Cli) -> None:
    shown = cli("dialects", "show", "qwen3_coder").out
    assert shown.count("# Markers directly before the name") == 1
    assert "# A reply that a model really wrote." in shown
    assert "ids:" not in shown


def test_show_unknown_dialect(cli: Cli) -> None:
    assert (
        cli("dialects", "show", "kimik2").err == "error: no dialect is called 'kimik2'\nhint: did you mean 'kimi_k2'?\n"
    )


def test_dialect_file_works_in_all_commands(cli: Cli, dialect_file: Path) -> None:
    reply = cli("parse", "--dialect", dialect_file, stdin=KIMI.sample)
    assert [call["name"] for call in json.loads(reply.out)["calls"]] == ["get_weather"] * 2
    assert cli("render", "--dialect", dialect_file, stdin=reply.out).out == KIMI.sample
    body = json.dumps({"choices": [{"index": 0, "message": {"role": "assistant", "content": KIMI.sample}}]})
    translated = cli("translate", "--dialect", dialect_file, stdin=body)
    assert len(json.loads(translated.out)["choices"][0]["message"]["tool_calls"]) == 2
    assert cli("dialects", "show", dialect_file).out.splitlines()[1] == 'name: "mine"'


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("./acmee.yaml", "hint: did you mean 'acme.yaml'?"),
        ("acme", "hint: for the file, write --dialect ./acme.yaml"),
    ],
)
def test_misspelt_dialect_file_gets_a_hint(
    cli: Cli, dialect_file: Path, monkeypatch: pytest.MonkeyPatch, name: str, hint: str
) -> None:
    monkeypatch.chdir(dialect_file.parent)
    dialect_file.rename("acme.yaml")
    result = cli("parse", "--dialect", name, stdin="hi")
    assert result.status != 0
    assert hint in result.err


def test_invalid_dialect_file_is_reported(cli: Cli, dialect_file: Path) -> None:
    dialect_file.write_text(dialect_file.read_text("utf-8").replace("    close:", "    clsoe:"), encoding="utf-8")
    for command in (["parse"], ["render"], ["translate"], ["dialects", "check"], ["dialects", "show"]):
        result = cli(*command, *([] if command[-1] == "show" else ["--dialect"]), dialect_file)
        assert (result.status, result.out) == (1, "")
        assert re.fullmatch(
            rf"error: {dialect_file}:\d+: shape\.framed_json\.clsoe: unknown field\nhint: did you mean 'close'\? .*\n",
            result.err,
        )
    assert cli("parse", "--dialect", "no/such.yaml").err.startswith("error: cannot read no/such.yaml: ")


# ── check ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def lines(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_check(cli: Cli) -> None:
    result = cli("dialects", "check", stdin=lines(ROW, {**ROW, "text": f"Hi.{KIMI.sample}", "content": "Hi."}))
    assert (result.status, result.err) == (0, "2 of 2 right\n")
    head, *rows = result.out.splitlines()
    assert head.split() == ["row", "dialect", "calls", "cut-proof", "text", "problems"]
    assert [row.split() for row in rows] == [[str(n), "kimi_k2", "right", "right", "right"] for n in (1, 2)]


def test_check_accepts_field_names_of_public_corpora(cli: Cli) -> None:
    row = {
        "generated_text": KIMI.sample.removeprefix("<think>"),
        "prompt_prefill": "<think>",
        "expected_calls": CALLS_OF_SAMPLE,
        "expected_content": "not in the text",
        "content_in_text": False,
        "expected_reasoning": "Two cities.",
        "dialect": "overridden by --dialect",
    }
    assert cli("dialects", "check", "--dialect=kimi_k2", stdin=lines(row)).status == 0


def changed_row(**fields: Any) -> dict[str, Any]:
    return {**ROW, **fields}


OTHER = [{"name": "get_weather", "arguments": '{"city": "Rome"}'}, {"name": "ls"}]
TYPED = {
    "dialect": "qwen3_coder",
    "text": "<tool_call>\n<function=ls>\n<parameter=path>\n3\n</parameter>\n</function>\n</tool_call>",
    "calls": [{"name": "ls", "arguments": {"path": "3"}}],
}
PROBLEMS: dict[str, tuple[dict[str, Any], str]] = {
    "extra call": (changed_row(calls=[]), "expected 0 calls, got 2: get_weather, get_weather"),
    "missing call": (changed_row(text="Hello.", reasoning=None), "expected 2 calls, got none"),
    "other arguments": (
        changed_row(calls=OTHER),
        'call 1: expected the arguments {"city": "Rome"}, got {"city": "Paris"}',
    ),
    "no tools, so no types": (
        {**TYPED, "tools": None},
        'call 1: expected the arguments {"path":"3"}, got {"path": 3}; add `tools` to the line: '
        "without it, the types of the arguments are unknown",
    ),
    "another name": (changed_row(calls=OTHER), "call 2: expected the name 'ls', got 'get_weather'"),
    "no JSON expected": (
        changed_row(calls=[{"name": "get_weather", "arguments": "x"}] * 2),
        'call 1: expected the arguments "x", got {"city": "Paris"}',
    ),
    "cut off": (
        changed_row(text=KIMI.sample[: KIMI.sample.rindex("Paulo")]),
        'call 2: incomplete: {"city": "São',
    ),
    "other text": (changed_row(content="Hi."), 'expected the text "Hi.", got ""'),
    "other reasoning": (changed_row(reasoning=""), 'expected the reasoning "", got "Two cities."'),
    "no tool": (changed_row(tools=[{}]), "a tool without a name"),
    "no text": ({"calls": []}, "missing required field `text`"),
    "no dialect": ({"text": "", "calls": []}, "the line names no dialect (add --dialect NAME)"),
    "no such dialect": ({**ROW, "dialect": "kimik2"}, "no dialect is called 'kimik2' (did you mean 'kimi_k2'?)"),
}


@pytest.mark.parametrize(("row", "expected"), PROBLEMS.values(), ids=PROBLEMS)
def test_check_reports_problems(cli: Cli, row: dict[str, Any], expected: str) -> None:
    result = cli("dialects", "check", stdin=lines(ROW, row))
    assert result.status == 1
    assert expected in result.out
    assert result.err.startswith("error: 1 of 2 lines are not parsed as expected\nhint: ")
    second = json.loads(cli("dialects", "check", "--json", stdin=lines(ROW, row)).out.splitlines()[1])
    assert any(expected in problem for problem in second["problems"])


def test_check_continues_after_a_line_that_is_not_json(cli: Cli) -> None:
    result = cli("dialects", "check", stdin="{\n\n" + lines(ROW))
    assert [line.split()[:2] for line in result.out.splitlines()[1:]] == [["1", "–"], ["3", "kimi_k2"]]
    assert cli("dialects", "check", stdin="\n").err.startswith("error: - has no lines\nhint: a line is {")


def test_check_detects_results_that_depend_on_splits(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    class SplitDependentParser(il.Parser):
        def feed(self, text: str) -> list[Any]:
            return super().feed(text.removeprefix("functions."))

    monkeypatch.setattr(il, "Parser", SplitDependentParser)
    result = cli("dialects", "check", "--cuts=40", "--seed=3", stdin=lines(ROW))
    assert result.status == 1
    assert result.out.splitlines()[1].split()[:5] == ["1", "kimi_k2", "right", "WRONG", "right"]
    assert "the result differs if the text is split (random split " in result.out


def test_check_prints_progress(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "PROGRESS_INTERVAL_SECONDS", -1.0)
    assert cli("dialects", "check", "--cuts=0", stdin=lines(ROW, ROW)).err == (
        "checked 1 of 2\nchecked 2 of 2\n2 of 2 right\n"
    )


# ── draft ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

DRAFTED = {
    "hermes": ("json_envelope", '    open: "<tool_call>"', '"<|im_end|>"'),
    "qwen3_coder": ("tagged_params", "    lines: true", "The prompt ends with '<think>\\n': pass that as `prefill`."),
    "kimi": ("framed_json", '    header: "functions.{name}:{n}"', '    args: "<|tool_call_argument_begin|>"'),
    "glm": ("tagged_params", 'value_open: ["\\n<arg_value>", "<arg_value>"]', '      end: "</arg_key>"'),
    "lines": ("line_params", '    close: "@@end"', "# DRAFT: The template renders no value of several lines"),
    "mistral": ("json_envelope", '    id_keys: "id"', "</s> is a placeholder: replace it by the eos_token"),
}


def test_every_template_fixture_is_drafted() -> None:
    assert {path.stem for path in TEMPLATES.glob("*.jinja")} == set(DRAFTED)


@pytest.mark.parametrize("name", DRAFTED)
def test_draft(cli: Cli, tmp_path: Path, name: str) -> None:
    result = cli("dialects", "draft", TEMPLATES / f"{name}.jinja")
    assert result.status == 0
    assert result.err.splitlines()[1:3] == [
        "the draft parses what the template renders: 2 of 2 calls",
        "its structural tag accepts what the template renders",
    ]
    shape, *expected = DRAFTED[name]
    assert f"\n  {shape}:\n" in result.out
    assert all(words in result.out for words in expected)
    dialect = il.load_dialect(result.out)
    assert dialect.name == name
    reply = il.parse(dialect.sample, dialect)
    assert [call.name for call in reply.calls] == ["get_forecast", "list_places"]
    assert reply.text == CONTENT
    output = tmp_path / "draft.yaml"
    assert cli("dialects", "draft", TEMPLATES / f"{name}.jinja", "-o", output).out == ""
    assert output.read_text("utf-8") == result.out


NOT_GUESSED = {"cohere_cmd5", "functionary_v32", "minimax_m3", "muse", "step3"}
"""Their format cannot be derived from one turn, or has no shape of its own."""


def probe_result_for(dialect: il.Dialect) -> ProbeResult:
    """Return a turn as the chat template of this dialect's model would render it."""
    ids = CALL_ID_SETS[1] if dialect is KIMI else CALL_ID_SETS[0]
    calls = tuple(ProbeCall(name, args, id) for (name, args), id in zip(CALLS, ids, strict=True))
    thinking = [Reasoning(THINKING)] if dialect.thinking else []
    written = [il.Call(call.id, call.name, json.dumps(call.args)) for call in calls]
    role, end = "<|im_start|>assistant\n", "<|im_end|>\n"
    text = il.render(il.Reply(parts=[*thinking, Text(CONTENT), *written]), dialect)
    return ProbeResult(role + text + end, role, role + CONTENT + end, calls)


@pytest.mark.one_row_in(5)
@pytest.mark.parametrize(
    "dialect", [dialect for dialect in il.dialects() if dialect.shape], ids=lambda dialect: dialect.name
)
def test_dialects_are_guessed_from_their_own_output(dialect: il.Dialect) -> None:
    probed = probe_result_for(dialect)
    guess = guess_dialect(probed)
    drafted = with_sample(guess.build_dialect("x")) if guess.shape else None
    works = drafted is not None and not round_trip_problems(drafted, probed, guess)
    assert works == (dialect.name not in NOT_GUESSED)


@pytest.mark.sampled
def test_guess_does_not_raise_on_random_turns() -> None:
    """The guesser returns no shape for unusual input; it never raises."""
    rng = random.Random(0)
    turns = [probe_result_for(dialect) for dialect in il.dialects() if dialect.shape]
    for _ in sample(range(300), 5):
        probed = rng.choice(turns)
        turn = list(probed.turn)
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(turn))
            turn[at : at + rng.choice((0, 1, 5, 20))] = rng.choice(("", "<", ">", "{", "]", '"', "\n", "$", "{name}"))
        opening, plain = rng.choice(((probed.generation_prompt, probed.plain_turn), ("", "")))
        probed = dataclasses.replace(probed, turn="".join(turn), generation_prompt=opening, plain_turn=plain)
        guess = guess_dialect(probed)
        if guess.shape is not None:
            round_trip_problems(with_sample(guess.build_dialect("x")), probed, guess)


ONE_CALL = """{{ messages[-1].content }}
{%- for call in messages[-1].tool_calls or [] -%}
{%- if not loop.first %}{{ raise_exception('one call at a time') }}{% endif -%}
<call>{{ call.function | tojson }}</call>{% endfor %}"""
TEXT_ARGS = """{% for call in messages[-1].tool_calls or [] -%}
[[{{ call.function.name }}]]{{ '' + call.function.arguments }}
{%- endfor %}"""
BARE_CALL = """{% for message in messages %}<|{{ message.role }}|>
{%- if not message.tool_calls %}{{ message.content }}
{%- elif message.tool_calls | length > 1 %}{{ raise_exception('one call at a time') }}
{%- else %}{"name": "{{ message.tool_calls[0].function.name }}", "parameters":
{{- message.tool_calls[0].function.arguments | tojson }}}{% endif %}<|end|>{% endfor %}
{%- if add_generation_prompt %}<|assistant|>{% endif %}"""
NO_TEXT = """{{ 'Q: ' + messages[0].content }}{% if messages[1] %}
{%- if messages[1].content and messages[1].tool_calls %}{{ raise_exception('no text') }}{% endif -%}
{%- for call in messages[1].tool_calls or [] %}<f={{ call.function.name }}>{{ call.function.arguments | tojson }}</f>
{%- endfor %}{{ messages[1].content }}<end>{% endif %}"""
MARKED = NO_TEXT.replace("<f=", "{% generation %}<f=").replace("</f>", "</f>{% endgeneration %}")
TOLERANT = {
    "one call": (ONE_CALL, 1),
    "one call without markers": (BARE_CALL, 1),
    "arguments as text": (TEXT_ARGS, 2),
    "no text beside calls": (NO_TEXT, 2),
    "what the model writes is marked": (MARKED, 2),
}


@pytest.mark.parametrize(("template", "calls"), TOLERANT.values(), ids=TOLERANT)
def test_draft_from_templates_with_restrictions(cli: Cli, template: str, calls: int) -> None:
    result = cli("dialects", "draft", "-", stdin=template)
    assert result.err.splitlines()[1:3] == [
        f"the draft parses what the template renders: {calls} of {calls} calls",
        "its structural tag accepts what the template renders",
    ]
    assert "# DRAFT: " in result.out


NUMBERED_CALLS = """{% for message in messages %}<|{{ message.role }}|>
{%- if message.tool_calls %}<|think|>{{ message.reasoning_content }}<|/think|><|calls|>[
{%- for call in message.tool_calls %}{"id": "{{ loop.index0 }}", "tool": "{{ call.function.name }}", "parameters":
{{- call.function.arguments | tojson }}}{% if not loop.last %}, {% endif %}{% endfor %}]<|/calls|>
{%- else %}<|text|>{{ message.content }}<|/text|>{% endif %}<|end|>{% endfor %}
{%- if add_generation_prompt %}<|assistant|>{% endif %}"""


def test_draft_from_numbered_calls_and_marked_text(cli: Cli) -> None:
    """As Cohere's template: calls are numbered, and markers are around text only in turns without calls."""
    result = cli("dialects", "draft", "-", stdin=NUMBERED_CALLS)
    assert result.err.splitlines()[2] == "its structural tag accepts what the template renders"
    dialect = il.load_dialect(result.out)
    assert isinstance(dialect.shape, JsonEnvelope)
    assert dialect.shape.call == '{"id": "$number", "tool": $name, "parameters":$args}'
    assert (dialect.shape.close, dialect.noise) == (("<|/calls|>",), ("<|end|>",))
    assert dialect.text == (il.Span("<|text|>", "<|/text|>"),)


CHANNEL_OF_PLAIN_TEXT = """{% for message in messages %}<|start|>{{ message.role }}
{%- if message.tool_calls %}{{ message.content }}
{%- for call in message.tool_calls %}<call>{{ call.function | tojson }}</call>{% endfor %}
{%- else %}<|channel|>final<|message|>{{ message.content }}{% endif %}<|end|>{% endfor %}
{%- if add_generation_prompt %}<|start|>assistant{% endif %}"""


def test_draft_that_leaves_markup_in_the_text_of_a_turn_without_calls(cli: Cli) -> None:
    """As in harmony's template, only a turn without calls has these markers."""
    result = cli("dialects", "draft", "-", stdin=CHANNEL_OF_PLAIN_TEXT)
    assert result.status == 1
    assert "which was parsed as '<|channel|>final<|message|>Let me look that up.'\n" in result.err


FAILS = {
    "no Jinja": ("{% if %}", "line 1 of the template is not valid Jinja: "),
    "no calls": ("{{ messages[-1].content }}", "the template renders no calls; it may only render the list of tools"),
    "refuses all": ("{{ raise_exception('not me') }}", "the template renders no calls: not me"),
    "no shape": (
        "{% for call in messages[-1].tool_calls or [] %}{{ call.function.name }};{% endfor %}",
        "no known shape matches the calls that the template renders: get_forecast;list_places;",
    ),
    "division by zero": ("{{ 1 / 0 }}", "the template renders no calls: ZeroDivisionError: "),
    "long range": ("{% for i in range(10 ** 9) %}{% endfor %}", "the template renders no calls: OverflowError: "),
    "much memory": ("{{ 'x' * 10 ** 18 }}", "the template renders no calls: MemoryError"),
    "not safe": ("{{ messages.__class__.__mro__ }}", "the template renders no calls: SecurityError: "),
}


@pytest.mark.parametrize(("template", "expected"), FAILS.values(), ids=FAILS)
def test_draft_errors(cli: Cli, template: str, expected: str) -> None:
    result = cli("dialects", "draft", "-", stdin=template)
    assert (result.status, result.out) == (1, "")
    assert result.err.splitlines()[1].startswith(f"error: {expected}")
    assert "\nhint: " in result.err


def test_draft_that_fails_the_round_trip_is_reported(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(dialect: il.Dialect) -> il.Dialect:
        return dataclasses.replace(dialect, shape=get_dialect("kimi_k2").shape)

    monkeypatch.setattr("interlingua.cli.dialects.draft.with_sample", broken)
    result = cli("dialects", "draft", TEMPLATES / "hermes.jinja")
    assert result.status == 1
    assert "It does NOT WORK yet: " in result.out.replace("\n# ", " ")
    assert "\nerror: the draft does not parse what the template renders: " in result.err


def test_draft_writes_structural_tag(cli: Cli, tmp_path: Path) -> None:
    tag = tmp_path / "tag.json"
    result = cli("dialects", "draft", TEMPLATES / "hermes.jinja", "--structural-tag", tag)
    assert (result.status, json.loads(tag.read_text("utf-8"))["type"]) == (0, "structural_tag")


@pytest.mark.one_row_in(5)
@pytest.mark.parametrize(
    "dialect",
    [dialect for dialect in il.dialects() if dialect.shape and dialect.name not in NOT_GUESSED],
    ids=lambda dialect: dialect.name,
)
def test_structural_tags_of_drafts_accept_what_templates_render(dialect: il.Dialect) -> None:
    guess = guess_dialect(probe_result_for(dialect))
    proposal = propose_tag(with_sample(guess.build_dialect("x")), guess)
    assert (proposal.tag is None, proposal.problem) == (False, "")


def test_structural_tag_that_refuses_the_rendering_is_not_written(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def with_line_break(dialect: il.Dialect) -> il.Dialect:  # parsed all the same, but not what the template renders
        assert isinstance(dialect.shape, JsonEnvelope)
        return dataclasses.replace(dialect, shape=dataclasses.replace(dialect.shape, lead="\n\n"), sample="")

    monkeypatch.setattr("interlingua.cli.dialects.draft.with_sample", with_line_break)
    refusal = "the structural tag for tool_choice 'auto' does not accept the assistant turn: "
    result = cli("dialects", "draft", TEMPLATES / "hermes.jinja")
    assert (result.status, result.err.splitlines()[2][: len(refusal) + 6]) == (0, f"note: {refusal}")
    tag = tmp_path / "tag.json"
    result = cli("dialects", "draft", TEMPLATES / "hermes.jinja", "--structural-tag", tag)
    assert (result.status, tag.exists()) == (1, False)
    assert f"error: {refusal}" in result.err


def test_structural_tag_needs_a_template(cli: Cli, tmp_path: Path) -> None:
    recorded = tmp_path / "reply.txt"
    recorded.write_text(get_dialect("hermes").sample, "utf-8")
    result = cli("dialects", "draft", recorded, "--structural-tag", tmp_path / "tag.json")
    assert result.status == 1
    assert "error: no structural tag: it is checked with a chat template" in result.err


def test_draft_output_cannot_be_written(cli: Cli, tmp_path: Path) -> None:
    result = cli("dialects", "draft", TEMPLATES / "hermes.jinja", "-o", tmp_path)
    assert (result.status, result.err.splitlines()[1]) == (1, f"error: cannot write {tmp_path}: Is a directory")


def test_draft_without_jinja2(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    result = cli("dialects", "draft", TEMPLATES / "hermes.jinja")
    assert result.status == 2
    assert result.err.endswith("\nerror: this command needs jinja2\nhint: pip install 'interlingua[draft]'\n")


def test_probe_error_includes_the_message_of_the_template() -> None:
    with pytest.raises(BadInput, match="renders no calls: never"):
        probe_template("{{ raise_exception('never') }}")


# ── guide ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_guide_commands_print_what_the_guide_shows(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Create the files of the guide, run its commands, and compare the output with the guide."""
    monkeypatch.chdir(tmp_path)
    text = GUIDE.read_text("utf-8")
    files = dict(re.findall(r"`(\S+)`:\n\n```\w+\n(.*?)```", text, re.S))
    assert set(files) == {"acme.jinja", "acme.yaml", "recorded.jsonl", "lines.yaml", "lines.jsonl"}
    for name, content in files.items():
        Path(name).write_text(content, encoding="utf-8")
    by_hand = il.load_dialect("acme.yaml")
    blocks = re.findall(r"```console\n\$ interlingua (.*?)\n(.*?)```", text, re.S)
    assert len(blocks) >= 4
    for command, printed in blocks:
        argv, _, redirected = command.partition(" > ")
        result = cli(*argv.split())
        if redirected:
            Path(redirected).write_text(result.out, encoding="utf-8")
            assert result.err == printed
        elif "…" not in printed:
            assert result.out + result.err == printed, command
    drafted = il.load_dialect("acme.yaml")
    assert dataclasses.replace(drafted, summary=by_hand.summary, sample=by_hand.sample) == by_hand


def test_detect_is_listed_but_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dialects"]) == 0
    assert "detected from the text" in capsys.readouterr().out
    assert main(["dialects", "show", "detect"]) == 2
    assert "hint: show the dialect that it detects" in capsys.readouterr().err
