"""Tests of docs/reference: the pages are up to date, links work, and the caveats of dialects are true."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import interlingua as il
from docs.generate import PAGES, PARITY_AGREED, PARITY_READ, REFERENCE_FOLDER
from interlingua.cli.dialects.show import field_docs
from interlingua.dialects.registry import get_dialect
from interlingua.dialects.yaml_loader import SHAPES
from interlingua.gateway.settings.schema import Settings
from interlingua.parsing.shapes.tagged_params.tag import Tag
from tests.dialects.test_corpus import CORPUS, PARITY_ROWS, agreement
from tests.support.harness import tool
from tests.support.paths import ROOT

DOCS = REFERENCE_FOLDER.parent
TOOLS = [tool("save", {"s": "string", "t": "string"}), tool("ls", ["path"]), {"function": {"name": "new"}}]


@pytest.mark.parametrize(("name", "page"), PAGES.items(), ids=PAGES)
def test_reference_page_is_up_to_date(name: str, page: Callable[[], str]) -> None:
    assert (REFERENCE_FOLDER / name).read_text(encoding="utf-8") == page(), "run: make docs"


def test_every_page_is_generated() -> None:
    assert {path.name for path in REFERENCE_FOLDER.iterdir()} == set(PAGES)


@pytest.mark.parametrize("kind", [Tag, *SHAPES.values()], ids=lambda kind: str(kind.__name__))
def test_every_field_has_a_docstring(kind: type[Any]) -> None:
    assert [field.name for field in dataclasses.fields(kind) if field.name not in field_docs(kind)] == []


def test_architecture_names_every_top_level_folder() -> None:
    named = set(re.findall(r"\b([a-z_]+)/", (DOCS.parent / "ARCHITECTURE.md").read_text(encoding="utf-8")))
    package = DOCS.parent / "src" / "interlingua"
    assert {path.parent.name for path in package.glob("*/__init__.py")} <= named


def test_links_have_targets() -> None:
    for path in (*DOCS.parent.glob("*.md"), *DOCS.rglob("*.md")):
        for link, place in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", path.read_text(encoding="utf-8")):
            target = path.parent / link if link else path
            assert target.exists(), f"{path.name}: {link}"
            assert not place or place in _places(target), f"{path.name}: {link}#{place}"


def _places(page: Path) -> list[str]:
    """Return the anchors of a page, made from its headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.M)
    return [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings]


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not next to this checkout")
def test_numbers_of_parity_corpus() -> None:
    assert len(PARITY_ROWS) == PARITY_READ
    assert sum(agreement(row) is not None for row in PARITY_ROWS) == PARITY_AGREED


# ── caveats of dialects ──────────────────────────────────────────────────────────────────────────────────────────────

BARE = '{"name": "ls", "arguments": {"path": "."}}'
LONG = json.dumps({"s": "x" * il.Limits().header})
CAVEAT_CASES: dict[str, tuple[str, str, list[str]]] = {
    # input, text of the reply, and the arguments of the calls
    "minimax_m3": (
        ']<]minimax[>[<tool_call>]<]minimax[>[<invoke name="new">]<]minimax[>[<i>3]<]minimax[>[</i>]<]minimax[>[<o>'
        "]<]minimax[>[</o>]<]minimax[>[</invoke>]<]minimax[>[</tool_call>",
        "",
        ['{"i": 3, "o": {}}'],
    ),
    "lfm2": (
        "<|tool_call_start|>[save(s='f(a='1', t='2')')]<|tool_call_end|>",
        "",
        ['{"s": "f(a=\'1", "t": "2\')"}'],
    ),
    "pythonic": ('[save(s="f("a"), g")]', ', g")]', ['{"s": "f(\\"a"}']),
    "gemma4": (
        '<|tool_call>call:save{s:<|"|>say <|"|>hi<|"|>, t:no<|"|>}<tool_call|>',
        "",
        ['{"s": "say \\"hi", "t": "no"}'],
    ),
    "functiongemma": ("<start_function_call>call:new{s:<escape>3<escape>}<end_function_call>", "", ['{"s": 3}']),
    "llama3_json": (f"So: {BARE}.\n{BARE}", f"So: {BARE}.", ['{"path": "."}']),
    "xlam": (f"So: {BARE}.\n{BARE}", f"So: {BARE}.", ['{"path": "."}']),
    "phi4": (f"So: {BARE}.\n{BARE}", f"So: {BARE}.", ['{"path": "."}']),
    "mistral_v3": (f'[TOOL_CALLS][{{"name": "save", "arguments": {LONG}, "id": "VvvODy9mT"}}]', "", [LONG]),
    "granite3": ("Say Here is my thought process: no. Here is my response: <response> yes.", "Say  yes.", []),
    "tool_calls_array": (
        "Say Here are my reasoning steps:\nno. [BEGIN FINAL RESPONSE] <answer> yes.",
        "Say  yes.",
        [],
    ),
    "ernie45": ("Write <response> here.", "Write  here.", []),
    "functionary_v32": ('>>>all\nType:\n>>>all\n>>>ls\n{"path": "."}', "Type:\n", ['{"path": "."}']),
}


@pytest.mark.parametrize("name", CAVEAT_CASES)
def test_caveats(name: str) -> None:
    text, reply_text, arguments = CAVEAT_CASES[name]
    reply = il.parse(text, name, tools=TOOLS)
    assert (reply.text, [call.arguments for call in reply.calls]) == (reply_text, arguments)
    assert not any(call.id in text for call in reply.calls)


def test_every_caveat_has_a_test() -> None:
    with_caveats = {dialect.name for dialect in il.dialects() if dialect.caveats}
    assert with_caveats == CAVEAT_CASES.keys()
    assert get_dialect("detect").caveats


def test_every_nested_setting_has_a_section() -> None:
    page = (ROOT / "docs/reference/settings.md").read_text(encoding="utf-8")
    nested = [field.name for field in msgspec.structs.fields(Settings) if isinstance(field.default, msgspec.Struct)]
    assert "client_limits" in nested
    assert [name for name in nested if f"\n## {name}\n" not in page] == []
