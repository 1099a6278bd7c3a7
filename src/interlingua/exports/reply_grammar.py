"""Grammar of a whole reply: thinking, text and calls, as the tool choice allows them.

Text contains no marker of the dialect, because it would be read as structure. With the tool choice `auto`, a marker
that begins a call may follow text, and then the rest of the call must follow. With `required`, a reply is thinking and
calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from interlingua.core.tool_choice import ToolChoice, ToolChoiceLike, read_tool_choice
from interlingua.core.tools import Tool, ToolSet, ToolsLike
from interlingua.errors import BadInput, NotExpressible, suggestion_hint
from interlingua.exports.calls import CallsGrammar
from interlingua.exports.grammar import (
    NOTHING,
    Grammar,
    GrammarBuilder,
    Node,
    Repeat,
    Text,
    choice,
    literal,
    optional,
    sequence,
    text_without,
)
from interlingua.exports.matcher import Matcher
from interlingua.parsing.dialect import Dialect, Span
from interlingua.parsing.shapes.channels.grammar import Channels
from interlingua.parsing.shapes.json_envelope.grammar import JsonEnvelope
from interlingua.parsing.shapes.line_params.grammar import LineParams
from interlingua.parsing.shapes.line_params.lines import NEWLINE
from interlingua.parsing.shapes.literals.pythonic_grammar import LIST_OPENER, Pythonic
from interlingua.parsing.shapes.tagged_params.grammar import TaggedParams
from interlingua.parsing.suffixes import find_suffix, with_suffix

__all__ = ["ReplyGrammar", "describe_reply"]


class ReplyGrammar(NamedTuple):
    """The grammar of a reply, and what else a format needs to know about it."""

    grammar: Grammar
    notes: tuple[str, ...]
    """Requirements that the grammar does not enforce."""
    triggers: tuple[str, ...] = ()
    """Texts that begin calls, if calls may follow other text."""
    triggered: Grammar | None = None
    """The grammar of the rest of the reply, from such a text on."""


def describe_reply(
    dialect: Dialect,
    tools: ToolsLike,
    tool_choice: ToolChoiceLike = None,
    *,
    parallel: bool = True,
    thinking: bool = True,
    prefill: str = "",
) -> ReplyGrammar:
    """Return the grammar of a reply in this dialect.

    Args:
        dialect: The dialect.
        tools: The tools on offer.
        tool_choice: The tools that the model may or must call; None is `auto`.
        parallel: True if the reply may contain several calls. One tool that must be called is called once.
        thinking: True if the reply may contain thinking.
        prefill: The beginning of the reply that the prompt already contains.

    Raises:
        NotExpressible: The dialect cannot write calls of these tools, or a reply with this beginning.
        BadInput: The tools or the tool choice are invalid.
    """
    chosen = read_tool_choice(tool_choice) or ToolChoice()
    offered = _offered_tools(tools, chosen)
    is_required = chosen.mode == "required"
    several = parallel and not (is_required and len(offered) == 1)
    builder = GrammarBuilder()
    if suffix := find_suffix(dialect, prefill):
        dialect = with_suffix(dialect, suffix)
    elif dialect.suffix:
        builder.note(f"tags have the suffix {dialect.suffix!r}; for another one, pass a prefill that has it")
    calls_grammar = CallsGrammar(dialect, builder)
    beginnings = calls_grammar.beginnings(offered)
    layout = _layout(dialect, thinking, beginnings)
    if not offered:
        return _finish(layout.text(), builder, prefill)
    calls = calls_grammar.calls(offered, several=several)
    if is_required:
        return _finish(layout.calls(calls), builder, prefill)
    reply = _finish(layout.text_or_calls(calls, several=several), builder, prefill)
    triggered = Grammar(layout.from_call(calls, several=several), builder.rules)
    return reply._replace(triggers=_triggers(dialect, beginnings), triggered=triggered)


def _offered_tools(tools: ToolsLike, chosen: ToolChoice) -> list[Tool]:
    """Return the tools that the model may call."""
    if chosen.mode == "none":
        return []
    if tools is None:
        raise BadInput("no tools: a grammar contains their names and params", "pass the tools of the request")
    offer = ToolSet(tools)
    unknown = [name for name in chosen.names if not offer.has(name)]
    if unknown:
        raise BadInput(
            f"the tool choice names an unknown tool: {unknown[0]!r}", suggestion_hint(unknown[0], offer.names)
        )
    offered = [tool for tool in offer.tools if not chosen.names or tool.name in chosen.names]
    if chosen.mode == "required" and not offered:
        raise BadInput("a call is required, but there are no tools", 'pass the tools, or the tool choice "auto"')
    return offered


def _triggers(dialect: Dialect, beginnings: Sequence[str]) -> tuple[str, ...]:
    """Return the markers that calls with these beginnings begin with; a whole beginning if it has no marker."""
    markers = [marker for marker in dialect.markers if marker != LIST_OPENER]
    found = (max((m for m in markers if text.startswith(m)), key=len, default=text) for text in beginnings)
    return tuple(dict.fromkeys(found))


def _finish(root: Node, builder: GrammarBuilder, prefill: str) -> ReplyGrammar:
    """Return the grammar of a reply without its beginning, which the prompt already contains."""
    if prefill:
        root = Matcher(Grammar(root, builder.rules)).remainder(prefill)
    if root == NOTHING:
        raise NotExpressible(f"no reply in this dialect begins with the prefill {prefill!r:.80}", "correct the prefill")
    return ReplyGrammar(Grammar(root, builder.rules), tuple(builder.notes))


# ── layouts of a reply ────────────────────────────────────────────────────────────────────────────────────────────────


class _Layout(Protocol):
    """Order of thinking, text and calls in a reply."""

    def text(self) -> Node:
        """Return the grammar of a reply without calls."""
        ...

    def calls(self, calls: Node) -> Node:
        """Return the grammar of a reply with calls and without text."""
        ...

    def text_or_calls(self, calls: Node, *, several: bool) -> Node: ...

    def from_call(self, calls: Node, *, several: bool) -> Node:
        """Return the grammar of the rest of a reply, from its first call on."""
        ...


def _layout(dialect: Dialect, thinking: bool, beginnings: Sequence[str]) -> _Layout:
    if isinstance(dialect.shape, Channels):
        return _MessageLayout(dialect.shape, text_without(dialect.markers), thinking)
    return _SpanLayout(dialect, thinking, beginnings)


class _SpanLayout:
    """Thinking in a span, then text and calls in any order.

    Calls without an opening marker come last, because the parser would read them as text otherwise. The markers around
    text may be anywhere in it: the parser removes them. After a call whose closing marker needs a line of its own, text
    begins on the next line.
    """

    def __init__(self, dialect: Dialect, thinking: bool, beginnings: Sequence[str]) -> None:
        shape = dialect.shape
        self._calls_come_last = isinstance(shape, JsonEnvelope | Pythonic) and shape.bare
        self._lead = dialect.lead
        markers = tuple(marker for marker in dialect.markers if marker != LIST_OPENER)
        markers += tuple(text for text in beginnings if not text.startswith(markers))
        if isinstance(shape, TaggedParams) and dialect.grammar:
            markers += dialect.grammar.inner_markers  # after a call, they make the end of its last value ambiguous
        self._plain_text = text_without(markers)
        text_markers = choice(*map(literal, dialect.text_markers))
        marked_text = [Repeat(sequence(text_markers, self._plain_text))] if dialect.text_markers else []
        self._text = sequence(self._plain_text, *marked_text)
        self._text_after_call: Node = self._text
        if isinstance(shape, LineParams):
            self._text_after_call = optional(sequence(literal(NEWLINE), self._text))
        self._thinking = dialect.thinking[0] if thinking and dialect.thinking else None

    def text(self) -> Node:
        return sequence(self._optional_thinking(), self._text)

    def calls(self, calls: Node) -> Node:
        if self._thinking is None:
            return calls
        end = self._thinking.close + self._thinking.after
        lead = "" if end.endswith(self._lead) else self._lead
        thinking = sequence(literal(self._thinking.open), self._plain_text, literal(end + lead))
        return sequence(optional(thinking), calls)

    def text_or_calls(self, calls: Node, *, several: bool) -> Node:
        if self._calls_come_last:
            rest = sequence(self._text, optional(calls))
        elif several and self._text_after_call is self._text:
            rest = sequence(Repeat(sequence(self._text, calls)), self._text)
        else:
            rest = sequence(self._text, optional(self.from_call(calls, several=several)))
        return sequence(self._optional_thinking(), rest)

    def from_call(self, calls: Node, *, several: bool) -> Node:
        if self._calls_come_last:
            return calls
        more = [Repeat(sequence(self._text_after_call, calls))] if several else []
        return sequence(calls, *more, self._text_after_call)

    def _optional_thinking(self) -> Node:
        """Return thinking before text. Its opening marker may be missing, because the prompt may contain it."""
        if self._thinking is None:
            return sequence()
        span = self._thinking
        return optional(sequence(optional(literal(span.open)), self._plain_text, literal(span.close)))


class _MessageLayout:
    """Messages with headers. Those of thinking and of text come first, then the calls or one more text."""

    def __init__(self, shape: Channels, text: Text, thinking: bool) -> None:
        next_message = literal(shape.start + shape.role)
        self._text = text
        self._thinking = Repeat(sequence(self._message(shape.thinking), next_message)) if thinking else sequence()
        inner = [shape.text, *([shape.thinking] if thinking else [])]
        self._inner = Repeat(sequence(choice(*map(self._message, inner)), next_message))
        answer = shape.answer or shape.text
        # The end of the last message may be the token that ends the generation, which is no text.
        end = optional(literal(shape.last_end or answer.close))
        self._answer = sequence(literal(answer.open), text, end)

    def _message(self, span: Span) -> Node:
        return sequence(literal(span.open), self._text, literal(span.close))

    def text(self) -> Node:
        return sequence(self._inner, self._answer)

    def calls(self, calls: Node) -> Node:
        return sequence(self._thinking, calls)

    def text_or_calls(self, calls: Node, *, several: bool) -> Node:  # noqa: ARG002 (nothing follows calls)
        return sequence(self._inner, choice(self._answer, calls))

    def from_call(self, calls: Node, *, several: bool) -> Node:  # noqa: ARG002 (nothing follows calls)
        return calls
