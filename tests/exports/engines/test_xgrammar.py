"""xgrammar as the judge of exported structural tags, in every dialect and with every tool choice."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

import interlingua as il
from engines.judge import Judge
from interlingua.core.reply import Reply
from interlingua.errors import NotExpressible, RenderError
from interlingua.exports.exporter import export
from interlingua.exports.matcher import Matcher
from interlingua.exports.reply_grammar import describe_reply
from interlingua.parsing.dialect import Dialect
from tests.support.budget import examples
from tests.support.export_cases import (
    CHOICES,
    DIALECTS,
    HOSTILE_TOOLS,
    TOOLS,
    find_problems,
    mutations,
    quotes_markup,
    replies,
    unenforced,
)

pytestmark = pytest.mark.slow

by_dialect = pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
by_choice = pytest.mark.parametrize("choice", CHOICES)
loose = settings(max_examples=examples(50, 25), suppress_health_check=list(HealthCheck))


@cache
def matcher(dialect: Dialect, choice: str) -> Matcher:
    return Matcher(describe_reply(dialect, TOOLS, CHOICES[choice]).grammar)


def rendered(dialect: Dialect, reply: Reply) -> str:
    if dialect.router and not (reply.calls or reply.text):
        reject()  # a reply of messages ends with text or calls
    try:
        return il.render(reply, dialect)
    except RenderError:
        reject()


@by_choice
@by_dialect
def test_xgrammar_accepts_what_render_writes(dialect: Dialect, choice: str, xgrammar: Judge) -> None:
    xgrammar.compile(export("structural-tag", dialect, TOOLS, CHOICES[choice]).content)

    @loose
    @given(st.data())
    def check(data: st.DataObject) -> None:
        reply = data.draw(replies(dialect, TOOLS, CHOICES[choice], markup=True))
        written = rendered(dialect, reply)
        if xgrammar.accepts([written]) == [False]:
            assert quotes_markup(reply, dialect) or dialect.name == "lines", written

    check()


@by_choice
@by_dialect
def test_what_xgrammar_accepts_is_read_as_complete_calls(dialect: Dialect, choice: str, xgrammar: Judge) -> None:
    xgrammar.compile(export("structural-tag", dialect, TOOLS, CHOICES[choice]).content)

    @loose
    @given(st.data())
    def check(data: st.DataObject) -> None:
        written = rendered(dialect, data.draw(replies(dialect, TOOLS, CHOICES[choice])))
        mutated = data.draw(mutations(dialect, written))
        [is_accepted] = xgrammar.accepts([mutated])
        assert is_accepted == matcher(dialect, choice).accepts(mutated), mutated
        if is_accepted:
            assert find_problems(mutated, dialect, TOOLS, CHOICES[choice]) == [], mutated

    check()


@pytest.mark.parametrize("name", HOSTILE_TOOLS)
@by_dialect
def test_hostile_tools(dialect: Dialect, name: str, xgrammar: Judge) -> None:
    tools: list[Any] = [HOSTILE_TOOLS[name]]
    try:
        exported = export("structural-tag", dialect, tools, "required")
    except NotExpressible:
        return
    xgrammar.compile(exported.content)

    @settings(max_examples=examples(20, 5), suppress_health_check=list(HealthCheck))
    @given(st.data())
    def check(data: st.DataObject) -> None:
        reply = data.draw(replies(dialect, tools, "required"))
        written = rendered(dialect, reply)
        if not unenforced(exported.notes):
            assert xgrammar.accepts([written]) == [True] or quotes_markup(reply, dialect), written

    check()
