"""`interlingua dialects` and its commands: show, check and draft; and --dialect with a file, wherever it is taken."""

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
from tests.support.paths import DATA, ROOT

GUIDE = ROOT / "docs" / "guides" / "new-dialect.md"
TEMPLATES = DATA / "fixtures" / "templates"
KIMI = get_dialect("kimi_k2")
CALLS_OF_SAMPLE = [
    {"name": "get_weather", "arguments": {"city": "Paris"}},
    {"name": "get_weather", "arguments": {"city": "São Paulo"}},
]
ROW: dict[str, Any] = {"text": KIMI.sample, "dialect": "kimi_k2", "calls": CALLS_OF_SAMPLE, "reasoning": "Two cities."}


class Ran(NamedTuple):
    status: int
    out: str
    err: str


Cli = Callable[..., Ran]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.delenv("COLUMNS", raising=False)

    def run(*argv: str | Path, stdin: str = "") -> Ran:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8"))
        try:
            status = main([str(arg) for arg in argv])
        except SystemExit as end:
            status = int(end.code or 0)
        return Ran(status, *capsys.readouterr())

    return run


@pytest.fixture
def mine(tmp_path: Path, cli: Cli) -> Path:
    """A copy of a dialect with another name."""
    path = tmp_path / "mine.yaml"
    path.write_text(cli("dialects", "show", "kimi_k2").out.replace('name: "kimi_k2"', "name: mine"), encoding="utf-8")
    return path


@pytest.mark.parametrize("command", ["show", "check", "draft"])
def test_every_command_has_help_with_examples(cli: Cli, command: str) -> None:
    ran = cli("dialects", command, "--help")
    assert (ran.status, ran.err) == (0, "")
    assert f"interlingua dialects {command}" in ran.out.partition("examples:")[2]
    assert command in cli("dialects", "--help").out


def test_the_list_names_the_shapes(cli: Cli) -> None:
    assert "(framed_json)" in cli("dialects").out
    shapes = {entry["name"]: entry["shape"] for entry in json.loads(cli("dialects", "--json").out)}
    assert shapes["kimi_k2"] == "framed_json"
    assert shapes["standard"] is None


# ── show, and dialects from files ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("dialect", il.dialects(), ids=lambda dialect: dialect.name)
def test_show(cli: Cli, dialect: il.Dialect) -> None:
    ran = cli("dialects", "show", dialect.name)
    assert (ran.status, ran.err) == (0, "")
    assert il.load_dialect(ran.out) == dialect
    comments = [line for line in ran.out.splitlines() if line.lstrip().startswith("# ")]
    assert all(len(line) <= 100 for line in comments)


def test_show_explains_each_field_once(cli: Cli) -> None:
    shown = cli("dialects", "show", "qwen3_coder").out
    assert shown.count("# What stands right before the name.") == 1
    assert "# A genuine reply." in shown
    assert "ids:" not in shown


def test_show_an_unknown_one(cli: Cli) -> None:
    assert (
        cli("dialects", "show", "kimik2").err == "error: no dialect is called 'kimik2'\nhint: did you mean 'kimi_k2'?\n"
    )


def test_a_file_is_taken_wherever_a_dialect_is(cli: Cli, mine: Path) -> None:
    reply = cli("parse", "--dialect", mine, stdin=KIMI.sample)
    assert [call["name"] for call in json.loads(reply.out)["calls"]] == ["get_weather"] * 2
    assert cli("render", "--dialect", mine, stdin=reply.out).out == KIMI.sample
    body = json.dumps({"choices": [{"index": 0, "message": {"role": "assistant", "content": KIMI.sample}}]})
    translated = cli("translate", "--dialect", mine, stdin=body)
    assert len(json.loads(translated.out)["choices"][0]["message"]["tool_calls"]) == 2
    assert cli("dialects", "show", mine).out.splitlines()[1] == 'name: "mine"'


def test_a_wrong_file_is_told(cli: Cli, mine: Path) -> None:
    mine.write_text(mine.read_text("utf-8").replace("    close:", "    clsoe:"), encoding="utf-8")
    for command in (["parse"], ["render"], ["translate"], ["dialects", "check"], ["dialects", "show"]):
        ran = cli(*command, *([] if command[-1] == "show" else ["--dialect"]), mine)
        assert (ran.status, ran.out) == (1, "")
        assert re.fullmatch(
            rf"error: {mine}:\d+: shape\.framed_json\.clsoe: there is no such field\nhint: did you mean 'close'\? .*\n",
            ran.err,
        )
    assert cli("parse", "--dialect", "no/such.yaml").err.startswith("error: cannot read no/such.yaml: ")


