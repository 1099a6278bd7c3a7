"""Muse Glimmer (Meta).

     to=self<|message|>Look it up.<|eom|><|start|>assistant to=get_weather<|message|><atem:function_calls>
    <atem:invoke name="get_weather">
    <atem:parameter name="city">Paris</atem:parameter>
    </atem:invoke>
    </atem:function_calls><|eot|>

A reply is a sequence of messages, and the prompt contains the start of the first one. A message to `self` is thinking,
a message to `user` or without recipient is text, and a message to a tool contains its call in tags, which are ordinary
text. There are no ids. `<|eot|>` ends the turn, so servers often keep it. Most turns have one call. Seen in the field:
JSON between the tags or after a message, a header (`to=get_weather<|message|>`) inside thinking without the end of the
message before it, and names that are written twice (`get_weather.get_weather`). A text may quote headers: inside it, a
header counts only before the tags of a call of an offered tool.
"""

from __future__ import annotations

from interlingua.parsing.dialect import Dialect, Span
from interlingua.parsing.shapes.channels.grammar import Channels
from interlingua.parsing.shapes.json_envelope.grammar import JsonEnvelope
from interlingua.parsing.shapes.tagged_params.grammar import TaggedParams
from interlingua.parsing.shapes.tagged_params.tag import Tag

DIALECT = Dialect(
    name="muse",
    summary="Muse Glimmer: messages to recipients, calls in XML-like tags",
    models=("*muse-glimmer*",),
    shape=Channels(
        start="<|start|>",
        role="assistant",
        message="<|message|>",
        ends=("<|eom|>", "<|eot|>"),
        to_thinking=("self",),
        to_text=("user",),
        thinking=Span(" to=self<|message|>", "<|eom|>"),
        text=Span(" to=user<|message|>", "<|eom|>"),
        call=Span(" to={name}<|message|>", "<|eom|>"),
        last_end="<|eot|>",
        body=TaggedParams(
            call=Tag(open=("<atem:invoke ",), attribute=("name",), end=(">",), close=("</atem:invoke>",)),
            param=Tag(open=("<atem:parameter ",), attribute=("name",), end=(">",), close=("</atem:parameter>",)),
            sections=(Span("<atem:function_calls>", "</atem:function_calls>"),),
            call_gap="\n",
            param_gap="\n",
            next_message="<|start|>",
            inside=JsonEnvelope(open=("<atem:function_calls>",), close=("</atem:function_calls>",)),
        ),
    ),
    noise=("<|end_of_text|>",),
    special_tokens=False,
    sample=" to=self<|message|>Two cities.<|eom|><|start|>assistant to=user<|message|>Let me look.<|eom|>"
    '<|start|>assistant to=get_weather<|message|><atem:function_calls>\n<atem:invoke name="get_weather">\n'
    '<atem:parameter name="city">Paris</atem:parameter>\n</atem:invoke>\n</atem:function_calls><|eom|>'
    '<|start|>assistant to=get_weather<|message|><atem:function_calls>\n<atem:invoke name="get_weather">\n'
    '<atem:parameter name="city">São Paulo</atem:parameter>\n<atem:parameter name="days">3</atem:parameter>\n'
    "</atem:invoke>\n</atem:function_calls><|eot|>",
)
