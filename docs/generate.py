"""Generate docs/reference from the code, and the diagrams: `make docs`. A test checks that the pages are up to date."""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import json
import os
import re
import textwrap
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints
from unittest.mock import patch

import msgspec

import interlingua as il
from docs.completion import completion_scripts
from docs.diagrams import draw
from docs.request_fields import FIELDS, translate_field
from docs.verification_page import verification_page
from interlingua import events, trace
from interlingua.agents import AGENTS, DEFAULT_CONTEXT_TOKENS, Agent, AgentTarget, format_shell_command
from interlingua.cli import build_parser
from interlingua.cli.common.command_parser import CommandParser
from interlingua.cli.config.schema import struct_field_docs
from interlingua.cli.dialects.show import field_docs, format_value
from interlingua.common.typed_yaml import describe_type, unwrap_annotated
from interlingua.core.finding_severity import advice_for, severity_of
from interlingua.core.findings import FINDING_KINDS
from interlingua.dialects.quoting import find_unquotable
from interlingua.dialects.registry import get_dialect
from interlingua.dialects.validation import shape_name
from interlingua.dialects.yaml_loader import SHAPES
from interlingua.exports.formats.dialect_json import dialect_schema
from interlingua.gateway.api.openapi import openapi_document
from interlingua.gateway.settings.schema import (
    Capture,
    Cassettes,
    ClientLimits,
    Inspect,
    Log,
    RequestLimits,
    Rest,
    Retries,
    Settings,
    State,
    Timeouts,
    Upstream,
    WebFetch,
    WebSearch,
)
from interlingua.gateway.settings.schema import Model as ModelEntry
from interlingua.parsing.shapes.tagged_params.tag import Tag
from interlingua.upstreams import list_profiles
from interlingua.upstreams.model_overrides import MODEL_OVERRIDES, ModelOverride
from interlingua.upstreams.profile import UNKNOWN_PROFILE, Profile

REFERENCE_FOLDER = Path(__file__).parent / "reference"
PARITY_FOLDER = Path(__file__).parents[1] / "tests" / "data" / "parity"
PARITY_READ, PARITY_AGREED = 739, 480
"""Inputs of the parity corpus: the number that we parse, and the number on which engines agree. A test counts them."""


def findings_page() -> str:
    rows = "\n".join(
        f"| `{kind}` | {severity_of(kind)} | {meaning} | {advice_for(kind)} |"
        for kind, meaning in FINDING_KINDS.items()
    )
    return f"""# Findings

Irregularities in a reply never raise an exception. They have a defined result and a finding, which reports what was
found, where, and what was done about it. Findings are in `Reply.findings`, in `Translator.findings`, in the `finding:`
lines of the command line, and in `--explain`. Irregularities in the history of a request are repaired, and content that
[an upstream](upstreams.md) does not accept is converted, with a finding as well. `interlingua explain KIND` prints the
same as this page.

Severities: `info`: normalised, and the meaning is certain. `warning`: changed, dropped or inferred, so that the client
or the model may notice it. `error`: a call or a part of the reply is lost or incomplete.

| kind | severity | irregularity, and how it is handled | what you can do |
|---|---|---|---|
{rows}
"""


