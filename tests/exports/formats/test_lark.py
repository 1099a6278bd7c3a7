"""Lark grammars: free text and its end as one lexeme, and what the lexer of llguidance cannot tell apart."""

from __future__ import annotations

from interlingua.errors import NotExpressible
from interlingua.exports.exporter import export
from interlingua.parsing.dialect import Dialect
from tests.support.export_cases import DIALECTS, TOOLS, closed, function

MIXED = [function("f", closed({"mix": {"type": ["string", "number"]}}))]
NOT_CARRIED = {"hyperclovax", "inkling", "kimi_k3", "minicpm5"}


def test_a_text_and_its_end_are_one_lazy_lexeme() -> None:
    tool = function("f", closed({"city": {"type": "string"}}, "city"))
    lines = export("lark", "qwen3_coder", [tool], "required", thinking=False).content.splitlines()
    assert lines[0] == "%llguidance {}"
    assert any("[lazy]: TEXT0 " in line for line in lines)


def test_a_literal_before_alternatives_is_part_of_them() -> None:
    grammar = export("lark", "deepseek_v4", MIXED, "required", thinking=False).content
    assert '("\\n<｜DSML｜parameter name=\\"mix\\" string=\\"true\\">"' in grammar
    assert '"\\n" (' not in grammar


def is_carried(dialect: Dialect) -> bool:
    try:
        return all(export("lark", dialect, TOOLS, choice).text for choice in ("auto", "required"))
    except NotExpressible:
        return False


def test_what_lark_cannot_carry_is_known() -> None:
    assert {dialect.name for dialect in DIALECTS if not is_carried(dialect)} == NOT_CARRIED
