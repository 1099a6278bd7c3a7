"""Functionary 3.1 and 3.2 (MeetKai).

    Let me check.<function=get_weather>{"city": "Paris"}</function>           (3.1)

    >>>all
    Let me check.>>>get_weather
    {"city": "Paris"}                                                         (3.2)

All markers are ordinary text, and prose may contain them: Python's own prompt is `>>>`. So a call requires a name in
its place and an object after it. There are no ids. The prompt of 3.2 ends in the first `>>>`. If the caller does not
pass it as `prefill`, a reply that starts with `all` or with an offered tool's name on a line of its own is parsed, too.
"""

from __future__ import annotations

from interlingua.parsing.dialect import Dialect, Span
from interlingua.parsing.shapes.framed_json.grammar import FramedJson

NOISE = ("<|eot_id|>", "<|eom_id|>")

V31 = Dialect(
    name="functionary_v31",
    summary="Functionary 3.1: JSON in a tag with the name, ordinary text",
    models=("*functionary*v3.1*",),
    shape=FramedJson(open=("<function=",), header=("{name}",), fences=(Span(">", "</function>"),)),
    noise=NOISE,
    special_tokens=False,
    sample='Let me check both.<function=get_weather>{"city": "Paris"}</function>'
    '<function=get_weather>{"city": "Oslo"}</function>',
)

V32 = Dialect(
    name="functionary_v32",
    summary="Functionary 3.2: the name on a line of its own, ordinary text",
    models=("*functionary*v3.2*",),
    shape=FramedJson(open=(">>>",), header=("{name}",), fences=(Span("\n", ""),), prompt_opens=True),
    text=(Span(">>>all\n", ""),),
    noise=NOISE,
    special_tokens=False,
    caveats="`>>>all` on a line of its own is dropped, and `>>>` with an offered tool's name and an object below it "
    "is a call, anywhere in a reply: also in a quoted Python prompt.",
    sample='>>>all\nLet me check both.>>>get_weather\n{"city": "Paris"}>>>get_weather\n{"city": "Oslo"}',
)
