"""K2 Horizon (MBZUAI Institute of Foundation Models).

    <ifm|tool_calls>
    <ifm|tool_call>get_weather
    <ifm|arg_key>city</ifm|arg_key>
    <ifm|arg_value>Paris</ifm|arg_value>
    </ifm|tool_call>
    </ifm|tool_calls>

Each tag is one token. The chat template's `tool_call_format` selects one of three notations: this one (`xml`); the same
with `<ifm|arg_type>string</ifm|arg_type>` between key and value (`xml_typed`); or a JSON object with `name` and
`arguments` inside `<ifm|tool_call>` (`json`). All are read, and `xml` is written. Strings are literal, other values
JSON. The prompt opens the thinking, with a tag for each effort: `think`, `think_fast` or `think_faster`.

Source: the parsers of vLLM (`k2_horizon`) and SGLang (`k2_v3`), and their tests.
"""

from __future__ import annotations

from interlingua.parsing.dialect import Dialect, Span
from interlingua.parsing.shapes.json_envelope.grammar import JsonEnvelope
from interlingua.parsing.shapes.tagged_params.grammar import TaggedParams
from interlingua.parsing.shapes.tagged_params.tag import Tag

SECTION = Span("<ifm|tool_calls>", "</ifm|tool_calls>")
CALL = Tag(open=("<ifm|tool_call>",), close=("</ifm|tool_call>",))
EFFORTS = ("think", "think_fast", "think_faster")

DIALECT = Dialect(
    name="k2_horizon",
    summary="K2 Horizon: tags that are special tokens, with or without types, or JSON",
    models=("*k2-horizon*", "*k2_horizon*"),
    shape=TaggedParams(
        call=CALL,
        param=Tag(open=("<ifm|arg_key>",), end=("</ifm|arg_key>",), close=("</ifm|arg_value>",)),
        sections=(SECTION,),
        value_open=("\n<ifm|arg_value>", "<ifm|arg_value>"),
        value_type=Span("<ifm|arg_type>", "</ifm|arg_type>"),
        call_gap="\n",
        param_gap="\n",
        inside=JsonEnvelope(open=(*CALL.open, SECTION.open), close=(*CALL.close, SECTION.close)),
    ),
    thinking=tuple(Span(f"<ifm|{effort}>", f"</ifm|{effort}>", inside="\n", after="\n") for effort in EFFORTS),
    noise=("<|ifm|im_end|>", "<|ifm|im_start|>assistant", "<|ifm|im_start|>"),
    trim="\n",
    lead="\n",
    sample="<ifm|think>\nTwo cities.\n</ifm|think>\nLet me look.\n<ifm|tool_calls>\n"
    "<ifm|tool_call>get_weather\n<ifm|arg_key>city</ifm|arg_key>\n<ifm|arg_value>Paris</ifm|arg_value>\n"
    "</ifm|tool_call>\n"
    "<ifm|tool_call>get_weather\n<ifm|arg_key>city</ifm|arg_key>\n<ifm|arg_value>São Paulo</ifm|arg_value>\n"
    "<ifm|arg_key>days</ifm|arg_key>\n<ifm|arg_value>3</ifm|arg_value>\n</ifm|tool_call>\n</ifm|tool_calls>",
)