# ── check ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def lines(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_check(cli: Cli) -> None:
    ran = cli("dialects", "check", stdin=lines(ROW, {**ROW, "text": f"Hi.{KIMI.sample}", "content": "Hi."}))
    assert (ran.status, ran.err) == (0, "2 of 2 right\n")
    head, *rows = ran.out.splitlines()
    assert head.split() == ["row", "dialect", "calls", "cut-proof", "text", "problems"]
    assert [row.split() for row in rows] == [[str(n), "kimi_k2", "right", "right", "right"] for n in (1, 2)]


def test_check_with_the_names_of_public_corpora(cli: Cli) -> None:
    row = {
        "generated_text": KIMI.sample.removeprefix("<think>"),
        "prompt_prefill": "<think>",
        "expected_calls": CALLS_OF_SAMPLE,
        "expected_content": "said elsewhere",
        "content_in_text": False,
        "expected_reasoning": "Two cities.",
        "dialect": "not looked at",
    }
    assert cli("dialects", "check", "--dialect=kimi_k2", stdin=lines(row)).status == 0


def wrong(**fields: Any) -> dict[str, Any]:
    return {**ROW, **fields}


OTHER = [{"name": "get_weather", "arguments": '{"city": "Rome"}'}, {"name": "ls"}]
TYPED = {
    "dialect": "qwen3_coder",
    "text": "<tool_call>\n<function=ls>\n<parameter=path>\n3\n</parameter>\n</function>\n</tool_call>",
    "calls": [{"name": "ls", "arguments": {"path": "3"}}],
}
PROBLEMS: dict[str, tuple[dict[str, Any], str]] = {
    "a call too many": (wrong(calls=[]), "expected 0 calls, got 2: get_weather, get_weather"),
    "no call": (wrong(text="Hello.", reasoning=None), "expected 2 calls, got 0: none"),
    "other arguments": (wrong(calls=OTHER), 'call 1: expected the arguments {"city": "Rome"}, got {"city": "Paris"}'),
    "no tools, so no types": (
        {**TYPED, "tools": None},
        'call 1: expected the arguments {"path":"3"}, got {"path": 3}; only `tools` in the line would tell its types',
    ),
    "another name": (wrong(calls=OTHER), "call 2: expected the name 'ls', got 'get_weather'"),
    "no JSON expected": (
        wrong(calls=[{"name": "get_weather", "arguments": "x"}] * 2),
        'call 1: expected the arguments "x", got {"city": "Paris"}',
    ),
    "cut off": (
        wrong(text=KIMI.sample[: KIMI.sample.rindex("Paulo")]),
        'call 2: it is cut off: {"city": "São',
    ),
    "other text": (wrong(content="Hi."), 'expected the text "Hi.", got ""'),
    "other reasoning": (wrong(reasoning=""), 'expected the reasoning "", got "Two cities."'),
    "no tool": (wrong(tools=[{}]), "a tool without a name"),
    "no text": ({"calls": []}, "missing required field `text`"),
    "no dialect": ({"text": "", "calls": []}, "it names no dialect (give --dialect NAME)"),
    "no such dialect": ({**ROW, "dialect": "kimik2"}, "no dialect is called 'kimik2' (did you mean 'kimi_k2'?)"),
}


@pytest.mark.parametrize(("row", "said"), PROBLEMS.values(), ids=PROBLEMS)
def test_check_tells_what_is_wrong(cli: Cli, row: dict[str, Any], said: str) -> None:
    ran = cli("dialects", "check", stdin=lines(ROW, row))
    assert ran.status == 1
    assert said in ran.out
    assert ran.err.startswith("error: 1 of 2 not read as expected\nhint: ")
    second = json.loads(cli("dialects", "check", "--json", stdin=lines(ROW, row)).out.splitlines()[1])
    assert any(said in problem for problem in second["problems"])


def test_check_reads_on_after_a_line_that_is_no_json(cli: Cli) -> None:
    ran = cli("dialects", "check", stdin="{\n\n" + lines(ROW))
    assert [line.split()[:2] for line in ran.out.splitlines()[1:]] == [["1", "–"], ["3", "kimi_k2"]]
    assert cli("dialects", "check", stdin="\n").err.startswith("error: there is no line in -\nhint: a line is {")


