"""Refusals of model servers that a changed request avoids: the messages that state them, one row each.

A row lists the server and the version whose message it is. A message names what is refused with the groups `window`
(context window), `input` (tokens of the prompt), `reply` (requested reply tokens) and `largest` (maximum reply tokens).
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

import msgspec

__all__ = ["REFUSAL_PATTERNS", "Refusal", "RefusalKind", "RefusalPattern", "recognize_refusal"]

RefusalKind: TypeAlias = Literal[
    "no-tool-parser",  # the server has no tool parser, and rejects tools
    "window",  # prompt and requested reply together exceed the context window
    "reply-limit",  # the requested reply exceeds the maximum length of a reply
    "no-images",  # the model does not accept images
    "no-constraint",  # the server does not accept a structural tag
    "no-thinking",  # the model cannot think, and rejects the setting
]
TRANSIENT_OR_ACCESS_STATUSES = frozenset({401, 402, 403, 408, 429, 502, 503, 504, 529})
"""Statuses of errors that do not depend on the content of the request."""


class RefusalPattern(msgspec.Struct, frozen=True):
    kind: RefusalKind
    source: str
    """Server, with the versions that send this message."""
    regex: str


class Refusal(msgspec.Struct, frozen=True):
    """A refused request, with the numbers in the message; 0 if it does not contain them."""

    kind: RefusalKind
    window: int = 0
    """Context window in tokens."""
    input: int = 0
    """Tokens of the prompt."""
    reply: int = 0
    """Requested tokens of the reply."""
    largest: int = 0
    """Maximum tokens of a reply."""
    forced: bool = False
    """True if the refused tool choice was `required` or the name of a tool."""

    @property
    def is_input_exact(self) -> bool:
        """True if `input` is the length of the prompt. vLLM stops counting as soon as the prompt is too long, and some
        messages do not state it."""
        return self.input > 0 and self.input + self.reply > self.window + 1

    @property
    def left(self) -> int:
        """Tokens of the context window that the prompt leaves for the reply."""
        return self.window - self.input


REFUSAL_PATTERNS = (
    RefusalPattern(
        "no-tool-parser", "vLLM, up to 0.27 at least", r'"auto" tool choice requires --enable-auto-tool-choice'
    ),
    RefusalPattern(
        "no-tool-parser",
        "vLLM since 0.14, for `required` and the name of a tool",
        r"(?P<forced>tool_choice=.{1,200}?) requires --tool-call-parser",
    ),
    RefusalPattern(
        "window",
        "vLLM from 0.10 to 0.17",
        r"max_(?:completion_)?tokens'? is too large: (?P<reply>\d+)\. This model's maximum context length is"
        r" (?P<window>\d+) tokens and your request has (?P<input>\d+) input tokens",
    ),
    RefusalPattern(
        "window",
        "vLLM since 0.18, which counts only as many tokens as are allowed",
        r"maximum context length is (?P<window>\d+) tokens\. However, you requested (?P<reply>\d+) output tokens and"
        r" your prompt contains (?:at least )?(?P<input>\d+) input tokens",
    ),
    RefusalPattern(
        "window",
        "vLLM since 0.18, a prompt that is too long to be counted",
        r"maximum context length is (?P<window>\d+) tokens\. However, you requested (?P<reply>\d+) output tokens and"
        r" your prompt contains \d+ characters",
    ),
    RefusalPattern(
        "window",
        "vLLM 0.16 and 0.17",
        r"You passed (?:(?P<input>\d+) input tokens|\d+ input characters) and requested (?P<reply>\d+) output tokens\."
        r" However, the model's context length is only (?P<window>\d+) tokens",
    ),
    RefusalPattern(
        "window",
        "vLLM up to 0.9, DeepSeek, OpenAI's older models",
        r"maximum context length is (?P<window>\d+) tokens[.,] [Hh]owever,? you requested \d+ tokens"
        r" \((?P<input>\d+) in (?:the messages|your prompt)[,;] (?P<reply>\d+) (?:in|for) the completion\)",
    ),
    RefusalPattern(
        "window",
        "SGLang since 0.4.2",
        r"exceeds the model's maximum context length of (?P<window>\d+) tokens\. You requested a total of \d+ tokens:"
        r" (?P<input>\d+) tokens from the input messages and (?P<reply>\d+) tokens for the completion",
    ),
    RefusalPattern(
        "window",
        "TGI",
        r"`inputs` tokens \+ `max_new_tokens` must be <= (?P<window>\d+)\. Given: (?P<input>\d+) `inputs` tokens and"
        r" (?P<reply>\d+) `max_new_tokens`",
    ),
    RefusalPattern(
        "window",
        "Anthropic",
        r"`max_tokens` exceed context limit: (?P<input>\d+) \+ (?P<reply>\d+) > (?P<window>\d+)",
    ),
    RefusalPattern(
        "window",
        "OpenRouter, which estimates the length of the prompt",
        r"maximum context length is (?P<window>\d+) tokens\. However, you requested about \d+ tokens"
        r" \([^()]{1,100}, (?P<reply>\d+) in the output\)",
    ),
    RefusalPattern(
        "window",
        "vLLM from 0.10 to 0.19, a prompt that does not fit",
        r"maximum context length is (?P<window>\d+) tokens\. However, your request has (?P<input>\d+) input tokens",
    ),
    RefusalPattern(
        "window",
        "vLLM up to 0.9, a prompt that does not fit",
        r"maximum context length is (?P<window>\d+) tokens\. However, you requested (?P<input>\d+) tokens in the"
        r" messages",
    ),
    RefusalPattern(
        "window",
        "vLLM since 0.8, a prompt that does not fit",
        r"prompt \(length (?P<input>\d+)\)(?: plus the number of requested output tokens \(at least 1\))? is longer"
        r" than the maximum model length of (?P<window>\d+)",
    ),
    RefusalPattern(
        "window",
        "SGLang and Together, a prompt that does not fit",
        r"The input \((?P<input>\d+) tokens\) is longer than the model's context length \((?P<window>\d+) tokens\)",
    ),
    RefusalPattern(
        "window",
        "llama.cpp since b7000, a prompt that does not fit",
        r"request \((?P<input>\d+) tokens\) exceeds the available context size \((?P<window>\d+) tokens\)",
    ),
    RefusalPattern(
        "reply-limit",
        "vLLM since 0.16",
        r"max_(?:completion_|output_)?tokens=\d+ ?cannot be greater than"
        r" max_model_len=(?:max_total_tokens=)?(?P<largest>\d+)",
    ),
    RefusalPattern(
        "reply-limit",
        "OpenAI",
        r"max_(?:completion_)?tokens is too large: \d+\. This model supports at most (?P<largest>\d+) completion",
    ),
    RefusalPattern(
        "reply-limit",
        "DeepSeek, Qwen at DashScope, Z.ai",
        r"max_tokens[^\[\]]{0,60}\[1, ?(?P<largest>\d+)\]",
    ),
    RefusalPattern(
        "reply-limit",
        "Anthropic",
        r"max_tokens: \d+ > (?P<largest>\d+), which is the maximum allowed number of output tokens",
    ),
    RefusalPattern(
        "no-constraint", "vLLM", r"[Ii]nvalid (?:structured_outputs |response_format )?structural[_ ]tag specification"
    ),
    RefusalPattern(
        "no-constraint",
        "SGLang, with --grammar-backend none",
        r"Grammar-based generation \(.{0,60}structural_tag\) is not supported",
    ),
    RefusalPattern("no-constraint", "SGLang", r"Failed to compile structural_tag grammar"),
    RefusalPattern("no-images", "vLLM since 0.6, with the vision encoder off", r"At most 0 image\(s\) may be provided"),
    RefusalPattern("no-images", "vLLM since 0.6", r"is not a multimodal model"),
    RefusalPattern("no-images", "SGLang since 0.5.17", r"Model only supports text input; received unsupported content"),
    RefusalPattern(
        "no-images", "SGLang, with --language-model-only", r"Multimodal inputs are not supported when --language-model"
    ),
    RefusalPattern("no-images", "llama.cpp", r"image input is not supported"),
    RefusalPattern("no-images", "Ollama", r"this model is missing data required for image input"),
    RefusalPattern("no-images", "LM Studio and others", r"[Mm]odel does not support images?"),
    RefusalPattern("no-images", "OpenRouter", r"No endpoints found that support image input"),
    RefusalPattern(
        "no-images",
        "DeepSeek, Z.ai",
        r"unknown variant `image_url`, expected `text`|messages\.content\.type is invalid, allowed values: \['text'\]",
    ),
    RefusalPattern("no-thinking", "Ollama", r"does not support thinking"),
    RefusalPattern(
        "no-thinking",
        "OpenAI, Groq",
        r"\breasoning[_.]effort\b['`]? (?:is not supported with this model|does not support '\w+' with this model)",
    ),
)
_COMPILED_PATTERNS = [(re.compile(row.regex), row.kind) for row in REFUSAL_PATTERNS]


def recognize_refusal(status: int, message: str) -> Refusal | None:
    """Return what an error of an upstream refuses; None if a changed request would not help.

    Args:
        status: HTTP status of the upstream; 0 if the error is part of a stream.
        message: The upstream's error message.
    """
    if status in TRANSIENT_OR_ACCESS_STATUSES:
        return None
    for pattern, kind in _COMPILED_PATTERNS:
        if match := pattern.search(message):
            groups = match.groupdict()
            forced = groups.pop("forced", None)
            return Refusal(
                kind, **{name: int(digits or 0) for name, digits in groups.items()}, forced=forced is not None
            )
    return None
