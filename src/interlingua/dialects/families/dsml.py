"""DSML: DeepSeek V3.2, V4 and V4.1, and GigaChat 3.5 (Sber).

    <｜DSML｜tool_calls>
    <｜DSML｜invoke name="get_weather">
    <｜DSML｜parameter name="city" string="true">Paris</｜DSML｜parameter>
    <｜DSML｜parameter name="days" string="false">3</｜DSML｜parameter>
    </｜DSML｜invoke>
    </｜DSML｜tool_calls>

`｜DSML｜` is one token (the bar is U+FF5C); the names around it are text. V3.2 names the block `function_calls`, V4.1
names it `calls` and writes a space after each token, and there an invoke may contain one JSON object and a name may
have a namespace, `search::lookup`. `string="true"` means literal text, `"false"` means JSON. The prompt opens the
thinking, or opens and closes it. Seen in the field: no block around the invoke; another version's block name or
spacing; doubled, ASCII and spaced bars; no bars in the closer of a param; all arguments inside one `arguments` param;
prose inside the name.

GigaChat 3.5 has the token `｜GCML｜` instead, and the prompt opens its thinking, too.

Sources: for V4.1 its parsers in vLLM and SGLang (`deepseek_v41`); for GigaChat 3.5 its parsers in vLLM, SGLang and
llama.cpp, and its chat template.
"""

from __future__ import annotations

from interlingua.parsing.dialect import Dialect, Span
from interlingua.parsing.shapes.tagged_params.grammar import TaggedParams
from interlingua.parsing.shapes.tagged_params.tag import Tag

BAR, SPACED_BAR, GCML = "｜DSML｜", "｜DSML｜ ", "｜GCML｜"
OTHER_BARS = ("｜｜DSML｜｜", "‖DSML‖", "|DSML|", " | DSML | ", "DSML ")
ORDINARY = tuple(f"{begin}{bar}" for bar in OTHER_BARS if BAR not in bar for begin in ("<", "</"))


def dsml(blocks: tuple[str, ...], bars: tuple[str, ...]) -> TaggedParams:
    """Return the shape of DSML. The first block name and the first spelling of the token are written."""
    return TaggedParams(
        call=Tag(
            open=tuple(f"<{bar}invoke " for bar in bars),
            attribute=("name",),
            end=(">",),
            close=tuple(f"</{bar}invoke>" for bar in bars),
        ),
        param=Tag(
            open=tuple(f"<{bar}parameter " for bar in bars),
            attribute=("name",),
            end=(">",),
            close=tuple(f"</{bar}parameter>" for bar in bars),
            slips=("</parameter>",),
        ),
        sections=tuple(Span(f"<{bar}{name}>", f"</{bar}{name}>") for name in blocks for bar in bars),
        string_when="string=true",
        call_gap="\n",
        param_gap="\n",
    )


def sample(block: str, bar: str) -> str:
    return (
        f"<{bar}{block}>\n"
        f'<{bar}invoke name="get_weather">\n'
        f'<{bar}parameter name="city" string="true">Paris</{bar}parameter>\n'
        f"</{bar}invoke>\n"
        f'<{bar}invoke name="get_weather">\n'
        f'<{bar}parameter name="city" string="true">São Paulo</{bar}parameter>\n'
        f'<{bar}parameter name="days" string="false">3</{bar}parameter>\n'
        f"</{bar}invoke>\n</{bar}{block}>"
    )


THINKING = (Span("<think>", "</think>"),)
NOISE = ("<｜end▁of▁sentence｜>",)
SAMPLE_TEXT = "<think>Two cities.</think>Let me look.\n\n"

V41 = Dialect(
    name="deepseek_v41",
    summary="DeepSeek V4.1: DSML with a space after each token and the block name calls",
    models=("*deepseek*v4.1*", "*deepseek*v4p1*"),
    shape=dsml(("calls", "tool_calls", "function_calls", "tool_use"), (SPACED_BAR, BAR, *OTHER_BARS)),
    thinking=THINKING,
    noise=NOISE,
    ordinary=ORDINARY,
    trim="\n",
    lead="\n\n",
    sample=SAMPLE_TEXT + sample("calls", SPACED_BAR),
)
V4 = Dialect(
    name="deepseek_v4",
    summary="DeepSeek V4: DSML, types in the text",
    models=("*deepseek*v4*", "deepseek-chat", "*deepseek-reasoner"),
    shape=dsml(("tool_calls", "function_calls", "calls", "tool_use"), (BAR, SPACED_BAR, *OTHER_BARS)),
    thinking=THINKING,
    noise=NOISE,
    ordinary=ORDINARY,
    trim="\n",
    lead="\n\n",
    sample=SAMPLE_TEXT + sample("tool_calls", BAR),
)
V32 = Dialect(
    name="deepseek_v32",
    summary="DeepSeek V3.2: DSML with the block name function_calls",
    models=("*deepseek*v3.2*", "*deepseek*v3p2*", "*deepseek-3.2*"),
    shape=dsml(("function_calls", "tool_calls", "calls", "tool_use"), (BAR, SPACED_BAR, *OTHER_BARS)),
    thinking=THINKING,
    noise=NOISE,
    ordinary=ORDINARY,
    trim="\n",
    lead="\n\n",
    sample=SAMPLE_TEXT + sample("function_calls", BAR),
)
GIGACHAT35 = Dialect(
    name="gigachat35",
    summary="GigaChat 3.5: DSML with the token GCML",
    models=("*gigachat3.5*",),
    shape=dsml(("tool_calls",), (GCML,)),
    thinking=(Span("<think>", "</think>", after="\n\n"),),
    noise=("<|message_sep|>", "</s>"),
    trim="\n",
    lead="\n\n",
    sample="<think>Two cities.</think>\n\nLet me look.\n\n" + sample("tool_calls", GCML),
)