def test_check_finds_what_depends_on_the_cuts(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    class Hasty(il.Parser):
        def feed(self, text: str) -> list[Any]:
            return super().feed(text.removeprefix("functions."))

    monkeypatch.setattr(il, "Parser", Hasty)
    ran = cli("dialects", "check", "--cuts=40", "--seed=3", stdin=lines(ROW))
    assert ran.status == 1
    assert ran.out.splitlines()[1].split()[:5] == ["1", "kimi_k2", "right", "WRONG", "right"]
    assert "cut otherwise (random cut " in ran.out


def test_check_tells_its_progress(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "PROGRESS_INTERVAL_SECONDS", -1.0)
    assert cli("dialects", "check", "--cuts=0", stdin=lines(ROW, ROW)).err == (
        "checked 1 of 2\nchecked 2 of 2\n2 of 2 right\n"
    )


# ── draft ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

DRAFTED = {
    "hermes": ("json_envelope", '    open: "<tool_call>"', '"<|im_end|>"'),
    "qwen3_coder": ("tagged_params", "    lines: true", "The prompt ends in '<think>\\n': pass that as prefill."),
    "kimi": ("framed_json", '    header: "functions.{name}:{n}"', '    args: "<|tool_call_argument_begin|>"'),
    "glm": ("tagged_params", 'value_open: ["\\n<arg_value>", "<arg_value>"]', '      end: "</arg_key>"'),
    "mistral": ("json_envelope", '    id_keys: "id"', "</s> stands for the eos_token"),
}


def test_every_template_is_drafted() -> None:
    assert {path.stem for path in TEMPLATES.glob("*.jinja")} == set(DRAFTED)


@pytest.mark.parametrize("name", DRAFTED)
def test_draft(cli: Cli, tmp_path: Path, name: str) -> None:
    ran = cli("dialects", "draft", TEMPLATES / f"{name}.jinja")
    assert (ran.status, ran.err.splitlines()[0]) == (0, "the draft reads what the template writes: 2 of 2 calls")
    shape, *said = DRAFTED[name]
    assert f"\n  {shape}:\n" in ran.out
    assert all(words in ran.out for words in said)
    dialect = il.load_dialect(ran.out)
    assert dialect.name == name
    reply = il.parse(dialect.sample, dialect)
    assert [call.name for call in reply.calls] == ["get_forecast", "list_places"]
    assert reply.text == CONTENT
    output = tmp_path / "draft.yaml"
    assert cli("dialects", "draft", TEMPLATES / f"{name}.jinja", "-o", output).out == ""
    assert output.read_text("utf-8") == ran.out


NOT_GUESSED = {"functionary_v32", "minimax_m3", "muse", "step3"}
"""What they write cannot be told from one turn, or has no shape of its own."""


def turn_of(dialect: il.Dialect) -> ProbeResult:
    """A turn as a template of this dialect's model would write it."""
    ids = CALL_ID_SETS[1] if dialect is KIMI else CALL_ID_SETS[0]
    calls = tuple(ProbeCall(name, args, id) for (name, args), id in zip(CALLS, ids, strict=True))
    thinking = [Reasoning(THINKING)] if dialect.thinking else []
    written = [il.Call(call.id, call.name, json.dumps(call.args)) for call in calls]
    role, end = "<|im_start|>assistant\n", "<|im_end|>\n"
    text = il.render(il.Reply(parts=[*thinking, Text(CONTENT), *written]), dialect)
    return ProbeResult(role + text + end, role, role + CONTENT + end, calls, False)


@pytest.mark.parametrize("dialect", [one for one in il.dialects() if one.shape], ids=lambda dialect: dialect.name)
def test_what_dialects_write_is_guessed(dialect: il.Dialect) -> None:
    probed = turn_of(dialect)
    found = guess_dialect(probed)
    drafted = with_sample(found.build_dialect("x")) if found.shape else None
    works = drafted is not None and not round_trip_problems(drafted, probed, found)
    assert works == (dialect.name not in NOT_GUESSED)


def test_any_turn_is_guessed_or_not() -> None:
    """Whatever a template writes, it is no reason to fail otherwise than by saying so."""
    dice = random.Random(0)
    turns = [turn_of(dialect) for dialect in il.dialects() if dialect.shape]
    for _ in range(300):
        probed = dice.choice(turns)
        turn = list(probed.turn)
        for _ in range(dice.randint(1, 4)):
            at = dice.randrange(len(turn))
            turn[at : at + dice.choice((0, 1, 5, 20))] = dice.choice(("", "<", ">", "{", "]", '"', "\n", "$", "{name}"))
        opening, plain = dice.choice(((probed.generation_prompt, probed.plain_turn), ("", "")))
        probed = dataclasses.replace(probed, turn="".join(turn), generation_prompt=opening, plain_turn=plain)
        found = guess_dialect(probed)
        if found.shape is not None:
            round_trip_problems(with_sample(found.build_dialect("x")), probed, found)


ONE_CALL = """{{ messages[-1].content }}
{%- for call in messages[-1].tool_calls or [] -%}
{%- if not loop.first %}{{ raise_exception('one call at a time') }}{% endif -%}
<call>{{ call.function | tojson }}</call>{% endfor %}"""
TEXT_ARGS = """{% for call in messages[-1].tool_calls or [] -%}
[[{{ call.function.name }}]]{{ '' + call.function.arguments }}
{%- endfor %}"""
NO_TEXT = """{{ 'Q: ' + messages[0].content }}{% if messages[1] %}
{%- if messages[1].content and messages[1].tool_calls %}{{ raise_exception('no text') }}{% endif -%}
{%- for call in messages[1].tool_calls or [] %}<f={{ call.function.name }}>{{ call.function.arguments | tojson }}</f>
{%- endfor %}{{ messages[1].content }}<end>{% endif %}"""
TOLERANT = {"one call": (ONE_CALL, 1), "arguments as text": (TEXT_ARGS, 2), "no text beside calls": (NO_TEXT, 2)}


@pytest.mark.parametrize(("template", "calls"), TOLERANT.values(), ids=TOLERANT)
def test_templates_that_take_less(cli: Cli, template: str, calls: int) -> None:
    ran = cli("dialects", "draft", "-", stdin=template)
    assert ran.err.splitlines()[0] == f"the draft reads what the template writes: {calls} of {calls} calls", ran
    assert "# DRAFT: " in ran.out


FAILS = {
    "no Jinja": ("{% if %}", "line 1 of the template is not Jinja: "),
    "no template": ("name: x\nsummary: y\n", "this is no chat template: it has neither {{ nor {% in it"),
    "no calls": ("{{ messages[-1].content }}", "the template writes no calls; it may only know how to offer tools"),
    "refuses all": ("{{ raise_exception('not me') }}", "the template writes no calls: not me"),
    "no shape": (
        "{% for call in messages[-1].tool_calls or [] %}{{ call.function.name }};{% endfor %}",
        "no shape fits the calls that the template writes: get_forecast;list_places;",
    ),
    "not safe": ("{{ messages.__class__.__mro__ }}", "the template writes no calls: SecurityError: "),
}


@pytest.mark.parametrize(("template", "said"), FAILS.values(), ids=FAILS)
def test_templates_that_are_not_understood(cli: Cli, template: str, said: str) -> None:
    ran = cli("dialects", "draft", "-", stdin=template)
    assert (ran.status, ran.out) == (1, "")
    assert ran.err.startswith(f"error: {said}")
    assert "\nhint: " in ran.err


def test_a_draft_that_does_not_work_says_so(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(dialect: il.Dialect) -> il.Dialect:
        return dataclasses.replace(dialect, shape=get_dialect("kimi_k2").shape)

    monkeypatch.setattr("interlingua.cli.dialects.draft.with_sample", broken)
    ran = cli("dialects", "draft", TEMPLATES / "hermes.jinja")
    assert ran.status == 1
    assert "It does NOT WORK yet: " in ran.out.replace("\n# ", " ")
    assert ran.err.startswith("error: the draft does not read what the template writes: ")


def test_a_draft_that_cannot_be_written(cli: Cli, tmp_path: Path) -> None:
    ran = cli("dialects", "draft", TEMPLATES / "hermes.jinja", "-o", tmp_path)
    assert (ran.status, ran.err.splitlines()[0]) == (1, f"error: cannot write {tmp_path}: Is a directory")


def test_drafting_without_jinja(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    ran = cli("dialects", "draft", TEMPLATES / "hermes.jinja")
    assert (ran.status, ran.err) == (2, "error: drafting needs jinja2\nhint: pip install 'interlingua[draft]'\n")


def test_a_probe_says_what_was_refused() -> None:
    with pytest.raises(BadInput, match="writes no calls: never"):
        probe_template("{{ raise_exception('never') }}")


# ── the guide ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_guide_works(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file that the guide shows is made, and every command is run; what it prints stands in the guide."""
    monkeypatch.chdir(tmp_path)
    text = GUIDE.read_text("utf-8")
    files = dict(re.findall(r"`(\S+)`:\n\n```\w+\n(.*?)```", text, re.S))
    assert set(files) == {"acme.jinja", "acme.yaml", "recorded.jsonl"}
    for name, content in files.items():
        Path(name).write_text(content, encoding="utf-8")
    by_hand = il.load_dialect("acme.yaml")
    blocks = re.findall(r"```console\n\$ interlingua (.*?)\n(.*?)```", text, re.S)
    assert len(blocks) >= 4
    for command, printed in blocks:
        argv, _, redirected = command.partition(" > ")
        ran = cli(*argv.split())
        if redirected:
            Path(redirected).write_text(ran.out, encoding="utf-8")
            assert ran.err == printed
        elif "…" not in printed:
            assert ran.out + ran.err == printed, command
    drafted = il.load_dialect("acme.yaml")
    assert dataclasses.replace(drafted, summary=by_hand.summary, sample=by_hand.sample) == by_hand


def test_detect_is_listed_but_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dialects"]) == 0
    assert "told by the text" in capsys.readouterr().out
    assert main(["dialects", "show", "detect"]) == 2
    assert "hint: show the one that it finds" in capsys.readouterr().err