# ── dialects ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def dialects_page() -> str:
    all_dialects = il.dialects()
    rows = "\n".join(
        f"| [{dialect.name}](#{dialect.name}) | {escape_markdown(dialect.summary)} | {_shape_link(dialect)} | "
        f"{'; '.join(find_unquotable(dialect)) or '–'} |"
        for dialect in all_dialects
    )
    sections = "\n".join(_dialect_section(dialect) for dialect in all_dialects)
    detect = get_dialect("detect")
    return f"""# Dialects

All {len(all_dialects)} dialects, in the order in which model ids are matched. `interlingua dialects show NAME` prints
one as a YAML file to copy.

{wrap(f"For unknown models there is `detect`: {detect.summary}. {detect.caveats}")}

## Limits of all dialects

- A marker is recognised by its characters. If markers are **special tokens**, the same characters in an answer are
  dropped, with a finding. If they are **ordinary text**, markers that lead to no call stay in the text, and a call of a
  tool that was not offered is text: so pass `tools`. A complete call of an offered tool becomes a call even if the
  answer only quotes it.
- Special tokens must be in the text. If a server removes them, there is nothing to parse.
- Inside a JSON string everything is data. A string that the model does not close contains everything that follows,
  except in dialects with special tokens, if another call or nothing follows the end of its call.
- If values are untyped and the tool's schema is unknown, JSON becomes a value (`3`, `true`, `[…]`), and everything else
  a string.
- If the prompt opens the thinking, the parser knows it only from `prefill`.
- If a call is required, servers may constrain the model to write JSON. The parser accepts it in every dialect if it
  knows the `tool_choice`. Arguments without a name belong to the tool that the choice names, and their first key
  decides whether they fit.

Further limits of single dialects are listed below as caveats.

## List

The last column says which text, quoted in the value of a param, the notation of a dialect cannot carry: it could as
well be structure. `render` refuses such a value. If a model writes one, the call is incomplete and a finding says so
(`ambiguous-value`, `repeated-param`), with two exceptions: text that is, character by character, another valid call is
read as that call; and a closing marker at the end of a value is dropped as a doubled one (`stray-marker`), because
models do write it twice. Other texts of these kinds are carried exactly, among them whole calls of the same dialect.

| dialect | models and format | shape | text that its notation cannot carry |
|---|---|---|---|
{rows}

{sections}"""


def _dialect_section(dialect: il.Dialect) -> str:
    facts = "".join(wrap(f"- {name}: {fact}") + "\n" for name, fact in _dialect_facts(dialect) if fact)
    fence = "````" if "```" in dialect.sample else "```"
    sample = f"\n{fence}\n{dialect.sample}\n{fence}\n" if dialect.sample else ""
    return f"## {dialect.name}\n\n{escape_markdown(dialect.summary)}\n\n{facts}{sample}"


def _dialect_facts(dialect: il.Dialect) -> Iterator[tuple[str, str]]:
    no_models = "all others" if dialect.shape is None else "none yet: choose the dialect by its name"
    yield "models", ", ".join(map(inline_code, dialect.models)) or no_models
    if dialect.shape is None:
        return
    yield "shape", _shape_link(dialect)
    yield "ids", _id_origin(dialect)
    thinking = dialect.thinking or tuple(filter(None, [getattr(dialect.shape, "thinking", None)]))
    spans = _drop_respaced([f"{inline_code(span.open)} … {inline_code(span.close)}" for span in thinking])
    yield "thinking", ", ".join(spans)
    yield "markers", "special tokens" if dialect.special_tokens else "ordinary text"
    yield "caveats", dialect.caveats


