"""Writes what in docs/reference is made from the code: `make docs`. A test compares."""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import json
import os
import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints
from unittest.mock import patch

import msgspec

import interlingua as il
from interlingua.agents import AGENTS, DEFAULT_CONTEXT_TOKENS, Agent, AgentTarget, format_shell_command
from interlingua.cli import build_parser
from interlingua.cli.config.schema import struct_field_docs
from interlingua.cli.dialects.show import field_docs, format_value
from interlingua.core.findings import FINDING_KINDS
from interlingua.dialects.registry import get_dialect
from interlingua.dialects.validation import shape_name
from interlingua.dialects.yaml_loader import SHAPES
from interlingua.gateway.api.openapi import openapi_document
from interlingua.gateway.settings.schema import Capture, Log, RequestLimits, Rest, Retries, Settings, Timeouts, Upstream
from interlingua.gateway.settings.schema import Model as ModelEntry
from interlingua.gateway.settings.yaml_values import describe_type, unwrap_annotated
from interlingua.parsing.shapes.tagged_params.tag import Tag
from interlingua.upstreams import list_profiles
from interlingua.upstreams.model_overrides import MODEL_OVERRIDES, ModelOverride
from interlingua.upstreams.profile import UNKNOWN_PROFILE, Profile

REFERENCE_FOLDER = Path(__file__).parent / "reference"
PARITY_FOLDER = Path(__file__).parents[1] / "tests" / "data" / "parity"
PARITY_READ, PARITY_AGREED = 739, 480
"""Of the parity corpus: the inputs that we read, and those on which the engines agree. A test counts them again."""


def findings_page() -> str:
    rows = "\n".join(f"| `{kind}` | {meaning} |" for kind, meaning in FINDING_KINDS.items())
    return f"""# Findings

What is odd in a reply never raises. It has a defined result, and a finding that says what was seen, where, and what was
done: in `Reply.findings`, in `Translator.findings`, in the `finding:` lines of the command line, in `--explain`.
What is odd in a request's history is mended, and what [an upstream](upstreams.md) does not take is told otherwise, with
a finding, too.

| kind | what was seen, and what is done about it |
|---|---|
{rows}
"""


# ── dialects ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def dialects_page() -> str:
    all_dialects = il.dialects()
    rows = "\n".join(
        f"| [{dialect.name}](#{dialect.name}) | {escape_markdown(dialect.summary)} | {_shape_link(dialect)} |"
        for dialect in all_dialects
    )
    sections = "\n".join(_dialect_section(dialect) for dialect in all_dialects)
    detect = get_dialect("detect")
    return f"""# Dialects

All {len(all_dialects)} of them, in the order in which model ids are tried. `interlingua dialects show NAME` prints one
as a file to copy.

{wrap(f"`detect` is for models that nobody knows, {detect.summary}. {detect.caveats}")}

## What none of them can

- A marker is told by its characters. Where markers are **special tokens**, the same characters in an answer are
  dropped, with a finding. Where they are **ordinary text**, what leads to no call stays as it is, and a call of a tool
  that was not offered is text: so pass `tools`. A whole call of an offered tool that an answer only quotes is called.
- Special tokens have to arrive. A server that takes them out of the text leaves nothing to read.
- Inside a JSON string everything is data. A string that the model forgets to close swallows what follows.
- Where values have no types of their own and the tool's schema is not known, JSON is a value (`3`, `true`, `[…]`),
  and all else is a string.
- Where the prompt opens the thinking, only `prefill` can say so.

What else one of them cannot read right stands below, as its caveats.

## All of them

| dialect | who speaks it, and how | shape |
|---|---|---|
{rows}

{sections}"""


def _dialect_section(dialect: il.Dialect) -> str:
    facts = "".join(wrap(f"- {name}: {fact}") + "\n" for name, fact in _dialect_facts(dialect) if fact)
    fence = "````" if "```" in dialect.sample else "```"
    sample = f"\n{fence}\n{dialect.sample}\n{fence}\n" if dialect.sample else ""
    return f"## {dialect.name}\n\n{escape_markdown(dialect.summary)}\n\n{facts}{sample}"


