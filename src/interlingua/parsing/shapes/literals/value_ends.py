"""Decisions about the end of a value."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

__all__ = ["EndDecision", "ValueEnd", "ValueText"]


class ValueEnd(NamedTuple):
    """Decision: the value ends here."""

    delimiter: str
    """The delimiter that ends it: a comma, a closing bracket or a marker."""
    key: str | None = None
    """The key of the next member, if it was consumed for the decision."""


class ValueText(NamedTuple):
    """Decision: the value continues."""

    text: str
    """The text that was consumed for the decision. It belongs to the value."""


EndDecision: TypeAlias = ValueEnd | ValueText | None
"""Decision about a possible end of a value; None if the text ends before the decision."""
