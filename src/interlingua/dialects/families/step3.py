"""Step 3 (StepFun). Step 3.5 and later use the Qwen3-Coder format.

    <｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="get_weather">
    <steptml:parameter name="city">Paris</steptml:parameter></steptml:invoke><｜tool_call_end｜><｜tool_calls_end｜>
                                                                                          (written on one line)
The outer markers are tokens, with the full-width bar U+FF5C and plain underscores.
"""

from __future__ import annotations

from interlingua.parsing.dialect import Dialect, Span
from interlingua.parsing.shapes.tagged_params.grammar import TaggedParams
from interlingua.parsing.shapes.tagged_params.tag import Tag

INVOKE = "<steptml:invoke "

DIALECT = Dialect(
    name="step3",
    summary="Step 3: tags inside special tokens",
    models=("step3", "*/step3", "*/step3-*", "*/step-3-*"),
    shape=TaggedParams(
        call=Tag(
            open=(f"<｜tool_call_begin｜>function<｜tool_sep｜>{INVOKE}", INVOKE),
            attribute=("name",),
            end=(">",),
            close=("</steptml:invoke><｜tool_call_end｜>", "</steptml:invoke>", "<｜tool_call_end｜>"),
        ),
        param=Tag(open=("<steptml:parameter ",), attribute=("name",), end=(">",), close=("</steptml:parameter>",)),
        sections=(Span("<｜tool_calls_begin｜>", "<｜tool_calls_end｜>"),),
    ),
    thinking=(Span("<think>", "</think>", after="\n"),),
    noise=("<|EOT|>", "<｜tool_call_begin｜>", "<｜tool_sep｜>"),
    ordinary=("<steptml:", "</steptml:"),
    trim="\n",
    sample="<think>Two cities.</think>\nLet me look.<｜tool_calls_begin｜>"
    '<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="get_weather">'
    '<steptml:parameter name="city">Paris</steptml:parameter></steptml:invoke><｜tool_call_end｜>'
    '<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="get_weather">'
    '<steptml:parameter name="city">São Paulo</steptml:parameter></steptml:invoke><｜tool_call_end｜>'
    "<｜tool_calls_end｜>",
)
