"""DeepSeek V3.2 and V4: DSML.

    <｜DSML｜tool_calls>
    <｜DSML｜invoke name="get_weather">
    <｜DSML｜parameter name="city" string="true">Paris</｜DSML｜parameter>
    <｜DSML｜parameter name="days" string="false">3</｜DSML｜parameter>
    </｜DSML｜invoke>
    </｜DSML｜tool_calls>

`｜DSML｜` is one token (the bar is U+FF5C); the names around it are text. V3.2 names the block `function_calls`, V4.1
names it `calls` and writes a space after each token, and there an invoke may contain one JSON object. `string="true"`
means literal text, `"false"` means JSON. The prompt opens the thinking, or opens and closes it. Seen in the field: no
block around the invoke; the other version's block name; doubled, ASCII and spaced bars; no bars in the closer of a
param; all arguments inside one `arguments` param; prose inside the name.
"""

from __future__ import annotations

from interlingua.parsing.dialect import Dialect, Span
from interlingua.parsing.shapes.tagged_params.grammar import TaggedParams
from interlingua.parsing.shapes.tagged_params.tag import Tag

BARS = ("｜DSML｜", "｜DSML｜ ", "｜｜DSML｜｜", "‖DSML‖", "|DSML|", " | DSML | ", "DSML ")
ORDINARY = tuple(f"{begin}{bar}" for bar in BARS if "｜DSML｜" not in bar for begin in ("<", "</"))
BLOCKS = ("tool_calls", "function_calls", "calls", "tool_use")


def dsml(block: str) -> TaggedParams:
    blocks = (block, *(other for other in BLOCKS if other != block))
    return TaggedParams(
        call=Tag(
            open=tuple(f"<{bar}invoke " for bar in BARS),
            attribute=("name",),
            end=(">",),
            close=tuple(f"</{bar}invoke>" for bar in BARS),
        ),
        param=Tag(
            open=tuple(f"<{bar}parameter " for bar in BARS),
            attribute=("name",),
            end=(">",),
            close=tuple(f"</{bar}parameter>" for bar in BARS),
            slips=("</parameter>",),
        ),
        sections=tuple(Span(f"<{bar}{name}>", f"</{bar}{name}>") for name in blocks for bar in BARS),
        string_when="string=true",
        call_gap="\n",
        param_gap="\n",
    )


def sample(block: str) -> str:
    return (
        "<think>Two cities.</think>Let me look.\n\n"
        f"<｜DSML｜{block}>\n"
        '<｜DSML｜invoke name="get_weather">\n'
        '<｜DSML｜parameter name="city" string="true">Paris</｜DSML｜parameter>\n'
        "</｜DSML｜invoke>\n"
        '<｜DSML｜invoke name="get_weather">\n'
        '<｜DSML｜parameter name="city" string="true">São Paulo</｜DSML｜parameter>\n'
        '<｜DSML｜parameter name="days" string="false">3</｜DSML｜parameter>\n'
        f"</｜DSML｜invoke>\n</｜DSML｜{block}>"
    )


THINKING = (Span("<think>", "</think>"),)
NOISE = ("<｜end▁of▁sentence｜>",)
CAVEATS = (
    "A value is cut where it contains `</｜DSML｜parameter>` followed by text that can follow a param, or a "
    "line that opens another param of the tool. It is also cut where it contains the end of its call followed "
    "by text that can follow a call, or the start of a call of an offered tool."
)

V4 = Dialect(
    name="deepseek_v4",
    summary="DeepSeek V4 and V4.1: DSML, types in the text",
    models=("*deepseek*v4*", "deepseek-chat", "*deepseek-reasoner"),
    shape=dsml("tool_calls"),
    thinking=THINKING,
    noise=NOISE,
    ordinary=ORDINARY,
    trim="\n",
    lead="\n\n",
    caveats=CAVEATS,
    sample=sample("tool_calls"),
)
V32 = Dialect(
    name="deepseek_v32",
    summary="DeepSeek V3.2: DSML with the block name function_calls",
    models=("*deepseek*v3.2*", "*deepseek*v3p2*"),
    shape=dsml("function_calls"),
    thinking=THINKING,
    noise=NOISE,
    ordinary=ORDINARY,
    trim="\n",
    lead="\n\n",
    caveats=CAVEATS,
    sample=sample("function_calls"),
)
