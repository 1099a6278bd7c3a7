"""Texts that each node accepts, and what may follow a beginning."""

from __future__ import annotations

import pytest

from interlingua.errors import NotExpressible
from interlingua.exports.grammar import (
    EMPTY,
    NOTHING,
    Chars,
    Choice,
    Grammar,
    Json,
    Literal,
    Node,
    Repeat,
    Rule,
    Sequence,
    Text,
    choice,
    optional,
    replace_in_literals,
    sequence,
)
from interlingua.exports.matcher import Matcher
from interlingua.exports.value_types import Number, Object, String

A, B = Literal("ab"), Literal("cd")
DIGIT = Chars((("0", "9"),))
TEXT = Text(("<call>", "</s>"))
LIST = {"list": sequence(Literal("["), Repeat(choice(Rule("list"), DIGIT)), Literal("]"))}

ACCEPTED: list[tuple[Node, str, bool]] = [
    (A, "ab", True),
    (A, "a", False),
    (A, "abc", False),
    (EMPTY, "", True),
    (NOTHING, "", False),
    (DIGIT, "7", True),
    (DIGIT, "x", False),
    (DIGIT, "", False),
    (Chars((("0", "9"),), is_negated=True), "x", True),
    (Chars((("0", "9"),), is_negated=True), "7", False),
    (TEXT, "", True),
    (TEXT, "a < b <call", True),
    (TEXT, "a <call> b", False),
    (sequence(TEXT, Literal("<call>")), "a<call>", True),
    (sequence(TEXT, Literal("<call>")), "a<call><call>", False),
    (sequence(TEXT, Literal("<call")), "a<ca<call", True),
    (sequence(A, B), "abcd", True),
    (sequence(A, B), "ab", False),
    (choice(A, B), "cd", True),
    (choice(A, B), "abcd", False),
    (optional(A), "", True),
    (Repeat(A), "ababab", True),
    (Repeat(A, 2, 3), "ab", False),
    (Repeat(A, 2, 3), "abab", True),
    (Repeat(A, 2, 3), "abababab", False),
    (Repeat(EMPTY), "", True),
    (Repeat(sequence(TEXT, Literal("<call>"))), "x<call>y<call>", True),
    (Rule("list"), "[1[2[]]3]", True),
    (Rule("list"), "[1[2]", False),
    (Json(Number(is_integer=True)), "-12", True),
    (Json(Number(is_integer=True)), "01", False),
    (Json(String()), r'"a\n\u00e9 é"', True),
    (Json(String()), '"a', False),
    (Json(Object((), String())), '{"a": "b" , "c":"d"}', True),
    (Json(Object((), String())), '{"a": 1}', False),
]


@pytest.mark.parametrize(("node", "text", "is_accepted"), ACCEPTED)
def test_accepts(node: Node, text: str, is_accepted: bool) -> None:
    assert Matcher(Grammar(node, LIST)).accepts(text) is is_accepted


REMAINDERS: list[tuple[Node, str, Node]] = [
    (A, "", A),
    (A, "a", Literal("b")),
    (A, "ab", EMPTY),
    (A, "x", NOTHING),
    (sequence(A, B), "abc", Literal("d")),
    (sequence(optional(A), B), "c", Literal("d")),
    (choice(A, Literal("axe")), "a", Choice((Literal("b"), Literal("xe")))),
    (sequence(Literal("<think>"), TEXT, Literal("</think>")), "<think>", Sequence((TEXT, Literal("</think>")))),
    (sequence(Literal("<think>"), TEXT, Literal("</think>")), "<think>So ", Sequence((TEXT, Literal("</think>")))),
    (TEXT, "a <call> b", NOTHING),
    (Repeat(A, 1, 3), "ab", Repeat(A, 0, 2)),
    (Repeat(A), "aba", Sequence((Literal("b"), Repeat(A)))),
    (Repeat(DIGIT, 2, 2), "1", Repeat(DIGIT, 1, 1)),
    (Rule("list"), "[]", EMPTY),
]


@pytest.mark.parametrize(("node", "beginning", "rest"), REMAINDERS)
def test_remainder(node: Node, beginning: str, rest: Node) -> None:
    assert Matcher(Grammar(node, LIST)).remainder(beginning) == rest


@pytest.mark.parametrize(("node", "beginning"), [(TEXT, "a <ca"), (Json(String()), '"a')])
def test_remainder_of_what_no_node_expresses(node: Node, beginning: str) -> None:
    with pytest.raises(NotExpressible, match="ends inside"):
        Matcher(Grammar(node)).remainder(beginning)


def test_literals_next_to_each_other_become_one() -> None:
    assert sequence(A, EMPTY, sequence(B, Repeat(A))) == Sequence((Literal("abcd"), Repeat(A)))
    assert sequence(A, NOTHING) == NOTHING
    assert choice(A, choice(B, A)) == Choice((A, B))


def test_replacing_a_text_in_literals() -> None:
    assert replace_in_literals(Repeat(choice(A, Literal("xKEYy"))), "KEY", DIGIT) == Repeat(
        Choice((A, Sequence((Literal("x"), DIGIT, Literal("y")))))
    )
