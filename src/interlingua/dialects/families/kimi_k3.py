"""Kimi K3 (Moonshot AI): XTML.

    <|open|>tools<|sep|><|open|>call tool="get_weather" index="1"<|sep|><|open|>argument key="city" type="string"<|sep|>
    Paris<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|>     (on one line)

Three tokens form all structure; the tag names between them are text. The type is string or JSON; one element `json`
may contain all arguments. The index counts within the turn, so it is not used as an id. The prompt opens the thinking,
and text is in `response`. Seen in the field: proxies that drop tokens between `tools` and `call`; white space between
the tokens and the tag names: a space or a line break on either side; or two to four spaces, a tab, a blank line or
CRLF, on one side or the same on both.
"""

from __future__ import annotations

import itertools

from interlingua.parsing.dialect import Dialect, Span
from interlingua.parsing.shapes.tagged_params.grammar import TaggedParams
from interlingua.parsing.shapes.tagged_params.tag import Tag

_SPACES = ("", " ", "\n")
_LONG_SPACES = ("  ", "   ", "    ", "\t", "\r\n", "\n\n")
_PADDINGS = (
    *itertools.product(_SPACES, _SPACES),
    *(padding for space in _LONG_SPACES for padding in ((space, space), (space, ""), ("", space))),
)
"""White space before and after the name of a tag. Each spelling is a marker, so not all combinations are there."""
_ENDS = ("<|sep|>", "\n<|sep|>", "\n\n<|sep|>")


def _openers(tag: str) -> tuple[str, ...]:
    """Return the spellings of the start of a tag, with and without white space after the token."""
    return tuple(f"<|open|>{space}{tag}" for space in (*_SPACES, *_LONG_SPACES))


def _closers(tag: str) -> tuple[str, ...]:
    """Return the spellings of a closing tag, with and without white space between its tokens and its name."""
    return tuple(f"<|close|>{before}{tag}{after}<|sep|>" for before, after in _PADDINGS)


def _spans(tag: str) -> tuple[Span, ...]:
    """Return the spellings of an element without attributes."""
    openers = (f"<|open|>{before}{tag}{after}<|sep|>" for before, after in _PADDINGS)
    return tuple(map(Span, openers, _closers(tag)))


DIALECT = Dialect(
    name="kimi_k3",
    summary="Kimi K3: XTML, types in the text",
    models=("*kimi*k3*",),
    shape=TaggedParams(
        call=Tag(
            open=(*_openers("call "), *_openers("toolscall ")),
            attribute=("tool", "name"),
            end=_ENDS,
            close=_closers("call"),
            escaped=True,
        ),
        param=Tag(
            open=_openers("argument "),
            attribute=("key", "name"),
            end=_ENDS,
            close=_closers("argument"),
            escaped=True,
        ),
        json=Tag(open=_openers("json"), end=_ENDS, close=_closers("json")),
        sections=_spans("tools"),
        string_when="type=string",
        numbered="index",
    ),
    thinking=_spans("think"),
    text=(*_spans("response"), *_spans("message")),
    noise=("<|end_of_msg|>", "<|close|>toolsmessage<|sep|>", "<|open|>", "<|close|>", "<|sep|>"),
    sample="<|open|>think<|sep|>Two cities.<|close|>think<|sep|><|open|>response<|sep|>Let me look."
    '<|close|>response<|sep|><|open|>tools<|sep|><|open|>call tool="get_weather" index="1"<|sep|>'
    '<|open|>argument key="city" type="string"<|sep|>Paris<|close|>argument<|sep|><|close|>call<|sep|>'
    '<|open|>call tool="get_weather" index="2"<|sep|><|open|>argument key="city" type="string"<|sep|>São Paulo'
    '<|close|>argument<|sep|><|open|>argument key="days" type="number"<|sep|>3<|close|>argument<|sep|>'
    "<|close|>call<|sep|><|close|>tools<|sep|>",
)
