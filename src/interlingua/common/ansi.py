"""ANSI styles of terminal output, and the rule for when they are used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import TypeAlias

__all__ = ["Style", "Styler", "ansi_style", "no_style", "uses_color"]


class Style(Enum):
    """Role of a text. The value is its ANSI code."""

    PLAIN = "0"
    HEADING = "1"
    FAINT = "2"
    ERROR = "31"
    GOOD = "32"
    WARNING = "33"
    MARKER = "36"


Styler: TypeAlias = Callable[[str, Style], str]


def no_style(text: str, _: Style) -> str:
    return text


def ansi_style(text: str, style: Style) -> str:
    return f"\x1b[{style.value}m{text}\x1b[0m" if text and style is not Style.PLAIN else text


def uses_color(environment: Mapping[str, str], *, is_terminal: bool) -> bool:
    """Return whether output is coloured: on a terminal, unless NO_COLOR is set; elsewhere if FORCE_COLOR is set.

    NO_COLOR wins if both are set, as in Python itself. FORCE_COLOR=0 is the same as NO_COLOR.
    """
    forced = environment.get("FORCE_COLOR", "")
    if environment.get("NO_COLOR") or forced in ("0", "false"):
        return False
    return bool(forced) or (is_terminal and environment.get("TERM") != "dumb")
