"""Text that a dialect's notation can and cannot carry as the value of a param.

Agents write files that quote calls. Each sample here puts the dialect's own markup into a string: a whole call, its
beginning, its end, and so on. `find_unquotable` tries which of them `render` refuses.
"""

from __future__ import annotations

import json

from interlingua.core.reply import Call, Reply
from interlingua.dialects.native_text import render
from interlingua.errors import RenderError
from interlingua.parsing.dialect import Dialect
from interlingua.parsing.shapes.tagged_params.grammar import TaggedParams

__all__ = ["find_unquotable", "quoting_samples"]

_TOOL = "write"
_FIRST, _SECOND = "qzfirstqz", "qzsecondqz"


def quoting_samples(dialect: Dialect) -> dict[str, str]:
    """Return texts that quote the markup of this dialect, by what they quote. Empty if it has no calls."""
    if dialect.grammar is None:
        return {}
    call = render_call(dialect, path="a.txt", text="some text")
    frame = render_call(dialect, path=_FIRST, text=_SECOND)
    head, rest = frame.split(_FIRST, 1)
    between, tail = rest.split(_SECOND, 1)
    samples = {
        "whole calls": f"Docs:\n{call}\nand\n{call}\nend",
        "the end of a call": f"It ends with {tail}\nhere",
        "the beginning of a call": f"It begins with {head}here",
        "the end of a param and the beginning of another one": f"a{between}b",
    }
    if isinstance(dialect.shape, TaggedParams):
        samples["the closing marker of a param at its end"] = f"a{dialect.shape.param.close[0]}"
    return samples


def find_unquotable(dialect: Dialect) -> list[str]:
    """Return what the value of a param cannot quote in this dialect."""
    return [kind for kind, sample in quoting_samples(dialect).items() if not _is_quotable(sample, dialect)]


def render_call(dialect: Dialect, **arguments: str) -> str:
    """Write one call with these arguments."""
    return render(Reply(parts=[Call("call1abcd", _TOOL, json.dumps(arguments, ensure_ascii=False))]), dialect)


def _is_quotable(sample: str, dialect: Dialect) -> bool:
    try:
        render_call(dialect, path="a.txt", text=sample)
        render_call(dialect, text=sample, path="a.txt")
        render_call(dialect, path=sample, text="b")
    except RenderError:
        return False
    return True
