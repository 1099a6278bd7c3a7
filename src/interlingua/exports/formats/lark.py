r"""Lark grammars for llguidance.

Its lexer is greedy: where free text may be followed by a marker, it would take the beginning of the marker for text. So
free text and the marker after it are one lexeme, which ends as early as possible (`[lazy]`). For that, the writer looks
for the markers that can follow each text, in whatever part of the grammar they are.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TypeAlias, TypeGuard, assert_never

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
from interlingua.exports.schema_writer import has_exact_schema, write_schema

__all__ = ["write_lark"]

MakeNode: TypeAlias = Callable[[], Node]
"""Returns a node that only some of its receivers need."""

ANY_TEXT = "(?s:.*)"
MAX_PATTERN_CHARS = 100_000
MAX_RULES_IN_PATTERN = 50
"""Maximum length and depth of the regular expression of a rule. The length can double with each level of a schema."""
OTHER_FORMATS = "use the format structural-tag or gbnf"


def write_lark(grammar: Grammar) -> str:
    """Write a grammar.

    Raises:
        NotExpressible: A free text is followed by something that does not begin with fixed characters.
    """
    return _LarkWriter(grammar.rules).write(grammar.root)


class _LarkWriter:
    def __init__(self, rules: Mapping[str, Node]) -> None:
        self._builder = GrammarBuilder()
        self._rules = self._builder.rules
        self._rules |= {name: _move_into_choices(node) for name, node in rules.items()}
        self._json = json_notation(self._builder)
        self._rules_with_text = self._find_rules_with_text()
        self._patterns: dict[str, str | None] = {}  # by the name of a rule
        self._depth = 0  # of rules inside each other in a pattern
        self._names: dict[Node, str] = {}  # of rules, by what they accept
        self._loops: dict[tuple[Node, Node], Rule] = {}
        self._terminals: dict[str, str] = {}
        self._pending: deque[Node] = deque()
        """Nodes that have a name, and no rule yet."""
        self._lines: list[str] = []

    def write(self, root: Node) -> str:
        start = self._expression(_move_into_choices(root))
        while self._pending:
            node = self._pending.popleft()
            self._lines.append(f"{self._names[node]}: {self._expression(node)}")
        terminals = [f"{name}: {body}" for name, body in self._terminals.items()]
        return "\n".join(("%llguidance {}", f"start: {start}", *self._lines, *terminals, ""))

    def _rule(self, node: Node) -> str:
        """Return the name of the rule that accepts what this node does."""
        if node not in self._names:
            self._names[node] = f"r{len(self._names)}"
            self._pending.append(node)
        return self._names[node]

    def _expression(self, node: Node) -> str:
        """Write a node. If a part of it can end with free text, what follows is written together with that part."""
        parts = node.parts if isinstance(node, Sequence) else (node,)
        written: list[str] = []
        for n, part in enumerate(parts):
            if self._can_end_with_text(part):
                return " ".join((*written, self._before(part, sequence(*parts[n + 1 :]))))
            # The first of several optional parts is compared with all that can come instead, so also with the others.
            if _is_optional(part) and not (n and _is_optional(parts[n - 1])):
                following = sequence(*parts[n + 1 :])
                self._check_alternatives([sequence(part.item, following), following])
            written.append(self._closed(part))
        return " ".join(written) or '""'

    # ── nodes that can end with free text ─────────────────────────────────────────────────────────────────────────

    def _before(self, node: Node, following: Node) -> str:
        """Write a node that can end with free text, and what follows it."""
        match node:
            case Text():
                return self._text_before(node, following)
            case Choice(options):
                return self._alternatives([sequence(option, following) for option in options])
            case Repeat(item, 0, 1):
                return self._alternatives([sequence(item, following), following])
            case Repeat(item, 0, None, ""):
                return self._loop_before(item, following)
            case Repeat(item, 1, None, separator):
                others = Repeat(sequence(literal(separator), item))
                return self._rule(sequence(item, others, following))
            case Rule(name):
                return self._rule(sequence(self._rules[name], following))
            case _:
                raise NotExpressible("free text that is repeated a number of times", OTHER_FORMATS)

    def _alternatives(self, nodes: list[Node]) -> str:
        """Write alternatives of which some begin with free text."""
        self._check_alternatives(nodes)
        return f"({' | '.join(map(self._rule, nodes))})"

    def _check_alternatives(self, nodes: list[Node]) -> None:
        """Raise NotExpressible if one alternative begins with a marker that ends the text of another one.

        The lexeme of an empty text and the marker would be found before the longer marker.
        """
        literals: list[str] = []
        triggers: list[str] = []
        for first, following in chain.from_iterable(self._first_nodes(node, lambda: EMPTY) for node in nodes):
            if isinstance(first, Text):
                triggers += self._triggers(first, following())
            elif isinstance(first, Literal):
                literals.append(first.text)
        if any(text.startswith(tuple(triggers)) for text in literals):
            raise NotExpressible("a marker at the beginning of a reply that begins like one after text", OTHER_FORMATS)

    def _check_prefixes(self, options: tuple[Node, ...]) -> None:
        """Raise NotExpressible if a literal goes on like the end of the text behind a shorter one.

        The lexer reads the longer literal, and does not come back if it fails.
        """
        texts: list[str] = []
        rests: dict[str, list[Node]] = {}
        for first, *others in (option.parts for option in options if isinstance(option, Sequence)):
            if not isinstance(first, Literal):
                continue
            rests.setdefault(first.text, []).append(sequence(*others))
            if others and isinstance(others[0], Text):
                triggers = self._triggers(others[0], sequence(*others[1:]))
                texts += (first.text + trigger[:1] for trigger in triggers)
        if any(text.startswith(tuple(texts)) for text in rests):
            raise NotExpressible("text that may end like another notation of it begins", OTHER_FORMATS)
        for nodes in rests.values():
            self._check_alternatives(nodes)

    def _first_nodes(self, node: Node, following: MakeNode) -> Iterator[tuple[Node, MakeNode]]:
        """Yield the literals and texts that a node can begin with, each with what follows it."""
        parts = node.parts if isinstance(node, Sequence) else (node,)
        for n, part in enumerate(parts):
            rest = partial(_rest, parts, n + 1, following)
            if isinstance(part, Choice | Repeat):
                for option in part.options if isinstance(part, Choice) else (part.item,):
                    yield from self._first_nodes(option, rest)
            else:
                yield part, rest
            if not _can_be_empty(part) or isinstance(part, Text):
                return

    def _triggers(self, node: Text, following: Node) -> list[str]:
        return [_trigger(node, beginning) for beginning, _ in self._beginnings(following) if beginning is not None]

    def _loop_before(self, item: Node, following: Node) -> str:
        """Write a repetition as a rule that refers to itself."""
        key = Repeat(item), following
        if key not in self._loops:
            loop = self._loops[key] = Rule(f"loop {len(self._loops)}")
            self._rules[loop.name] = choice(sequence(item, loop), following)
            self._rules_with_text = self._find_rules_with_text()
        return self._rule(self._loops[key])

    def _find_rules_with_text(self) -> set[str]:
        """Return the names of the rules that can end with free text."""
        found: set[str] = set()
        self._rules_with_text, count = found, -1
        while len(found) > count:  # a rule may refer to one that is found later
            count = len(found)
            for name, node in self._rules.items():
                if self._can_end_with_text(node):
                    found.add(name)
        return found

    def _can_end_with_text(self, node: Node) -> bool:
        match node:
            case Text():
                return True
            case Sequence(parts):
                for part in reversed(parts):
                    if self._can_end_with_text(part):
                        return True
                    if not _can_be_empty(part):
                        return False
                return False
            case Choice(options):
                return any(map(self._can_end_with_text, options))
            case Repeat(item):
                return self._can_end_with_text(item)
            case Rule(name):
                return name in self._rules_with_text
            case _:
                return False

    def _text_before(self, node: Text, following: Node) -> str:
        terminal = self._text_terminal(node)
        by_trigger: dict[str, list[Node]] = {}
        can_end = False
        for beginning, rest in self._beginnings(following):
            if beginning is None:
                can_end = True
                continue
            trigger = _trigger(node, beginning)
            by_trigger.setdefault(trigger, []).append(sequence(literal(beginning.removeprefix(trigger)), rest))
        options = [terminal] if can_end else []
        for trigger, rests in by_trigger.items():
            head = f"h{len(self._lines)}"
            self._lines.append(f"{head}[lazy]: {terminal} {_quote(trigger)}")
            options.append(f"{head} {self._rule(choice(*rests))}")
        return f"({' | '.join(options)})"

    def _beginnings(self, node: Node) -> Iterator[tuple[str | None, Node]]:
        """Yield the literals that a node can begin with, each with what follows; None for the empty text."""
        match node:
            case Sequence(parts):
                yield from self._beginnings_of_sequence(parts)
            case Literal(text):
                yield text, EMPTY
            case Choice(options):
                yield from chain.from_iterable(map(self._beginnings, options))
            case Repeat():
                if node.min == 0:
                    yield None, EMPTY
                separated = sequence(literal(node.separator), node.item)
                more = Repeat(separated, max(0, node.min - 1), _less_one(node.max))
                found = (pair for pair in self._beginnings(node.item) if pair[0] is not None)
                yield from ((beginning, rest if more.max == 0 else sequence(rest, more)) for beginning, rest in found)
            case Rule(name):
                yield from self._beginnings(self._rules[name])
            case Text() | Chars() | Json():
                raise NotExpressible("free text that is followed by text of another kind", OTHER_FORMATS)
            case _:
                assert_never(node)

    def _beginnings_of_sequence(self, parts: tuple[Node, ...]) -> Iterator[tuple[str | None, Node]]:
        if not parts:
            yield None, EMPTY
            return
        for beginning, rest in self._beginnings(parts[0]):
            if beginning is None:
                yield from self._beginnings_of_sequence(parts[1:])
            else:
                yield beginning, sequence(rest, *parts[1:])

    def _text_terminal(self, node: Text) -> str:
        excluded = "|".join(map(_escape, node.excluded))
        body = f"/{ANY_TEXT}/ & ~/{ANY_TEXT}({excluded}){ANY_TEXT}/" if excluded else f"/{ANY_TEXT}/"
        known = next((name for name, known in self._terminals.items() if known == body), None)
        name = known or f"TEXT{len(self._terminals)}"
        self._terminals[name] = body
        return name

    # ── all other nodes ───────────────────────────────────────────────────────────────────────────────────────────

    def _closed(self, node: Node) -> str:
        pattern = None if isinstance(node, Literal) else self._regex(node)
        if pattern is not None:
            return f"/{pattern}/"
        match node:
            case Literal(text):
                return _quote(text)
            case Json(type_) if not has_exact_schema(type_):
                return self._expression(self._json.value(type_))
            case Json(type_):
                return f"%json {json.dumps(write_schema(type_), ensure_ascii=False)}"
            case Sequence():
                return self._expression(node)
            case Choice(options):
                self._check_prefixes(options)
                return f"({' | '.join(map(self._expression, options))})"
            case Repeat():
                return self._closed_repeat(node)
            case Rule(name):
                return self._rule(self._rules[name])
            case _:
                raise AssertionError(node)

    def _closed_repeat(self, node: Repeat) -> str:
        # A composite item has a rule of its own, because llguidance limits the depth of parentheses.
        item = self._rule(node.item) if isinstance(node.item, Sequence | Choice) else self._expression(node.item)
        if not node.separator:
            return f"({item}){_count(node.min, node.max)}"
        others = Repeat(sequence(literal(node.separator), node.item), max(0, node.min - 1), _less_one(node.max))
        items = f"({item}) {self._closed_repeat(others)}"
        return items if node.min else f"({items})?"

    def _regex(self, node: Node) -> str | None:
        """Return a node as a regular expression; None if it is not regular, or if the expression is too long."""
        match node:
            case Literal(text):
                return _escape(text)
            case Chars(ranges, is_negated):
                chars = "".join(f"{_escape_in_set(first)}-{_escape_in_set(last)}" for first, last in ranges)
                return f"[{'^' if is_negated else ''}{chars}]"
            case Sequence(parts):
                patterns = [self._regex(part) for part in parts]
                return None if None in patterns else "".join(filter(None, patterns))
            case Choice(options):
                patterns = [self._regex(option) for option in options]
                return None if None in patterns else f"(?:{'|'.join(filter(None, patterns))})"
            case Repeat(item, least, most, ""):
                pattern = self._regex(item)
                return None if pattern is None else f"(?:{pattern}){{{least},{'' if most is None else most}}}"
            case Rule(name):
                return self._regex_of_rule(name)
            case _:
                return None

    def _regex_of_rule(self, name: str) -> str | None:
        if name not in self._patterns and self._depth < MAX_RULES_IN_PATTERN:
            self._patterns[name] = None  # of a rule that contains itself
            self._depth += 1
            pattern = self._regex(self._rules[name])
            self._depth -= 1
            self._patterns[name] = None if pattern is None or len(pattern) > MAX_PATTERN_CHARS else pattern
        return self._patterns.get(name)


def _move_into_choices(node: Node) -> Node:
    """Return the tree with a literal before a choice moved into its options, if they begin with literals, too.

    The lexer would not find the end of the literal if another one that may stand there goes on like an option.
    """
    match node:
        case Sequence(parts):
            moved: list[Node] = []
            for part in map(_move_into_choices, parts):
                before = moved[-1] if moved else None
                if (
                    isinstance(before, Literal)
                    and isinstance(part, Choice)
                    and all(map(_begins_literally, part.options))
                ):
                    moved[-1] = choice(*(sequence(before, option) for option in part.options))
                else:
                    moved.append(part)
            return sequence(*moved)
        case Choice(options):
            return choice(*map(_move_into_choices, options))
        case Repeat(item):
            return replace(node, item=_move_into_choices(item))
        case _:
            return node


def _begins_literally(node: Node) -> bool:
    first = node.parts[0] if isinstance(node, Sequence) and node.parts else node
    return isinstance(first, Literal)


def _trigger(node: Text, beginning: str) -> str:
    """Return the marker that ends a text before this beginning; the whole beginning if no marker is excluded."""
    return max((marker for marker in node.excluded if beginning.startswith(marker)), key=len, default=beginning)


def _can_be_empty(node: Node) -> bool:
    return node == EMPTY or _is_optional(node) or isinstance(node, Text)


def _is_optional(node: Node) -> TypeGuard[Repeat]:
    return isinstance(node, Repeat) and node.min == 0


def _rest(parts: tuple[Node, ...], start: int, following: MakeNode) -> Node:
    """Return the parts from `start` on, and what follows them."""
    return sequence(*parts[start:], following())


def _less_one(most: int | None) -> int | None:
    return None if most is None else most - 1


def _count(least: int, most: int | None) -> str:
    return f"{{{least},{'' if most is None else most}}}"


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _escape(text: str) -> str:
    """Return a literal in a regular expression of Rust, between slashes."""
    return re.sub(r"[\\.+*?()|\[\]{}^$#&\-~/]", r"\\\g<0>", text).replace("\n", r"\n").replace("\r", r"\r")


def _escape_in_set(char: str) -> str:
    return char if char.isalnum() else rf"\x{{{ord(char):x}}}"
