"""gpt-oss (OpenAI): harmony.

    <|channel|>analysis<|message|>Look it up.<|end|><|start|>assistant<|channel|>commentary to=functions.get_weather
     <|constrain|>json<|message|>{"city": "Paris"}<|call|>                (written on one line)

The markers are single tokens. A reply is a sequence of messages, and the prompt contains the start of the first one.
`analysis` is thinking, `final` is the answer, `commentary` is text before calls, or a call if it has a recipient; the
chat template writes the recipient before the channel. There are no ids. `<|call|>` and `<|return|>` end the turn, so
servers often keep them. Built-in tools (`python`, `browser.search`) are called in `analysis`. Seen in the field:
headers with two channels, an unknown channel (`commentary?`, `??`), no start, the tool in place of the channel.
"""

from __future__ import annotations

from interlingua.parsing.dialect import Dialect, Span
from interlingua.parsing.shapes.channels.grammar import Channels

DIALECT = Dialect(
    name="harmony",
    summary="gpt-oss: messages in channels, special tokens, no ids",
    models=("*gpt-oss*",),
    shape=Channels(
        start="<|start|>",
        role="assistant",
        channel="<|channel|>",
        constrain="<|constrain|>",
        message="<|message|>",
        ends=("<|end|>", "<|call|>", "<|return|>"),
        to_thinking=("analysis",),
        to_text=("final", "commentary", "user", "all"),
        types=("json", "code"),
        prefix="functions.",
        thinking=Span("<|channel|>analysis<|message|>", "<|end|>"),
        text=Span("<|channel|>commentary<|message|>", "<|end|>"),
        answer=Span("<|channel|>final<|message|>", "<|return|>"),
        call=Span("<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>", "<|call|>"),
    ),
    noise=("<|endoftext|>",),
    sample="<|channel|>analysis<|message|>Two cities.<|end|><|start|>assistant<|channel|>commentary<|message|>"
    "I will look both up.<|end|><|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json"
    '<|message|>{"city": "Paris"}<|call|><|start|>assistant<|channel|>commentary to=functions.get_weather '
    '<|constrain|>json<|message|>{"city": "São Paulo"}<|call|>',
)
