"""GBNF: rules for text without certain strings, and the fields of requests to llama.cpp."""

from __future__ import annotations

import re

import pytest

from interlingua.exports.exporter import export
from interlingua.exports.formats.ebnf import text_as_states
from interlingua.exports.grammar import Text
from tests.support.export_cases import closed, function

WEATHER = function("get_weather", closed({"city": {"type": "string"}, "days": {"type": "integer"}}, "city"))
STEP = re.compile(r"\[(\^?)((?:\\.|[^\]])+)\] (\S+)")


def accepts(rules: dict[str, str], text: str) -> bool:
    """Follow the rules of a text: at each character, at most one of them applies."""
    name = next(iter(rules))
    for char in text:
        steps = (match.groups() for match in STEP.finditer(rules[name]))
        next_rules = [rule for sign, chars, rule in steps if (char in chars) is not bool(sign)]
        assert len(next_rules) < 2
        if not next_rules:
            return False
        name = next_rules[0]
    return rules[name].startswith('""')


@pytest.mark.parametrize(
    ("excluded", "text"),
    [
        (("</p>",), "a < b </ </p"),
        (("</p>",), "a</p>"),
        (("</p>",), "a<</p>"),
        (("aab",), "aaab"),
        (("abcd", "bce"), "abce"),
        (("abcd", "bce"), "abcabc"),
        (("x", "yz"), "y"),
        (("x", "yz"), "yyz"),
        (("ab", "ba"), "aabb"),
    ],
)
def test_states_of_a_search(excluded: tuple[str, ...], text: str) -> None:
    rules = dict(text_as_states("text", Text(excluded)))
    for end in range(len(text) + 1):
        beginning = text[:end]
        assert accepts(rules, beginning) is not any(string in beginning for string in excluded), beginning


def test_grammar_of_a_call() -> None:
    exported = export("gbnf", "hermes", [WEATHER], "required", parallel=False, thinking=False)
    root, *rules = exported.text.splitlines()
    assert root == (
        'root ::= "<tool_call>\\n{\\"name\\": \\"get_weather\\", \\"arguments\\": " '
        '"{" json-space-0 "\\"city\\"" json-space-0 ":" json-space-0 json-string-0-none-1 '
        '(json-space-0 "," json-space-0 "\\"days\\"" json-space-0 ":" json-space-0 '
        '"-"? ("0" | [1-9] [0-9]*))? json-space-0 "}" "}\\n</tool_call>"'
    )
    assert [rule.partition(" ")[0] for rule in rules] == ["json-space-0", "json-string-0-none-1"]


def test_a_lazy_grammar_begins_with_its_triggers() -> None:
    fields = export("gbnf-lazy", "hermes", [WEATHER]).content
    assert fields["grammar_lazy"] is True
    assert fields["grammar_triggers"] == [{"type": 1, "value": "<tool_call>"}]
    assert fields["preserved_tokens"] == ["<tool_call>"]
    assert fields["grammar"].startswith("root ::= ")


def test_a_required_call_needs_no_trigger() -> None:
    fields = export("gbnf-lazy", "hermes", [WEATHER], "required").content
    assert fields["grammar_lazy"] is False
    assert "grammar_triggers" not in fields


def test_what_gbnf_does_not_enforce_is_noted() -> None:
    tool = function("f", closed({"n": {"type": "integer", "minimum": 3}, "s": {"type": "string", "maxLength": 9999}}))
    assert export("structural-tag", "hermes", [tool]).notes == ()
    assert export("gbnf", "hermes", [tool]).notes == (
        "the limits of numbers are not enforced",
        "lengths above 512 are not enforced",
    )
