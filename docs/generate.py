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
from interlingua.agents import AGENTS, CONTEXT, Agent, Target, by_hand
from interlingua.cli import build_parser
from interlingua.cli.config.schema import docs_of
from interlingua.cli.dialects.show import field_docs, on_one_line
from interlingua.core.findings import KINDS
from interlingua.dialects.registry import dialect_named
from interlingua.dialects.validation import shape_name
from interlingua.dialects.yaml_loader import SHAPES
from interlingua.gateway.api.openapi import description
from interlingua.gateway.settings.schema import Capture, Log, RequestLimits, Rest, Retries, Settings, Timeouts, Upstream
from interlingua.gateway.settings.schema import Model as ModelEntry
from interlingua.gateway.settings.yaml_values import expected, without_meta
from interlingua.parsing.shapes.tagged_params.tag import Tag
from interlingua.upstreams import profiles
from interlingua.upstreams.model_overrides import MODELS, Model
from interlingua.upstreams.profile import ANY, Profile

REFERENCE = Path(__file__).parent / "reference"
PARITY = Path(__file__).parents[1] / "tests" / "data" / "parity"
COMPARED, AGREED = 739, 480
"""Of the parity corpus: the inputs that we read, and those on which the engines agree. A test counts them again."""


def findings() -> str:
    rows = "\n".join(f"| `{kind}` | {meaning} |" for kind, meaning in KINDS.items())
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


def dialects() -> str:
    known = il.dialects()
    rows = "\n".join(
        f"| [{dialect.name}](#{dialect.name}) | {plain(dialect.summary)} | {_shape(dialect)} |" for dialect in known
    )
    sections = "\n".join(_dialect(dialect) for dialect in known)
    detect = dialect_named("detect")
    return f"""# Dialects

All {len(known)} of them, in the order in which model ids are tried. `interlingua dialects show NAME` prints one as a
file to copy.

{wrapped(f"`detect` is for models that nobody knows, {detect.summary}. {detect.caveats}")}

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


def _dialect(dialect: il.Dialect) -> str:
    facts = "".join(wrapped(f"- {name}: {fact}") + "\n" for name, fact in _facts(dialect) if fact)
    fence = "````" if "```" in dialect.sample else "```"
    sample = f"\n{fence}\n{dialect.sample}\n{fence}\n" if dialect.sample else ""
    return f"## {dialect.name}\n\n{plain(dialect.summary)}\n\n{facts}{sample}"


def _facts(dialect: il.Dialect) -> Iterator[tuple[str, str]]:
    yield "models", ", ".join(map(code, dialect.models)) or "every other"
    if dialect.shape is None:
        return
    yield "shape", _shape(dialect)
    yield "ids", _ids(dialect)
    thinking = dialect.thinking or tuple(filter(None, [getattr(dialect.shape, "thinking", None)]))
    yield "thinking", ", ".join(f"{code(span.open)} … {code(span.close)}" for span in thinking)
    yield "markers", "special tokens" if dialect.special_tokens else "ordinary text"
    yield "caveats", dialect.caveats


def _shape(dialect: il.Dialect) -> str:
    if dialect.shape is None:
        return ""
    name = shape_name(dialect.shape)
    return f"[{name}](shapes.md#{name})"


def _ids(dialect: il.Dialect) -> str:
    if all(call.id in dialect.sample for call in il.parse(dialect.sample, dialect).calls):
        return "the model's own"
    return {"call": "made, `call_` and 24 hex digits", "nine": "made, nine letters and digits"}[dialect.ids]


# ── shapes ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def shapes() -> str:
    sections = "\n".join(
        _fields(name, inspect.getdoc(inspect.getmodule(shape)) or "", shape) for name, shape in SHAPES.items()
    )
    return f"""# Shapes

A shape is a layout that several dialects share. These are the fields that a dialect has, in Python and in a YAML file
alike, with an example from one of ours. How to write a dialect is told [step by step](../guides/new-dialect.md).

Where a marker may have several spellings, all are read, and the first is written. A span is a pair
`["<think>", "</think>"]`, or a mapping with `open`, `close`, and the white space that the model writes `inside`, next
to both, and `after` the second one.