def _dialect_facts(dialect: il.Dialect) -> Iterator[tuple[str, str]]:
    yield "models", ", ".join(map(inline_code, dialect.models)) or "every other"
    if dialect.shape is None:
        return
    yield "shape", _shape_link(dialect)
    yield "ids", _id_origin(dialect)
    thinking = dialect.thinking or tuple(filter(None, [getattr(dialect.shape, "thinking", None)]))
    yield "thinking", ", ".join(f"{inline_code(span.open)} … {inline_code(span.close)}" for span in thinking)
    yield "markers", "special tokens" if dialect.special_tokens else "ordinary text"
    yield "caveats", dialect.caveats


def _shape_link(dialect: il.Dialect) -> str:
    if dialect.shape is None:
        return ""
    name = shape_name(dialect.shape)
    return f"[{name}](shapes.md#{name})"


def _id_origin(dialect: il.Dialect) -> str:
    if all(call.id in dialect.sample for call in il.parse(dialect.sample, dialect).calls):
        return "the model's own"
    return {"call": "made, `call_` and 24 hex digits", "nine": "made, nine letters and digits"}[dialect.ids]


# ── shapes ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def shapes_page() -> str:
    sections = "\n".join(
        _fields_section(name, inspect.getdoc(inspect.getmodule(shape)) or "", shape) for name, shape in SHAPES.items()
    )
    return f"""# Shapes

A shape is a layout that several dialects share. These are the fields that a dialect has, in Python and in a YAML file
alike, with an example from one of ours. How to write a dialect is told [step by step](../guides/new-dialect.md).

Where a marker may have several spellings, all are read, and the first is written. A span is a pair
`["<think>", "</think>"]`, or a mapping with `open`, `close`, and the white space that the model writes `inside`, next
to both, and `after` the second one.

{_fields_section("dialect", "What every dialect has, whatever its shape.", il.Dialect)}
{_fields_section("tag", inspect.getdoc(Tag) or "", Tag)}
{sections}"""


EMPTY_DEFAULTS = ("", (), False, None)
FIELDS_WITHOUT_EXAMPLE = ("sample", "caveats", "shape")
MAX_EXAMPLE_CHARS = 60
"""An example is the first that has no more characters than this, or else the shortest."""


def _fields_section(name: str, doc: str, cls: type[Any]) -> str:
    summary, _, details = doc.removeprefix(f"{name}: ").partition("\n\n")
    fields = "".join(
        wrap(f"- `{field.name}`: {_describe_field(field, cls)}") + "\n" for field in dataclasses.fields(cls)
    )
    return f"## {name}\n\n{summary}\n\n{details.strip()}\n\n{fields}".replace("\n\n\n\n", "\n\n")


def _describe_field(field: dataclasses.Field[Any], cls: type[Any]) -> str:
    """What the field means, what it may be, and what it is in one of our dialects."""
    sentences = [" ".join(field_docs(cls).get(field.name, "").split())]
    choices = get_args(get_type_hints(cls)[field.name])
    if choices and all(isinstance(choice, str) for choice in choices):
        sentences.append(f"One of {', '.join(map(inline_code, choices))}.")
    if field.default not in (*EMPTY_DEFAULTS, dataclasses.MISSING):
        sentences.append(f"Left out, it is {inline_code(format_value(field.default))}.")
    examples = [(format_value(value), name) for name, value in _field_examples(field, cls)]
    if examples:
        line, name = min(examples, key=lambda example: max(len(example[0]), MAX_EXAMPLE_CHARS))
        sentences.append(f"{name}: {inline_code(line)}")
    return " ".join(filter(None, sentences))


def _field_examples(field: dataclasses.Field[Any], cls: type[Any]) -> Iterator[tuple[str, Any]]:
    """What our dialects have in this field, if anything."""
    if field.name in FIELDS_WITHOUT_EXAMPLE:
        return
    for name, instance in _instances_of(cls):
        if (value := getattr(instance, field.name)) != field.default:
            yield name, value


