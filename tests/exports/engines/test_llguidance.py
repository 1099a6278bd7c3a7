"""llguidance as the judge of exported Lark grammars.

Its lexer refuses a reply that ends with the beginning of a call, such as `[`, which is text to the other engines.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

import interlingua as il
from engines.judge import Judge
from interlingua.errors import NotExpressible, RenderError
from interlingua.exports.exporter import export
from interlingua.exports.matcher import Matcher
from interlingua.exports.reply_grammar import describe_reply
from interlingua.parsing.dialect import Dialect
from tests.support.budget import examples
from tests.support.export_cases import CHOICES, DIALECTS, HOSTILE_TOOLS, TOOLS, mutations, replies
from tests.support.grammar_judges import check_agreement_on_tool

pytestmark = pytest.mark.slow

loose = settings(max_examples=examples(30, 5), suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("choice", ["auto", "required"])
@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_llguidance_agrees_with_our_matcher(dialect: Dialect, choice: str, llguidance: Judge) -> None:
    try:
        grammar = export("lark", dialect, TOOLS, CHOICES[choice]).content
    except NotExpressible as error:
        pytest.skip(str(error))
    llguidance.compile(grammar)
    matcher = Matcher(describe_reply(dialect, TOOLS, CHOICES[choice]).grammar)

    @loose
    @given(st.data())
    def check(data: st.DataObject) -> None:
        reply = data.draw(replies(dialect, TOOLS, CHOICES[choice]))
        if dialect.router and not (reply.calls or reply.text):
            reject()
        try:
            written = il.render(reply, dialect)
        except RenderError:
            reject()
        mutated = data.draw(mutations(dialect, written))
        accepted, mutated_accepted = llguidance.accepts([written, mutated])
        assert accepted == matcher.accepts(written), written
        assert mutated_accepted <= matcher.accepts(mutated), mutated

    check()


@pytest.mark.parametrize("name", HOSTILE_TOOLS)
@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_hostile_tools(dialect: Dialect, name: str, llguidance: Judge) -> None:
    check_agreement_on_tool(llguidance, "lark", dialect, HOSTILE_TOOLS[name], examples(10, 3))
