"""HyperCLOVA X SEED Think 14B (NAVER). The 32B model uses the GLM format.

    <|im_start|>assistant/think
    Two cities.<|im_end|>
    <|im_start|>assistant -> tool/function_call
    [{"name": "get_weather", "arguments": {"city": "Paris"}}]<|im_end|>

Thinking, text and calls are messages of their own, which their roles tell apart. The prompt ends with
`<|im_start|>assistant`, so a reply begins with the rest of the first role, `/think`. Inside a text, that is text.
`parameters` may take the place of `arguments`. Source: the parser of vLLM (`hyperclovax_seed_think_14b`), and the model
card.
"""

from __future__ import annotations

from interlingua.parsing.dialect import Dialect, Span
from interlingua.parsing.shapes.json_envelope.grammar import JsonEnvelope

ROLE = "<|im_start|>assistant"
END = "<|im_end|>"

DIALECT = Dialect(
    name="hyperclovax",
    summary="HyperCLOVA X SEED Think 14B: a message for each array of calls",
    models=("*hyperclovax*14b*",),
    shape=JsonEnvelope(
        open=(f"{ROLE} -> tool/function_call", "-> tool/function_call"),
        close=(END,),
        together=True,
        lead="\n[",
        between=", ",
        tail="]",
    ),
    thinking=(Span(f"{ROLE}/think\n", END, after="\n"), Span("/think\n", END)),
    text=(Span(f"{ROLE}\n", END, after="\n"),),
    noise=("<|stop|>", "<|endofturn|>", "<|im_start|>"),
    ordinary=("-> tool", "/think"),
    trim="\n",
    sample=f"{ROLE}/think\nTwo cities.{END}\n{ROLE}\nLet me look.{END}\n{ROLE} -> tool/function_call\n"
    '[{"name": "get_weather", "arguments": {"city": "Paris"}}, '
    f'{{"name": "get_weather", "arguments": {{"city": "São Paulo", "days": 3}}}}]{END}',
)