def _instances_of(cls: type[Any]) -> Iterator[tuple[str, Any]]:
    """Every value of this class in our dialects."""
    for dialect in il.dialects():
        yield from ((dialect.name, value) for value in _nested_dataclasses(dialect) if type(value) is cls)


def _nested_dataclasses(value: Any) -> Iterator[Any]:
    yield value
    for field in dataclasses.fields(value):
        if dataclasses.is_dataclass(inner := getattr(value, field.name)):
            yield from _nested_dataclasses(inner)


# ── upstreams ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def upstreams_page() -> str:
    all_profiles = list_profiles()
    rows = "\n".join(
        f"| [{profile.name}](#{_anchor(profile.name)}) | {escape_markdown(profile.summary)} | {_hosts(profile)} |"
        for profile in all_profiles
    )
    sections = "\n".join(_upstream_section(one) for one in all_profiles)
    models = "\n".join(map(_model_row, MODEL_OVERRIDES))
    docs = field_docs(Profile)
    facts = "".join(
        wrap(f"- `{name}`: {' '.join(doc.split())}{_default_note(name)}") + "\n" for name, doc in docs.items()
    )
    return f"""# Upstreams

How each upstream wants to be asked, where that is not what everybody takes. Requests are adapted to it, with a finding
for all that is lost. Where each fact is from stands in `src/interlingua/upstreams/catalog.py`. Models of one upstream
differ, too: what is told here is true of those that agents use today, and [some models](#models) have ways of their
own.

| upstream | what it is | where it is served |
|---|---|---|
{rows}

An upstream that is none of these is `any`: it has every field as it is when left out.

## Fields

{facts}
## Models

What these models want, wherever they are served, or at one upstream. It comes on top of what the upstream wants.

| models | at | what is different |
|---|---|---|
{models}

{sections}"""


def _model_row(override: ModelOverride) -> str:
    changes = ", ".join(f"`{name}`: {inline_code(format_value(value))}" for name, value in override.changes.items())
    return f"| {', '.join(map(inline_code, override.ids))} | {', '.join(override.upstreams) or 'any'} | {changes} |"


def _upstream_section(profile: Profile) -> str:
    fields = (field.name for field in msgspec.structs.fields(Profile) if field.name not in ("name", "summary", "hosts"))
    changed = [
        (name, getattr(profile, name)) for name in fields if getattr(profile, name) != getattr(UNKNOWN_PROFILE, name)
    ]
    facts = "".join(f"- `{name}`: {inline_code(format_value(value))}\n" for name, value in changed)
    return f"## {profile.name}\n\n{facts}"


def _default_note(name: str) -> str:
    default = getattr(UNKNOWN_PROFILE, name)
    return f" Left out, it is {inline_code(format_value(default))}." if default not in ((), "") else ""


def _hosts(profile: Profile) -> str:
    return ", ".join(map(inline_code, profile.hosts)) or "anywhere: it has to be named"


def _anchor(heading: str) -> str:
    return heading.replace(".", "")


# ── parity ────────────────────────────────────────────────────────────────────────────────────────────────────────────


AS_TEXT_PREFIX = "text: "
"""What reasons begin with where a marker stays in the text."""


def parity_page() -> str:
    rows = "\n".join(
        f"| {family} | {', '.join(cases)} | {escape_markdown(reason)} |" for family, reason, cases in _parity_reasons()
    )
    return f"""# Where we answer otherwise than the engines

[ai-dynamo/dynamo](https://github.com/ai-dynamo/dynamo) (Apache-2.0) keeps a public corpus of what models write, with
what three engines made of it: Dynamo, vLLM and SGLang. That is captured behaviour, not truth; but where engines agree,
one needs a reason to differ. `tests/dialects/test_corpus.py` reads {PARITY_READ} of its inputs whole, in pieces and per
character. On {PARITY_AGREED} of them two or three engines read the family and agree: there the calls are compared. The
corpus is no part of this project, and the test is skipped where it does not lie beside the checkout.

These are all the cases with another answer, and those where a marker stays in the text on purpose, *as text*.

| family | case | why |
|---|---|---|
{rows}
"""


