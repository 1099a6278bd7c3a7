"""transformers as the judge of response templates: its parser and ours read the same from every fixture."""

from __future__ import annotations

import json
from typing import Any

import pytest

import interlingua as il
from engines.judge import Judge, Refused
from interlingua.errors import NotExpressible, RenderError
from interlingua.exports.exporter import export
from interlingua.exports.formats.dialect_json import write_dialect
from tests.support.export_cases import quotes_markup
from tests.support.harness import FIXTURES, Case, find_dialect, load_cases

pytestmark = pytest.mark.slow


def templates() -> dict[str, Any]:
    """Return the dialects that templates can carry."""
    found = {}
    for path in sorted(FIXTURES.glob("*.toml")):
        try:
            found[path.stem] = export("response-template", find_dialect(path.stem)).content
        except NotExpressible:
            continue
    return found


TEMPLATES = templates()
PIECE_SIZES = (0, 1, 7)
"""Characters that transformers receives at a time; 0: the whole text."""


def is_carried(case: Case) -> bool:
    """Return whether a template can carry a fixture.

    That is a reply just as the model's chat template writes it, to a request with tools. Templates have no rules for
    other spellings, for markers inside values, and for values whose types are not declared.
    """
    dialect = find_dialect(case.dialect)
    reply = il.parse(case.full_text, dialect, tools=case.offered_tools, prefill=case.prefill)
    if case.findings or (reply.calls and case.offered_tools is None):
        return False
    if quotes_markup(reply, dialect) or any(marker in reply.text + reply.reasoning for marker in dialect.markers):
        return False
    try:
        written = il.render(reply, dialect)
    except RenderError:
        return False
    return without_space(written) == without_space(without_noise(case.prefill + case.full_text, dialect))


def without_space(text: str) -> str:
    return "".join(text.split())


def without_noise(text: str, dialect: il.Dialect) -> str:
    for marker in dialect.noise:
        text = text.replace(marker, "")
    return text


def read_by_us(case: Case) -> dict[str, Any]:
    reply = il.parse(case.full_text, find_dialect(case.dialect), tools=case.offered_tools, prefill=case.prefill)
    calls = [(call.name, json.loads(call.arguments)) for call in reply.calls]
    return {"thinking": without_space(reply.reasoning), "content": without_space(reply.text), "calls": calls}


def read_by_transformers(judge: Judge, case: Case, piece_size: int) -> dict[str, Any]:
    message = judge.ask(
        do="parse", text=case.full_text, tools=case.offered_tools, prefix=case.prefill, piece_size=piece_size
    )
    functions = [call["function"] for call in message.get("tool_calls") or []]
    calls = [(function["name"], function["arguments"]) for function in functions]
    texts = {key: without_space(message.get(key) or "") for key in ("thinking", "content")}
    return {**texts, "calls": calls}


AFTER_A_CALL = "text behind a call without a closing marker"
BETWEEN_TAGS = "white space between tags, which the chat template does not write"
DIFFERENCES = {
    "deepseek_v41: spaced and unspaced tags in one call": BETWEEN_TAGS,
    "gemma4: a quoted number stays a string": "a value that does not fit its schema",
    "gemma4: an equals sign inside a key": "a key that is no identifier",
    "gigachat31: text before and after": AFTER_A_CALL,
    "granite3: text before and after": AFTER_A_CALL,
    "granite_20b_fc: text before and after": AFTER_A_CALL,
    "hy4: line breaks between the tags": BETWEEN_TAGS,
    "iquest_coder_v2: line breaks and white space between the tags": BETWEEN_TAGS,
    "iquest_q1: line breaks and white space between the tags": BETWEEN_TAGS,
    "kimi_k2: underscores, copied from another client's history": "a header of another client",
    "xlam: text after the calls": AFTER_A_CALL,
}
"""Other texts that templates cannot carry."""


@pytest.mark.parametrize("name", TEMPLATES)
def test_transformers_reads_fixtures_as_we_do(name: str, transformers: Judge) -> None:
    transformers.compile(TEMPLATES[name])
    for case in filter(is_carried, load_cases(name)):
        for piece_size in PIECE_SIZES:
            try:
                agrees = read_by_transformers(transformers, case, piece_size) == read_by_us(case)
            except Refused:
                agrees = False
            assert agrees != (str(case) in DIFFERENCES), (case.name, piece_size)


@pytest.mark.parametrize("name", TEMPLATES)
def test_transformers_reads_what_render_writes(name: str, transformers: Judge) -> None:
    transformers.compile(TEMPLATES[name])
    written = write_dialect(find_dialect(name))
    for example in written["examples"]:
        case = Case(name=example["name"], dialect=name, text=example["text"], tools=written["tools"], parts=[])
        for piece_size in PIECE_SIZES:
            assert read_by_transformers(transformers, case, piece_size) == read_by_us(case), (case.name, piece_size)


def test_number_of_templates_and_fixtures() -> None:
    carried = [str(case) for name in TEMPLATES for case in load_cases(name) if is_carried(case)]
    assert (len(TEMPLATES), len(carried) - len(DIFFERENCES)) >= (50, 117)
    assert set(DIFFERENCES) <= set(carried)
