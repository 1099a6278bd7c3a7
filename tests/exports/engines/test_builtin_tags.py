"""xgrammar's built-in structural tags beside the exported ones: both judge the same texts."""

from __future__ import annotations

import json
from typing import Any

import pytest

import interlingua as il
from engines.builtin_tags import BUILTIN_TAGS, BuiltinTag
from engines.judge import Judge
from interlingua.core.reply import Part, Text
from interlingua.dialects.registry import get_dialect
from interlingua.exports.exporter import export
from tests.support.export_cases import call_id, closed, function

pytestmark = pytest.mark.slow

TOOLS = [
    function(
        "get_weather",
        closed(
            {
                "city": {"type": "string"},
                "days": {"type": "integer"},
                "hourly": {"type": "boolean"},
                "tags": {"type": "array", "items": {"type": "string"}},
            },
            "city",
        ),
    ),
    function("now", closed({})),
]
TEXTS: dict[str, list[Any]] = {
    "a call": [("get_weather", {"city": "Paris"})],
    "all types": [("get_weather", {"city": "Paris", "days": 3, "hourly": True, "tags": ["a", "b"]})],
    "two calls": [("get_weather", {"city": "Paris"}), ("now", {})],
    "no params": [("now", {})],
    "lines": [("get_weather", {"city": "a\nb\n\nc"})],
    "text and a call": ["Let me look.", ("get_weather", {"city": "Paris"})],
}
"""Texts that both tags should accept."""
WRONG_TEXTS: dict[str, list[Any]] = {
    "an unknown tool": [("get_wether", {"city": "Paris"})],
    "a missing param": [("get_weather", {"days": 3})],
    "a wrong type": [("get_weather", {"city": "Paris", "days": "soon"})],
    "an unknown param": [("get_weather", {"city": "Paris", "town": "Paris"})],
    "an empty reply": [],
}
"""Texts that neither should accept."""


def write(tag: BuiltinTag, parts: list[Any]) -> str:
    dialect = get_dialect(tag.dialect)
    written: list[Part] = []
    for number, part in enumerate(parts):
        if isinstance(part, str):
            written.append(Text(part))
        else:
            name, arguments = part
            written.append(il.Call(call_id(dialect, name, number), name, json.dumps(arguments)))
    return il.render(il.Reply(parts=written), dialect)


@pytest.mark.parametrize("tag", BUILTIN_TAGS, ids=lambda tag: tag.model)
def test_built_in_and_exported_tags_agree(tag: BuiltinTag, xgrammar: Judge) -> None:
    differing = []
    for name, parts in {**TEXTS, **WRONG_TEXTS}.items():
        choice = "auto" if name == "text and a call" else "required"
        text = write(tag, parts) if parts else ""
        xgrammar.compile(export("structural-tag", tag.dialect, TOOLS, choice).content)
        assert xgrammar.accepts([text]) == [name in TEXTS], name
        builtin = xgrammar.ask(do="builtin_tag", model=tag.model, tools=TOOLS, tool_choice=choice, reasoning=False)
        xgrammar.compile(builtin)
        around = (tag.before, tag.after) if choice == "required" else (tag.before_text, "")
        if xgrammar.accepts([around[0] + text + around[1]]) != [name in TEXTS]:
            differing.append(name)
    assert tuple(differing) == tag.differs
    assert bool(tag.reason) >= bool(tag.differs or tag.before or tag.after)