def _parity_reasons() -> Iterator[tuple[str, str, list[str]]]:
    """Each family's reasons, and the cases that have them."""
    for path in sorted(PARITY_FOLDER.glob("*.toml")):
        cases: dict[str, list[str]] = {}
        for case, reason in tomllib.loads(path.read_text(encoding="utf-8")).items():
            explanation = (
                f"*as text*: {reason.removeprefix(AS_TEXT_PREFIX)}" if reason.startswith(AS_TEXT_PREFIX) else reason
            )
            cases.setdefault(explanation, []).append(case.removeprefix("TOOLCALLING."))
        for reason, case_names in cases.items():
            yield path.stem, reason, case_names


# ── settings ──────────────────────────────────────────────────────────────────────────────────────────────────────────


EXAMPLE_SETTINGS_PATH = Path(__file__).parents[1] / "examples" / "interlingua.yaml"
NESTED_SETTINGS: dict[str, type[msgspec.Struct]] = {
    "upstreams.NAME": Upstream,
    "models.ID": ModelEntry,
    "timeouts": Timeouts,
    "retries": Retries,
    "rest": Rest,
    "limits": RequestLimits,
    "capture": Capture,
    "log": Log,
}
"""The settings that have settings in them, as a file has them."""


def settings_page() -> str:
    parts = "\n".join(f"## {name}\n\n{_settings_table(struct)}" for name, struct in NESTED_SETTINGS.items())
    return f"""# Settings

What may be set for `interlingua serve`, and what it is if it is left out. It is read from the file that `--config` or
`INTERLINGUA_CONFIG` names, else from `interlingua.yaml` in the working directory, else from
`~/.config/interlingua/interlingua.yaml`. With `--upstream URL` no file is needed. `interlingua config check` tells
what is wrong with it, and where; `interlingua config show` what is set in the end; `interlingua config schema` is for
editors.

- Times are in seconds.
- In texts, `${{NAME}}` is a variable of the environment, or of a file `.env` beside the settings or in the working
  directory; the environment comes first. One that is not set, or empty, is a mistake. `$$` is a dollar sign.
- Variables set things too, over the file: `INTERLINGUA_PORT=9000`, and with two underscores what stands deeper:
  `INTERLINGUA_LOG__FORMAT=json`. Flags come over both, and each is a variable as well: `INTERLINGUA_UPSTREAM`.
- A client's model id is looked for among the `models`: as it is, then as those with `*`, the longest first; then among
  the `tiers`; then it goes to the `default`.

```yaml
{EXAMPLE_SETTINGS_PATH.read_text(encoding="utf-8")}```

## All of them

{_settings_table(Settings)}
{parts}"""


def _settings_table(struct: type[msgspec.Struct]) -> str:
    docs = struct_field_docs(struct)
    rows = "".join(
        f"| `{field.name}` | {_type_cell(field.type)} | {_default(field)} | {escape_markdown(docs[field.name])} |\n"
        for field in msgspec.structs.fields(struct)
    )
    description_text = next(
        (base.__doc__ for base in struct.__mro__[: struct.__mro__.index(msgspec.Struct)] if base.__doc__), ""
    )
    head = "".join(
        f"{wrap(paragraph)}\n\n" for paragraph in inspect.cleandoc(description_text).split("\n\n") if paragraph
    )
    return f"{head}| name | what it is | left out | what it means |\n|---|---|---|---|\n{rows}"


def _type_cell(type_: Any) -> str:
    inner, _ = unwrap_annotated(type_)
    names = [
        name
        for name, part in NESTED_SETTINGS.items()
        if part in (inner, *get_args(inner), *_mapping_value_types(inner))
    ]
    type_name = "a mapping" if _mapping_value_types(inner) else describe_type(type_)
    return f"{type_name}: [{names[0]}](#{_anchor(names[0]).lower()})" if names else type_name


