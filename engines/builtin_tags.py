"""xgrammar's built-in structural tags beside the exported ones: which dialect each is for, and where they differ."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["BUILTIN_TAGS", "BuiltinTag"]


@dataclass(frozen=True)
class BuiltinTag:
    """A tag of xgrammar, for replies without thinking."""

    model: str
    """The name of the tag in xgrammar."""
    dialect: str
    before: str = ""
    """Text that the tag requires before what `render` writes, if a call is required."""
    before_text: str = ""
    """Text that it requires before it, if a call is not required."""
    after: str = ""
    """Text that the tag requires after it."""
    differs: tuple[str, ...] = ()
    """The shared texts on which the two disagree."""
    reason: str = ""


ALL = ("a call", "all types", "two calls", "no params", "lines", "text and a call")
CALLS = ALL[:-1]

BUILTIN_TAGS = (
    BuiltinTag("llama", "llama3_json"),
    BuiltinTag("kimi", "kimi_k2"),
    BuiltinTag(
        "kimi_k3",
        "kimi_k3",
        before="<|close|>response<|sep|>",
        after="<|close|>message<|sep|>",
        differs=("text and a call",),
        reason="the tag begins inside the response, whose opening marker the prompt has written, and ends the message",
    ),
    BuiltinTag("deepseek_r1", "deepseek_v3"),
    BuiltinTag("deepseek_v3_1", "deepseek_v31"),
    BuiltinTag("deepseek_v3_2", "deepseek_v32", before="\n\n", reason="the blank line before calls is required"),
    BuiltinTag("deepseek_v4", "deepseek_v4", before="\n\n", reason="the blank line before calls is required"),
    BuiltinTag("deepseek_v4_1", "deepseek_v41", before="\n\n", reason="the blank line before calls is required"),
    BuiltinTag("qwen_3", "hermes"),
    BuiltinTag("exaone", "hermes", differs=ALL, reason="EXAONE writes no line breaks around the JSON of a call"),
    BuiltinTag(
        "qwen_3_coder",
        "qwen3_coder",
        differs=("two calls", "no params"),
        reason="a call without params has an empty line in the tag, and none in the model's chat template",
    ),
    BuiltinTag(
        "qwen_3_5",
        "qwen3_coder",
        differs=("two calls", "no params"),
        reason="a call without params has an empty line in the tag, and none in the model's chat template",
    ),
    BuiltinTag("mimo", "qwen3_coder", differs=ALL, reason="MiMo writes no line breaks between the tags"),
    BuiltinTag(
        "harmony",
        "harmony",
        differs=(*ALL, "an empty reply"),
        reason="the tag has no space before <|constrain|>, the model's chat template has one; it accepts an empty reply"
        " although a call is required",
    ),
    BuiltinTag(
        "minimax",
        "minimax_m2",
        before="\n</think>\n\n\n\n\n",
        before_text="\n</think>\n\n\n\n",
        reason="the tag ends thinking that the prompt has opened, also if the reply has none",
    ),
    BuiltinTag("minimax_m3", "minimax_m3"),
    BuiltinTag("glm_4_7", "glm47"),
    BuiltinTag("cohere", "cohere_cmd5"),
)
