"""Matcher: which texts a grammar accepts, and what may follow a beginning.

It is meant for texts of some thousand characters: tests, drafts of dialects, and the scripted models that stand in for
a constrained one. Engines have faster ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from itertools import chain, count, islice
from typing import assert_never

from interlingua.errors import NotExpressible
from interlingua.exports.grammar import (
    EMPTY,
    Chars,
    Choice,
    Grammar,
    GrammarBuilder,
    Json,
    Literal,
    Node,
    Repeat,
    Rule,
    Sequence,
    Text,
    choice,
    literal,
    sequence,
)
from interlingua.exports.notations import json_notation

__all__ = ["Matcher"]


class Matcher:
    """Matcher for one grammar."""

    def __init__(self, grammar: Grammar) -> None:
        self._grammar = grammar
        self._builder = GrammarBuilder()
        self._json = json_notation(self._builder)
        self._json_values: dict[int, Node] = {}

    def accepts(self, text: str) -> bool:
        """Return whether the grammar accepts the whole text."""
        return len(text) in _Match(text, self).ends(self._grammar.root, 0)

    def remainder(self, beginning: str) -> Node:
        """Return what may follow this beginning; NOTHING if the grammar accepts no text with it.

        Raises:
            NotExpressible: The beginning ends inside a marker or inside JSON.
        """
        return choice(*_Match(beginning, self).remainders(self._grammar.root, 0))

    def rule(self, name: str) -> Node:
        return self._grammar.rules[name] if name in self._grammar.rules else self._builder.rules[name]

    def json_value(self, node: Json) -> Node:
        """Return the grammar of JSON text."""
        if id(node) not in self._json_values:
            self._json_values[id(node)] = self._json.value(node.type)
        return self._json_values[id(node)]


class _Match:
    """One text that is matched. Positions are offsets in the text."""

    def __init__(self, text: str, matcher: Matcher) -> None:
        self._text = text
        self._matcher = matcher
        self._known_ends: dict[tuple[int, int], Set[int]] = {}

    def ends(self, node: Node, start: int) -> Set[int]:
        """Return the positions at which the node can end if it begins at `start`."""
        match node:
            case Literal(text):
                return {start + len(text)} if self._text.startswith(text, start) else set()
            case Chars():
                return {start + 1} if start < len(self._text) and self._text[start] in node else set()
            case Text():
                return set(range(start, self._text_limit(node, start) + 1))
            case _:
                key = id(node), start
                if key not in self._known_ends:
                    self._known_ends[key] = self._composite_ends(node, start)
                return self._known_ends[key]

    def _composite_ends(self, node: Json | Sequence | Choice | Repeat | Rule, start: int) -> Set[int]:
        match node:
            case Json():
                return self.ends(self._matcher.json_value(node), start)
            case Rule(name):
                return self.ends(self._matcher.rule(name), start)
            case Choice(options):
                return {end for option in options for end in self.ends(option, start)}
            case Sequence(parts):
                positions: Set[int] = {start}
                for n, part in enumerate(parts):
                    starts = first_literals(parts[n + 1]) if isinstance(part, Text) and n + 1 < len(parts) else None
                    positions = {end for position in positions for end in self.ends(part, position)}
                    if starts is not None:
                        positions = {end for end in positions if self._text.startswith(starts, end)}
                return positions
            case Repeat():
                return {end for ends in self._repetitions(node, start) for end in ends}
            case _:
                assert_never(node)

    def _repetitions(self, node: Repeat, start: int) -> Iterator[Set[int]]:
        """Yield the positions after each allowed number of repetitions. No position occurs twice."""
        positions: Set[int] = {start}
        seen: set[int] = set()
        for repetitions in islice(count(), None if node.max is None else node.max + 1):
            if repetitions >= node.min:
                positions -= seen
                seen |= positions
                yield positions
            if not positions:
                return
            if repetitions:
                positions = self._skip(node.separator, positions)
            positions = {end for position in positions for end in self.ends(node.item, position)}

    def _skip(self, text: str, positions: Set[int]) -> Set[int]:
        """Return the positions after this text."""
        return {position + len(text) for position in positions if self._text.startswith(text, position)}

    def _text_limit(self, node: Text, start: int) -> int:
        """Return the last position at which a text that begins at `start` can end."""
        found = [(self._text.find(text, start), len(text)) for text in node.excluded]
        return min((at + length - 1 for at, length in found if at >= 0), default=len(self._text))

    def remainders(self, node: Node, start: int) -> Iterator[Node]:
        """Yield what may follow the text if the node begins at `start`, up to the end of the node."""
        if start == len(self._text):
            yield node
            return
        match node:
            case Literal(text):
                if text.startswith(self._text[start:]):
                    yield literal(text[len(self._text) - start :])
            case Chars():
                yield from (EMPTY for end in self.ends(node, start) if end == len(self._text))
            case Text():
                yield from self._remainders_of_text(node, start)
            case Json():
                raise NotExpressible("the beginning ends inside JSON", "end it before the arguments of a call")
            case Sequence():
                yield from self._remainders_of_sequence(node, start)
            case Choice(options):
                yield from chain.from_iterable(self.remainders(option, start) for option in options)
            case Repeat():
                yield from self._remainders_of_repeat(node, start)
            case Rule(name):
                yield from self.remainders(self._matcher.rule(name), start)
            case _:
                assert_never(node)

    def _remainders_of_text(self, node: Text, start: int) -> Iterator[Node]:
        if self._text_limit(node, start) < len(self._text):
            return
        if any(self._text[start:].endswith(text[:n]) for text in node.excluded for n in range(1, len(text))):
            raise NotExpressible(f"the beginning ends inside a marker: {self._text[-40:]!r}", "end it elsewhere")
        yield node

    def _remainders_of_sequence(self, node: Sequence, start: int) -> Iterator[Node]:
        positions: Set[int] = {start}
        for n, part in enumerate(node.parts):
            for position in positions:
                yield from (sequence(rest, *node.parts[n + 1 :]) for rest in self.remainders(part, position))
            # A part that ends with the text was just followed by the other parts.
            positions = {end for position in positions for end in self.ends(part, position)} - {len(self._text)}

    def _remainders_of_repeat(self, node: Repeat, start: int) -> Iterator[Node]:
        positions: Set[int] = {start}
        for repetitions in islice(count(1), node.max):
            most = None if node.max is None else node.max - repetitions
            more = Repeat(sequence(literal(node.separator), node.item), max(0, node.min - repetitions), most)
            item = sequence(literal(node.separator if repetitions > 1 else ""), node.item)
            for position in positions:
                yield from (sequence(inner, more) for inner in self.remainders(item, position))
            positions = {end for position in positions for end in self.ends(item, position)} - {start, len(self._text)}
            if not positions:
                return


def first_literals(node: Node) -> tuple[str, ...] | None:
    """Return the literals that all texts of this node begin with; None if it may begin differently."""
    match node:
        case Literal(text):
            return (text,)
        case Sequence(parts):
            return first_literals(parts[0]) if parts else None
        case Choice(options):
            literals = [first_literals(option) for option in options]
            return None if None in literals else tuple(text for texts in literals for text in texts or ())
        case _:
            return None