def _drop_respaced(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the texts without those that differ from an earlier one only in white space."""
    by_tokens = {re.sub(r"\s|\\[nrt]", "", text): text for text in reversed(texts)}
    return tuple(text for text in dict.fromkeys(texts) if text in by_tokens.values())


def _shape_link(dialect: il.Dialect) -> str:
    if dialect.shape is None:
        return ""
    name = shape_name(dialect.shape)
    return f"[{name}](shapes.md#{name})"


def _id_origin(dialect: il.Dialect) -> str:
    if all(call.id in dialect.sample for call in il.parse(dialect.sample, dialect).calls):
        return "from the model"
    return {"call": "generated, `call_` and 24 hex digits", "nine": "generated, nine letters and digits"}[dialect.ids]


# ── shapes ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def shapes_page() -> str:
    sections = "\n".join(
        _fields_section(name, inspect.getdoc(inspect.getmodule(shape)) or "", shape) for name, shape in SHAPES.items()
    )
    return f"""# Shapes

A shape is a layout that several dialects share. This page lists the fields of dialects and shapes, which are the same
in Python and in a YAML file, with an example from a built-in dialect. [The guide](../guides/new-dialect.md) explains
how to write a dialect.

If a marker has several spellings, all are parsed, and the first is written. A span is a pair `["<think>", "</think>"]`,
or a mapping with `open`, `close`, and the white space that the model writes `inside` (next to both markers) and `after`
the second one.

{_fields_section("dialect", "Fields of every dialect, for any shape.", il.Dialect)}
{_fields_section("tag", inspect.getdoc(Tag) or "", Tag)}
{sections}"""


EMPTY_DEFAULTS = ("", (), False, None)
FIELDS_WITHOUT_EXAMPLE = ("sample", "caveats", "shape")
MAX_EXAMPLE_CHARS = 60
"""The example is the first one with at most this many characters, else the shortest."""


def _fields_section(name: str, doc: str, cls: type[Any]) -> str:
    summary, _, details = doc.removeprefix(f"{name}: ").partition("\n\n")
    fields = "".join(
        wrap(f"- `{field.name}`: {_describe_field(field, cls)}") + "\n" for field in dataclasses.fields(cls)
    )
    return f"## {name}\n\n{summary}\n\n{details.strip()}\n\n{fields}".replace("\n\n\n\n", "\n\n")


def _describe_field(field: dataclasses.Field[Any], cls: type[Any]) -> str:
    """Describe a field: its meaning, its allowed values, its default, and an example from a built-in dialect."""
    sentences = [" ".join(field_docs(cls).get(field.name, "").split())]
    choices = get_args(get_type_hints(cls)[field.name])
    if choices and all(isinstance(choice, str) for choice in choices):
        sentences.append(f"One of {', '.join(map(inline_code, choices))}.")
    if field.default not in (*EMPTY_DEFAULTS, dataclasses.MISSING):
        sentences.append(f"Default: {inline_code(format_value(field.default))}.")
    examples = [(format_value(value), name) for name, value in _field_examples(field, cls)]
    if examples:
        line, name = min(examples, key=lambda example: max(len(example[0]), MAX_EXAMPLE_CHARS))
        sentences.append(f"Example ({name}): {inline_code(line)}")
    return " ".join(filter(None, sentences))


def _field_examples(field: dataclasses.Field[Any], cls: type[Any]) -> Iterator[tuple[str, Any]]:
    """Yield dialect and value of this field, for built-in dialects that set it."""
    if field.name in FIELDS_WITHOUT_EXAMPLE:
        return
    for name, instance in _instances_of(cls):
        if (value := getattr(instance, field.name)) != field.default:
            yield name, _shorten_example(value)


def _shorten_example(value: Any) -> Any:
    """Return a value without spellings of a marker that differ only in white space."""
    if isinstance(value, tuple) and value and all(isinstance(item, str) for item in value):
        return _drop_respaced(value)
    if not dataclasses.is_dataclass(value):
        return value
    inner = {field.name: _shorten_example(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return dataclasses.replace(value, **inner) if not isinstance(value, type) else value


def _instances_of(cls: type[Any]) -> Iterator[tuple[str, Any]]:
    """Yield dialect and value of all instances of this class in the built-in dialects."""
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
    sections = "\n".join(_upstream_section(profile) for profile in all_profiles)
    models = "\n".join(map(_model_row, MODEL_OVERRIDES))
    docs = field_docs(Profile)
    facts = "".join(
        wrap(f"- `{name}`: {' '.join(doc.split())}{_default_note(name)}") + "\n" for name, doc in docs.items()
    )
    return f"""# Upstreams

Profiles of upstreams: how the requests that each one accepts differ from the common format. Requests are adapted, with
a finding for everything that is lost. `src/interlingua/upstreams/catalog.py` has the source of each fact. Models of one
upstream differ too: this page describes the models that agents use today, and [some models](#models) have their own
rules.

| upstream | description | hosts |
|---|---|---|
{rows}

Every other upstream is `any`: all its fields have their defaults.

## Fields

{facts}
## Models

Rules of single models, at any upstream or at one upstream. They are applied in addition to the upstream's profile.

| models | upstream | differences |
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
    return f" Default: {inline_code(format_value(default))}." if default not in ((), "") else ""


def _hosts(profile: Profile) -> str:
    return ", ".join(map(inline_code, profile.hosts)) or "any: set `profile`"


def _anchor(heading: str) -> str:
    return heading.replace(".", "")


# ── parity ────────────────────────────────────────────────────────────────────────────────────────────────────────────


AS_TEXT_PREFIX = "text: "
"""Prefix of reasons for cases in which a marker stays in the text."""


def request_fields_page() -> str:
    introduction = (
        "What becomes of each setting that the SDKs send, if the upstream has another API. On the client's own API, "
        "every field passes as it came. The table is for upstreams that accept every field of their API; what one of "
        "them does not accept is dropped or changed with a finding, see [upstreams](upstreams.md)."
    )
    tables = "\n\n".join(map(_request_fields_table, FIELDS))
    return f"""# Request fields

{wrap(introduction)}

- `field`: the setting is sent in this field.
- *dropped*: the API has no such setting. The finding `field-dropped` names it.
- *always*: every reply is as the field asks for.
- *refused*: the gateway answers 400, because a reply without it would be another one.
- `thinking-wish`: the amount of thinking is sent, but not exactly as requested.

{tables}
"""


def _request_fields_table(wire: str) -> str:
    targets = [target for target in FIELDS if target != wire]
    head = f"| {wire} | {' | '.join(targets)} |\n|---|---|---|"
    rows = [
        f"| `{field}` | {' | '.join(_describe_outcome(wire, field, target) for target in targets)} |"
        for field in FIELDS[wire]
    ]
    return "\n".join([f"## {wire}\n\n{head}", *rows])


def _describe_outcome(wire: str, field: str, target: str) -> str:
    outcome = translate_field(wire, field, target)
    if outcome.is_refused:
        return "*refused*"
    if outcome.is_silent:
        return "*always*"
    written = ", ".join(f"`{path}`" for path in outcome.written) or "*dropped*"
    kinds = [f"`{kind}`" for kind in outcome.kinds if kind != "field-dropped"]
    return f"{written} ({', '.join(kinds)})" if kinds else written


def parity_page() -> str:
    rows = "\n".join(
        f"| {family} | {', '.join(cases)} | {escape_markdown(reason)} |" for family, reason, cases in _parity_reasons()
    )
    return f"""# Differences from other engines

[ai-dynamo/dynamo](https://github.com/ai-dynamo/dynamo) (Apache-2.0) has a public corpus of model outputs, with the
results of three engines: Dynamo, vLLM and SGLang. The results are recorded behaviour, not necessarily correct; but if
the engines agree, a different result needs a reason. `tests/dialects/test_corpus.py` parses {PARITY_READ} of its inputs
whole, in pieces and per character. For {PARITY_AGREED} of them, two or three engines support the family and agree:
there the calls are compared. The corpus is not part of this project; the test is skipped if the corpus is not next to
the checkout.

The table lists all cases with a different result, and those in which a marker stays in the text on purpose (*as text*).

| family | case | reason |
|---|---|---|
{rows}
"""


def _parity_reasons() -> Iterator[tuple[str, str, list[str]]]:
    """Yield family, reason and the cases with this reason."""
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
    "client_limits": ClientLimits,
    "capture": Capture,
    "inspect": Inspect,
    "cassettes": Cassettes,
    "state": State,
    "web_search": WebSearch,
    "web_fetch": WebFetch,
    "log": Log,
}
"""Nested settings, by their path in the file."""


def settings_page() -> str:
    parts = "\n".join(f"## {name}\n\n{_settings_table(struct)}" for name, struct in NESTED_SETTINGS.items())
    return f"""# Settings

All settings of `interlingua serve`, with their defaults. The gateway reads the file that `--config` or
`INTERLINGUA_CONFIG` names, else `interlingua.yaml` in the working directory, else
`~/.config/interlingua/interlingua.yaml`. With `--upstream URL` no file is needed. `interlingua config check` reports
mistakes with their position, `interlingua config show` prints the effective settings, and `interlingua config schema`
prints a JSON schema for editors.

- Times are in seconds.
- In strings, `${{NAME}}` is an environment variable, or a variable in the file `.env` next to the settings or in the
  working directory; the environment has precedence. An unset or empty variable is an error. `$$` is a dollar sign.
- Environment variables override the file: `INTERLINGUA_PORT=9000`; two underscores separate nested names:
  `INTERLINGUA_LOG__FORMAT=json`. Flags override both. Each flag has a variable too: `INTERLINGUA_UPSTREAM`.
- A client's model id is looked up in `models`: first exact ids, then patterns with `*`, the longest first; then in
  `tiers`; then it goes to the upstream in `api_defaults` for the client's API, or to `default`.

```yaml
{EXAMPLE_SETTINGS_PATH.read_text(encoding="utf-8")}```

## Top level

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
    return f"{head}| name | type | default | description |\n|---|---|---|---|\n{rows}"


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
    """Return the value types of a mapping; an empty tuple for other types."""
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

How to point coding agents at the gateway. `interlingua run NAME` does it for one run, with its own gateway: it sets the
agent's environment, writes other files into a temporary folder, and leaves your settings unchanged. For a gateway that
is already running, paste the lines below: `MODEL` is a model id of the gateway, `KEY` one of its `keys`, or any text if
it has none. {DEFAULT_CONTEXT_TOKENS} is the context length of the model in tokens, as set by `run --context`: agents
compact the conversation before it is full, so use the value of your model. Qwen Code has no such setting; it uses the
model's name. `make e2e` runs each of these agents with each of its APIs.

{sections}"""


def _agent_section(agent: Agent) -> str:
    target = AgentTarget(gateway_url="http://127.0.0.1:8484", api=agent.apis[0], model="MODEL", key="KEY", folder=".")
    setup = agent.setup(target)
    printed_files = {} if setup.override_argv else setup.files
    files = "".join(f"`{name}`:\n\n```\n{text.strip()}\n```\n\n" for name, text in printed_files.items())
    unset = (
        wrap(f"Do not set: {', '.join(map(inline_code, setup.unset_variables))}.") + "\n"
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


# ── traces ────────────────────────────────────────────────────────────────────────────────────────────────────────────


TRACE_EXAMPLE = (
    'data: {"model":"kimi-k2","choices":[{"index":0,"delta":{"role":"assistant","content":"Hi <|tool_"}}]}\n\n',
    'data: {"model":"kimi-k2","choices":[{"index":0,"delta":{"content":"box|>"}}]}\n\n',
)


def trace_page() -> str:
    kinds = "\n".join(map(_trace_section, get_args(trace.TraceEvent)))
    roles = "".join(f"| `{role}` | {meaning} |\n" for role, meaning in trace.MARKER_ROLES.items())
    reasons = "".join(f"| `{reason}` | {meaning} |\n" for reason, meaning in trace.HOLD_REASONS.items())
    neutral = "".join(map(_neutral_event_row, [*get_args(events.ReplyEvent), events.Finding]))
    return f"""# Trace events

A trace shows what was done with each message of an upstream's reply, and why: the bytes received, the markers that the
parser saw, the text that it held back, the neutral events, and the bytes for the client. `interlingua translate
--explain` prints it for people. `interlingua translate --trace` prints it as JSON lines, and a program gets it from an
observer:

```python
import interlingua as il
from interlingua import trace


def observe(event: trace.TraceEvent) -> None:
    if isinstance(event, trace.HeldBack):
        print(event.message, event.text, event.reason)


translator = il.Translator(model="kimi-k2", observer=observe)
```

Every event has a `kind`, and the number of the `message` that it belongs to. Messages are counted from 1, comments
included; the end of the stream has a number of its own. A message begins with `MessageReceived` (or `InputEnded`) and
ends with `FramesSent`, so that a reader can show the two and everything between them side by side. An observer does not
disable the fast path: `Passed` reports it. Structured calls that the wire's reader holds back, because they have no
name yet, are not reported.

`trace.decode_trace` reads JSON lines. This is the trace of two chunks:

```json
{_trace_example()}```

{kinds}
## Roles of markers

| role | meaning |
|---|---|
{roles}
## Reasons for holding text back

| reason | meaning |
|---|---|
{reasons}
## Neutral events

The events of a reply on any wire, as `event` of `EventSent` and `Passed`. Their own field `event` has the name of the
type. A finding has no such field.

| event | fields |
|---|---|
{neutral}"""


def _trace_example() -> str:
    lines: list[str] = []
    translator = il.Translator(observer=lambda event: lines.append(trace.encode_trace_event(event).decode()))
    for message in TRACE_EXAMPLE:
        translator.feed(message.encode())
    return "".join(lines)


def _trace_section(struct: type[msgspec.Struct]) -> str:
    docs = struct_field_docs(struct)
    paragraphs = inspect.cleandoc(struct.__doc__ or "").split("\n\n")
    description = "\n\n".join(wrap(" ".join(paragraph.split())) for paragraph in paragraphs)
    fields = "".join(
        wrap(f"- `{field.name}`: {docs[field.name]}") + "\n"
        for field in msgspec.structs.fields(struct)
        if field.name != "message"
    )
    return f"## {struct.__name__}\n\n{description}\n\n{fields}".rstrip() + "\n"


def _neutral_event_row(struct: type[msgspec.Struct]) -> str:
    fields = ", ".join(f"`{field.name}`" for field in msgspec.structs.fields(struct))
    return f"| `{struct.__name__}` | {fields} |\n"


# ── the command line ──────────────────────────────────────────────────────────────────────────────────────────────────


def commands_page() -> str:
    sections = "\n".join(
        f"## `{parser.prog}`\n\n```text\n{_help_text(parser)}```\n" for parser in _parsers(build_parser())
    )
    return f"""# Commands

Every command, with the text of its `--help`.

{sections}"""


def _parsers(parser: CommandParser) -> Iterator[CommandParser]:
    """Yield the parser, and those of its commands and their commands."""
    parser.load()
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from _parsers(inner)


def _help_text(parser: argparse.ArgumentParser) -> str:
    """Return the help text at a fixed width, independent of the terminal."""
    with patch.dict(os.environ, {"COLUMNS": "80", "NO_COLOR": "1"}):
        return parser.format_help()


# ── Markdown ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def wrap(text: str) -> str:
    """Wrap a paragraph or a list item."""
    indent = "  " if text.startswith("- ") else ""
    return textwrap.fill(text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def escape_markdown(text: str) -> str:
    """Escape text so that Markdown shows it unchanged."""
    return text.replace("<", "\\<").replace("|", "\\|")


def inline_code(text: str) -> str:
    """Format text as inline code, with as many backquotes as necessary."""
    escaped = text.replace("\n", "\\n")
    quotes = "``" if "`" in escaped else "`"
    return (
        f"{quotes} {escaped} {quotes}"
        if quotes in ("``",) or escaped != escaped.strip()
        else f"{quotes}{escaped}{quotes}"
    )


def dialect_schema_page() -> str:
    """JSON Schema of `interlingua export json`."""
    return json.dumps(dialect_schema(), indent=2) + "\n"


PAGES = {
    "findings.md": findings_page,
    "dialects.md": dialects_page,
    "shapes.md": shapes_page,
    "upstreams.md": upstreams_page,
    "request-fields.md": request_fields_page,
    "parity.md": parity_page,
    "settings.md": settings_page,
    "agents.md": agents_page,
    "trace.md": trace_page,
    "commands.md": commands_page,
    "verification.md": verification_page,
    "openapi.json": openapi_page,
    "dialect.schema.json": dialect_schema_page,
}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (REFERENCE_FOLDER / name).write_text(page(), encoding="utf-8")
    for path, script in completion_scripts().items():
        path.write_text(script, encoding="utf-8")
    draw.write()