def _mapping_value_types(type_: Any) -> tuple[Any, ...]:
    """The types of what stands under names of the user's choice."""
    if get_origin(type_) is not dict:
        return ()
    values = get_args(type_)[1]
    return get_args(values) or (values,)


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "required"
    default = field.default_factory() if field.default is msgspec.NODEFAULT else field.default
    return inline_code(json.dumps(default)) if isinstance(default, str | bool | int | float) and default != "" else ""


# ── agents ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def agents_page() -> str:
    sections = "\n".join(_agent_section(agent) for agent in AGENTS.values())
    return f"""# Agents

How coding agents are pointed at the gateway. `interlingua run NAME` does it for one run, with a gateway of its own: it
sets the agent's environment, puts what else it needs into a temporary folder, and changes nothing of yours. For a
gateway that runs already, paste what stands below: `MODEL` is what the gateway is asked for, `KEY` one of its `keys`,
or any word if it has none. {DEFAULT_CONTEXT_TOKENS} is for how many tokens the model has room, as `run --context` sets
it: agents shorten the conversation before it is full, so set what is true of your model. Qwen Code cannot be told; it
goes by the model's name. `make e2e` runs each of these agents with each of its APIs.

{sections}"""


def _agent_section(agent: Agent) -> str:
    target = AgentTarget(gateway_url="http://127.0.0.1:8484", api=agent.apis[0], model="MODEL", key="KEY", folder=".")
    setup = agent.setup(target)
    printed_files = {} if setup.override_argv else setup.files
    files = "".join(f"`{name}`:\n\n```\n{text.strip()}\n```\n\n" for name, text in printed_files.items())
    unset = (
        wrap(f"Not to be set: {', '.join(map(inline_code, setup.unset_variables))}.") + "\n"
        if setup.unset_variables
        else ""
    )
    apis = ", ".join(map(inline_code, agent.apis))
    return f"""## {agent.title}

`npm install -g {agent.package}`, then `interlingua run {agent.name}`. APIs (`--api`): {apis}.

{files}```sh
{format_shell_command(setup)}
```
{unset and chr(10) + unset}"""


# ── the gateway's paths ───────────────────────────────────────────────────────────────────────────────────────────────


def openapi_page() -> str:
    return json.dumps(openapi_document(), indent=2, ensure_ascii=False) + "\n"


# ── the command line ──────────────────────────────────────────────────────────────────────────────────────────────────


def commands_page() -> str:
    sections = "\n".join(
        f"## `{parser.prog}`\n\n```text\n{_help_text(parser)}```\n" for parser in _parsers(build_parser())
    )
    return f"""# Commands

Every command, with the text of its `--help`.

{sections}"""


def _parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """The parser, and those of its commands and their commands."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from _parsers(inner)


def _help_text(parser: argparse.ArgumentParser) -> str:
    """The help at a fixed width, whatever the width of the terminal."""
    with patch.dict(os.environ, {"COLUMNS": "100"}):
        return parser.format_help()


# ── Markdown ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def wrap(text: str) -> str:
    """A paragraph or a list item in lines of one width."""
    indent = "  " if text.startswith("- ") else ""
    return textwrap.fill(text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def escape_markdown(text: str) -> str:
    """Text that shows as it is."""
    return text.replace("<", "\\<").replace("|", "\\|")


def inline_code(text: str) -> str:
    """Text between as many backquotes as it takes."""
    escaped = text.replace("\n", "\\n")
    quotes = "``" if "`" in escaped else "`"
    return (
        f"{quotes} {escaped} {quotes}"
        if quotes in ("``",) or escaped != escaped.strip()
        else f"{quotes}{escaped}{quotes}"
    )


PAGES = {
    "findings.md": findings_page,
    "dialects.md": dialects_page,
    "shapes.md": shapes_page,
    "upstreams.md": upstreams_page,
    "parity.md": parity_page,
    "settings.md": settings_page,
    "agents.md": agents_page,
    "commands.md": commands_page,
    "openapi.json": openapi_page,
}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (REFERENCE_FOLDER / name).write_text(page(), encoding="utf-8")
