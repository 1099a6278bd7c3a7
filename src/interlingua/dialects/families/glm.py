"""GLM 4.5 to 5 (Z.ai); also Ling 3, Ring 2.6, Poolside's Laguna, HyperCLOVA X SEED Think 32B
and IQuest.

    <tool_call>get_weather<arg_key>city</arg_key><arg_value>Paris</arg_value></tool_call>

Up to 4.6, and in Laguna XS, each element is on a line of its own. All six tags are tokens, but the name between two of
them is not, and models quote the tags in their thinking. Strings are written literally, other values as JSON. From 4.7
on the prompt opens the thinking; a reply without thinking starts with `</think>`. Seen in the field: the call inside
thinking; a missing `<arg_value>`, `<arg_key>` or complete key; a Hermes object inside the same tags.

IQuest Q1 and IQuest Coder V2 have another name for the outer tag. Source: their parsers in vLLM and SGLang.
"""

from __future__ import annotations

from interlingua.parsing.dialect import Dialect, Span
from interlingua.parsing.shapes.json_envelope.grammar import JsonEnvelope
from interlingua.parsing.shapes.tagged_params.grammar import TaggedParams
from interlingua.parsing.shapes.tagged_params.tag import Tag

CALL = Tag(open=("<tool_call>",), close=("</tool_call>",))
PARAM = Tag(open=("<arg_key>",), end=("</arg_key>",), close=("</arg_value>",))
NOISE = ("<|user|>", "<|observation|>", "<|endoftext|>", "<|assistant|>", "</assistant>")
JSON = JsonEnvelope(open=CALL.open, close=CALL.close)

GLM45 = Dialect(
    name="glm45",
    summary="GLM 4.5 and 4.6, Laguna XS, Ring 2.6, HyperCLOVA X 32B: tags on lines of their own",
    models=("*glm-4.[56]*", "*glm-4p[56]*", "*laguna-xs*", "ring-2.6*", "*/ring-2.6*", "*hyperclovax*think-32b*"),
    shape=TaggedParams(
        call=CALL,
        param=PARAM,
        value_open=("\n<arg_value>", "<arg_value>"),
        call_gap="\n",
        param_gap="\n",
        inside=JSON,
    ),
    thinking=(Span("<think>", "</think>", after="\n"),),
    noise=NOISE,
    special_tokens=False,
    trim="\n",
    lead="\n",
    sample="<think>Two cities.</think>\nLet me look.\n"
    "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n</tool_call>\n"
    "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>São Paulo</arg_value>\n"
    "<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n</tool_call>",
)
GLM47 = Dialect(
    name="glm47",
    summary="GLM 4.7 and 5, Ling 3, Laguna S: tags without line breaks",
    models=("*glm-4.7*", "*glm-4p7*", "*glm-5*", "*laguna*", "ling-3*", "*/ling-3*"),
    shape=TaggedParams(call=CALL, param=PARAM, value_open=("<arg_value>",), inside=JSON),
    thinking=(Span("<think>", "</think>"),),
    noise=NOISE,
    special_tokens=False,
    trim="\n",
    sample="<think>Two cities.</think>Let me look."
    "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Paris</arg_value></tool_call>"
    "<tool_call>get_weather<arg_key>city</arg_key><arg_value>São Paulo</arg_value>"
    "<arg_key>days</arg_key><arg_value>3</arg_value></tool_call>",
)


def iquest(name: str, summary: str, models: tuple[str, ...], tag: str) -> Dialect:
    """Return a dialect that has its own outer tag and is otherwise like GLM 4.7."""
    call = Tag(open=(f"<{tag}>",), close=(f"</{tag}>",))
    return Dialect(
        name=name,
        summary=summary,
        models=models,
        shape=TaggedParams(
            call=call, param=PARAM, value_open=("<arg_value>",), inside=JsonEnvelope(open=call.open, close=call.close)
        ),
        thinking=(Span("<think>", "</think>"),),
        noise=("<|iquest_end|>", "<|iquest_assistant|>", "<|im_end|>", "<|im_start|>assistant"),
        special_tokens=False,
        trim="\n",
        sample="<think>Two cities.</think>Let me look."
        f"<{tag}>get_weather<arg_key>city</arg_key><arg_value>Paris</arg_value></{tag}>"
        f"<{tag}>get_weather<arg_key>city</arg_key><arg_value>São Paulo</arg_value>"
        f"<arg_key>days</arg_key><arg_value>3</arg_value></{tag}>",
    )


IQUEST_Q1 = iquest(
    "iquest_q1", "IQuest Q1: like glm47, in <iquest_tool_call> tags", ("*iquest-q1*",), "iquest_tool_call"
)
IQUEST_CODER_V2 = iquest(
    "iquest_coder_v2",
    "IQuest Coder V2: like glm47, in <iquestcoder_tool_call> tags",
    ("*iquest-coder-v2*",),
    "iquestcoder_tool_call",
)