{_fields("dialect", "What every dialect has, whatever its shape.", il.Dialect)}
{_fields("tag", inspect.getdoc(Tag) or "", Tag)}
{sections}"""


EMPTY = ("", (), False, None)
LONG = ("sample", "caveats", "shape")
ROOM = 60
"""An example is the first that has no more characters than this, or else the shortest."""


def _fields(name: str, doc: str, kind: type[Any]) -> str:
    about, _, more = doc.removeprefix(f"{name}: ").partition("\n\n")
    fields = "".join(wrapped(f"- `{field.name}`: {_field(field, kind)}") + "\n" for field in dataclasses.fields(kind))
    return f"## {name}\n\n{about}\n\n{more.strip()}\n\n{fields}".replace("\n\n\n\n", "\n\n")


def _field(field: dataclasses.Field[Any], kind: type[Any]) -> str:
    """What the field means, what it may be, and what it is in one of our dialects."""
    said = [" ".join(field_docs(kind).get(field.name, "").split())]
    choices = get_args(get_type_hints(kind)[field.name])
    if choices and all(isinstance(choice, str) for choice in choices):
        said.append(f"One of {', '.join(map(code, choices))}.")
    if field.default not in (*EMPTY, dataclasses.MISSING):
        said.append(f"Left out, it is {code(on_one_line(field.default))}.")
    given = [(on_one_line(value), name) for name, value in _given(field, kind)]
    if given:
        line, name = min(given, key=lambda found: max(len(found[0]), ROOM))
        said.append(f"{name}: {code(line)}")
    return " ".join(filter(None, said))


def _given(field: dataclasses.Field[Any], kind: type[Any]) -> Iterator[tuple[str, Any]]:
    """What our dialects have in this field, if anything."""
    if field.name in LONG:
        return
    for name, one in _uses(kind):
        if (value := getattr(one, field.name)) != field.default:
            yield name, value


def _uses(kind: type[Any]) -> Iterator[tuple[str, Any]]:
    """Every value of this class in our dialects."""
    for dialect in il.dialects():
        yield from ((dialect.name, value) for value in _parts(dialect) if type(value) is kind)


def _parts(value: Any) -> Iterator[Any]:
    yield value
    for field in dataclasses.fields(value):
        if dataclasses.is_dataclass(inner := getattr(value, field.name)):
            yield from _parts(inner)


# ── upstreams ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def upstreams() -> str:
    known = profiles()
    rows = "\n".join(f"| [{one.name}](#{_anchor(one.name)}) | {plain(one.summary)} | {_hosts(one)} |" for one in known)
    sections = "\n".join(_upstream(one) for one in known)
    models = "\n".join(map(_model, MODELS))
    docs = field_docs(Profile)
    facts = "".join(
        wrapped(f"- `{name}`: {' '.join(doc.split())}{_left_out(name)}") + "\n" for name, doc in docs.items()
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


def _model(row: Model) -> str:
    changes = ", ".join(f"`{name}`: {code(on_one_line(value))}" for name, value in row.changes.items())
    return f"| {', '.join(map(code, row.ids))} | {', '.join(row.upstreams) or 'any'} | {changes} |"


def _upstream(profile: Profile) -> str:
    fields = (field.name for field in msgspec.structs.fields(Profile) if field.name not in ("name", "summary", "hosts"))
    told = [(name, getattr(profile, name)) for name in fields if getattr(profile, name) != getattr(ANY, name)]
    facts = "".join(f"- `{name}`: {code(on_one_line(value))}\n" for name, value in told)
    return f"## {profile.name}\n\n{facts}"


def _left_out(name: str) -> str:
    default = getattr(ANY, name)
    return f" Left out, it is {code(on_one_line(default))}." if default not in ((), "") else ""


def _hosts(profile: Profile) -> str:
    return ", ".join(map(code, profile.hosts)) or "anywhere: it has to be named"


def _anchor(heading: str) -> str:
    return heading.replace(".", "")


# ── parity ────────────────────────────────────────────────────────────────────────────────────────────────────────────


TEXT = "text: "
"""What reasons begin with where a marker stays in the text."""


def parity() -> str:
    rows = "\n".join(
        f"| {family} | {', '.join(cases)} | {plain(reason)} |" for family, reason, cases in _parity_reasons()
    )
    return f"""# Where we answer otherwise than the engines

