"""HTML elements. Text is escaped; only what is an `Html` already is inserted as it is."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

__all__ = ["Html", "element", "join"]

VOID_ELEMENTS = frozenset({"meta", "line", "circle", "rect"})
"""Elements without content."""


class Html(str):
    """Text that is HTML."""

    __slots__ = ()


def element(name: str, /, *children: str, **attributes: object) -> Html:
    """Return an element. `class_` is the attribute `class`, and underscores in names become hyphens."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"' for key, value in attributes.items()
    )
    if name in VOID_ELEMENTS:
        return Html(f"<{name}{written}>" if name == "meta" else f"<{name}{written}/>")
    return Html(f"<{name}{written}>{join(children)}</{name}>")


def join(children: Iterable[str]) -> Html:
    """Return the children one after the other."""
    return Html("".join(child if isinstance(child, Html) else escape(child) for child in children))
