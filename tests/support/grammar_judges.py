"""Check of exported grammars by the engines that they are written for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

import interlingua as il
from engines.judge import Judge
from interlingua.errors import NotExpressible, RenderError
from interlingua.exports.exporter import export
from interlingua.exports.matcher import Matcher
from interlingua.exports.reply_grammar import describe_reply
from tests.support.export_cases import replies

__all__ = ["check_agreement_on_tool"]


def check_agreement_on_tool(
    judge: Judge, format: str, dialect: il.Dialect, tool: Mapping[str, Any], max_examples: int
) -> None:
    """Check that an engine compiles the grammar for a tool, and agrees with our matcher on what `render` writes.

    A tool that the format cannot express is passed over.
    """
    tools: list[Any] = [tool]
    try:
        judge.compile(export(format, dialect, tools, "required").content)
    except NotExpressible:
        return
    matcher = Matcher(describe_reply(dialect, tools, "required").grammar)

    @settings(max_examples=max_examples, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def check(data: st.DataObject) -> None:
        try:
            written = il.render(data.draw(replies(dialect, tools, "required")), dialect)
        except RenderError:
            reject()
        assert judge.accepts([written]) == [matcher.accepts(written)], written

    check()