[ai-dynamo/dynamo](https://github.com/ai-dynamo/dynamo) (Apache-2.0) keeps a public corpus of what models write, with
what three engines made of it: Dynamo, vLLM and SGLang. That is captured behaviour, not truth; but where engines agree,
one needs a reason to differ. `tests/dialects/test_corpus.py` reads {COMPARED} of its inputs whole, in pieces and per
character. On {AGREED} of them two or three engines read the family and agree: there the calls are compared. The corpus
is no part of this project, and the test is skipped where it does not lie beside the checkout.

These are all the cases with another answer, and those where a marker stays in the text on purpose, *as text*.

| family | case | why |
|---|---|---|
{rows}
"""


def _parity_reasons() -> Iterator[tuple[str, str, list[str]]]:
    """Each family's reasons, and the cases that have them."""
    for path in sorted(PARITY.glob("*.toml")):
        cases: dict[str, list[str]] = {}
        for case, reason in tomllib.loads(path.read_text(encoding="utf-8")).items():
            why = f"*as text*: {reason.removeprefix(TEXT)}" if reason.startswith(TEXT) else reason
            cases.setdefault(why, []).append(case.removeprefix("TOOLCALLING."))
        for reason, found in cases.items():
            yield path.stem, reason, found


# ── settings ──────────────────────────────────────────────────────────────────────────────────────────────────────────


EXAMPLE = Path(__file__).parents[1] / "examples" / "interlingua.yaml"
PARTS: dict[str, type[msgspec.Struct]] = {
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


def settings() -> str:
    parts = "\n".join(f"## {name}\n\n{_settings(kind)}" for name, kind in PARTS.items())
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
{EXAMPLE.read_text(encoding="utf-8")}```

## All of them

{_settings(Settings)}
{parts}"""


def _settings(kind: type[msgspec.Struct]) -> str:
    docs = docs_of(kind)
    rows = "".join(
        f"| `{field.name}` | {_kind(field.type)} | {_default(field)} | {plain(docs[field.name])} |\n"
        for field in msgspec.structs.fields(kind)
    )
    about = next((one.__doc__ for one in kind.__mro__[: kind.__mro__.index(msgspec.Struct)] if one.__doc__), "")
    head = "".join(f"{wrapped(paragraph)}\n\n" for paragraph in inspect.cleandoc(about).split("\n\n") if paragraph)
    return f"{head}| name | what it is | left out | what it means |\n|---|---|---|---|\n{rows}"


def _kind(kind: Any) -> str:
    inner, _ = without_meta(kind)
    names = [name for name, part in PARTS.items() if part in (inner, *get_args(inner), *_values(inner))]
    words = "a mapping" if _values(inner) else expected(kind)
    return f"{words}: [{names[0]}](#{_anchor(names[0]).lower()})" if names else words


def _values(kind: Any) -> tuple[Any, ...]:
    """The types of what stands under names of the user's choice."""
    if get_origin(kind) is not dict:
        return ()
    values = get_args(kind)[1]
    return get_args(values) or (values,)


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "required"
    default = field.default_factory() if field.default is msgspec.NODEFAULT else field.default
    return code(json.dumps(default)) if isinstance(default, str | bool | int | float) and default != "" else ""


# ── agents ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def agents() -> str:
    sections = "\n".join(_agent(agent) for agent in AGENTS.values())
    return f"""# Agents

How coding agents are pointed at the gateway. `interlingua run NAME` does it for one run, with a gateway of its own: it
sets the agent's environment, puts what else it needs into a temporary folder, and changes nothing of yours. For a
gateway that runs already, paste what stands below: `MODEL` is what the gateway is asked for, `KEY` one of its `keys`,
or any word if it has none. {CONTEXT} is for how many tokens the model has room, as `run --context` sets it: agents
shorten what was said before that is full, so say what is true of your model. Qwen Code cannot be told; it goes by the
model's name. `make e2e` runs each of these agents with each of its APIs.

{sections}"""


def _agent(agent: Agent) -> str:
    target = Target(base="http://127.0.0.1:8484", api=agent.apis[0], model="MODEL", key="KEY", folder=".")
    setup = agent.setup(target)
    by_file = {} if setup.firm else setup.files
    files = "".join(f"`{name}`:\n\n```\n{text.strip()}\n```\n\n" for name, text in by_file.items())
    unset = wrapped(f"Not to be set: {', '.join(map(code, setup.unset))}.") + "\n" if setup.unset else ""
    apis = ", ".join(map(code, agent.apis))
    return f"""## {agent.title}

`npm install -g {agent.package}`, then `interlingua run {agent.name}`. APIs (`--api`): {apis}.

{files}```sh
{by_hand(setup)}
```
{unset and chr(10) + unset}"""


# ── the gateway's paths ───────────────────────────────────────────────────────────────────────────────────────────────


def openapi() -> str:
    return json.dumps(description(), indent=2, ensure_ascii=False) + "\n"


# ── the command line ──────────────────────────────────────────────────────────────────────────────────────────────────


def commands() -> str:
    sections = "\n".join(f"## `{parser.prog}`\n\n```text\n{_help(parser)}```\n" for parser in _parsers(build_parser()))
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


def _help(parser: argparse.ArgumentParser) -> str:
    """The help at a fixed width, whatever the width of the terminal."""
    with patch.dict(os.environ, {"COLUMNS": "100"}):
        return parser.format_help()


# ── Markdown ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def wrapped(text: str) -> str:
    """A paragraph or a list item in lines of one width."""
    indent = "  " if text.startswith("- ") else ""
    return textwrap.fill(text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def plain(text: str) -> str:
    """Text that shows as it is."""
    return text.replace("<", "\\<").replace("|", "\\|")


def code(text: str) -> str:
    """Text between as many backquotes as it takes."""
    shown = text.replace("\n", "\\n")
    marks = "``" if "`" in shown else "`"
    return f"{marks} {shown} {marks}" if marks in ("``",) or shown != shown.strip() else f"{marks}{shown}{marks}"


PAGES = {
    "findings.md": findings,
    "dialects.md": dialects,
    "shapes.md": shapes,
    "upstreams.md": upstreams,
    "parity.md": parity,
    "settings.md": settings,
    "agents.md": agents,
    "commands.md": commands,
    "openapi.json": openapi,
}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (REFERENCE / name).write_text(page(), encoding="utf-8")
