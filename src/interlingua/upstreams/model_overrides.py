"""Profile overrides for models, independent of the upstream that serves them: one row each, applied from top to bottom.

A row changes fields of the profile. A row with `upstreams` applies only to these upstreams.
"""

from __future__ import annotations

import re
from fnmatch import translate
from functools import lru_cache
from typing import Any

import msgspec

from interlingua.upstreams.profile import Profile

__all__ = ["MODEL_OVERRIDES", "ModelOverride", "profile_for_model"]


class ModelOverride(msgspec.Struct, frozen=True):
    ids: tuple[str, ...]
    """Patterns of model ids, in lower case."""
    changes: dict[str, Any]
    upstreams: tuple[str, ...] = ()


CLAUDE_4_6 = ("*claude-opus-4[-.]6*", "*claude-sonnet-4[-.]6*")
OPUS_4_7 = ("*claude-opus-4[-.][78]*",)
CLAUDE_5 = ("*claude-opus-5*", "*claude-sonnet-5*", "*claude-haiku-5*", "*claude-fable-5*", "*claude-mythos*")
TEXT_ONLY = (
    "*kimi-k2",
    "*kimi-k2-0*",
    "*kimi-k2-instruct*",
    "*kimi-k2-thinking*",
    "*kimi-k2-turbo*",
    "*deepseek-v3*",
    "*deepseek-v4-flash*",
    "*deepseek-r1*",
    "deepseek-chat",
    "deepseek-reasoner",
    "*glm-4.[567]",
    "*glm-4.[567]-*",
    "*glm-5.2",
    "*glm-5.2-*",
    "*qwen3-coder*",
    "*qwen3-next*",
    "*qwq*",
    "*gpt-oss*",
    "*minimax-m2*",
    "*llama-3.[13]-*",
    "*mixtral*",
    "*codestral*",
)

MODEL_OVERRIDES = (
    # its tool call guidance; users' reports: after other ids it writes calls as text, also on vLLM and SGLang
    ModelOverride(("*kimi-k2*",), {"ids": "functions"}),
    # its templates up to v3 and its tokenizer raise at any other id, on every upstream; later ones accept any id
    ModelOverride(("*mistral*", "*mixtral*", "*ministral*", "*codestral*", "*devstral*"), {"ids": "nine"}),
    # They accept only text. Source: their model cards; answers of vLLM and of DeepSeek's API that users report.
    # Variants with vision have other ids, such as GLM-4.6V, Qwen3-VL, Kimi K2.5.
    ModelOverride(TEXT_ONLY, {"vision": False}),
    # They always think. Source: their documentation (Kimi K2 Thinking, GLM-5.3) or responses that users report (Kimi
    # K2.7 Code: `disabled` is rejected; MiniMax M2: ignored). The templates of Qwen, QwQ, R1, gpt-oss have no switch.
    ModelOverride(
        (
            "*kimi-k3*",
            "*kimi-k2.7-code*",
            "*kimi-k2-thinking*",
            "*glm-5.3*",
            "*minimax-m2*",
            "*qwen3*-thinking*",
            "*qwq*",
            "*deepseek-r1*",
            "*gpt-oss*",
        ),
        {"can_stop_thinking": False, "thinks_unasked": True},
    ),
    # OpenAI's reference: no model before GPT-5.1 accepts the effort `none`
    ModelOverride(
        ("o[134]", "o[134]-*", "*/o[134]", "*/o[134]-*", "gpt-5", "gpt-5-*", "*/gpt-5", "*/gpt-5-*"),
        {"can_stop_thinking": False, "thinks_unasked": True},
    ),
    # They never think: no thinking setting is sent. Source: their model cards.
    ModelOverride(
        (
            "*kimi-k2-0711*",
            "*kimi-k2-0905*",
            "*kimi-k2-turbo*",
            "*kimi-k2-instruct*",
            "moonshot-v1*",
            "*qwen3-coder*",
            "*qwen*-instruct*",
        ),
        {"thinking": "none", "thinks_unasked": False, "thinking_with_calls": False},
    ),
    # users' probes of its API: an effort and no `thinking`; `required` is accepted, the name of a tool is not
    ModelOverride(
        ("*kimi-k3*",), {"thinking": "effort", "required_with_thinking": True, "named": False}, upstreams=("moonshot",)
    ),
    # its guide: dynamic tool loading; other models answer "tokenization failed"
    ModelOverride(("*kimi-k3*",), {"tools_in_messages": True}, upstreams=("moonshot",)),
    # its guide; its answer: "invalid temperature: only 1 is allowed for this model"
    ModelOverride(("*kimi-k2.[5-9]*", "*kimi-k3*", "*kimi-for-coding*"), {"sampling": False}, upstreams=("moonshot",)),
    # its answer: "Only the default (1) value is supported"; some accept others when they do not think
    ModelOverride(("o[134]", "o[134]-*", "gpt-5*"), {"sampling": False}, upstreams=("openai",)),
    # users' probes of its API, and its model pages
    ModelOverride(("o[134]", "o[134]-*"), {"efforts": ("low", "medium", "high")}, upstreams=("openai",)),
    ModelOverride(("gpt-5", "gpt-5-*"), {"efforts": ("minimal", "low", "medium", "high")}, upstreams=("openai",)),
    ModelOverride(("gpt-5-pro*",), {"efforts": ("high",)}, upstreams=("openai",)),
    ModelOverride(("gpt-5.1*",), {"efforts": ("low", "medium", "high")}, upstreams=("openai",)),
    ModelOverride(
        ("gpt-5.1-codex-max*", "gpt-5.[2-5]*"), {"efforts": ("low", "medium", "high", "xhigh")}, upstreams=("openai",)
    ),
    ModelOverride(("gpt-5.[24]-pro*",), {"efforts": ("medium", "high", "xhigh")}, upstreams=("openai",)),
    # users' reports: OpenRouter returns the errors of the models' own servers
    ModelOverride(
        ("*kimi-k2.[5-9]*", "*deepseek-v4*"),
        {"thinks_unasked": True, "required_with_thinking": False, "thinking_with_calls": True},
        upstreams=("openrouter",),
    ),
    # its coding plan's guide: low, high, max in addition to `thinking`
    ModelOverride(
        ("*glm-5.2*", "*glm-5.3*"), {"thinking": "type-effort", "efforts": ("low", "high", "max")}, upstreams=("zai",)
    ),
    # users' reports, which quote its answer and its documentation: calls without a signature are rejected, and this
    # value skips the check
    ModelOverride(
        ("gemini-[3-9]*", "models/gemini-[3-9]*"),
        {"call_signature": "skip_thought_signature_validator"},
        upstreams=("google",),
    ),
    # not verified: thinking cannot be disabled in Gemini 2.5 Pro and in Gemini 3
    ModelOverride(
        ("*gemini-2.5-pro*", "*gemini-[3-9]*"),
        {"can_stop_thinking": False, "thinks_unasked": True},
        upstreams=("google",),
    ),
    # Mistral's answer; Mistral serves it, too
    ModelOverride(("*glm-5.3*",), {"efforts": ("low", "high", "max")}, upstreams=("mistral",)),
    # its documentation of `effort`
    ModelOverride(("*claude-opus-4[-.]5*",), {"efforts": ("low", "medium", "high")}),
    ModelOverride(CLAUDE_4_6, {"efforts": ("low", "medium", "high", "max")}),
    # its migration guide: rejected since 4.6; its answer, also at Bedrock, Copilot and OpenRouter: "This model does not
    # support assistant message prefill. The conversation must end with a user message". Haiku 5: not verified
    ModelOverride((*CLAUDE_4_6, *OPUS_4_7, *CLAUDE_5), {"prefill": False}),
    # its answer: "`thinking.type.enabled` is not supported for this model. Use `thinking.type.adaptive` and
    # `output_config.effort`"; temperature, top_p and top_k are rejected, too. Haiku 5 and each .5: not verified
    ModelOverride(
        (*OPUS_4_7, *CLAUDE_5),
        {"budgets": False, "efforts": ("low", "medium", "high", "xhigh", "max"), "sampling": False},
    ),
    # the same in chat completions: not verified
    ModelOverride((*OPUS_4_7, *CLAUDE_5), {"thinking": "adaptive"}, upstreams=("anthropic",)),
    # its migration guide: thinking is on unless it is disabled
    ModelOverride(CLAUDE_5, {"thinks_unasked": True}),
    # users' reports: `disabled` is rejected
    ModelOverride(("*claude-fable-5*", "*claude-mythos*", "*claude-opus-5[-.]5*"), {"can_stop_thinking": False}),
    # its answer to `enabled`: "allowed: adaptive, disabled"
    ModelOverride(("*minimax-m3*",), {"thinking": "adaptive", "can_stop_thinking": True}, upstreams=("minimax",)),
)


_COMPILED_OVERRIDES = [(re.compile("|".join(map(translate, row.ids))), row) for row in MODEL_OVERRIDES]


@lru_cache(1024)
def profile_for_model(profile: Profile, model: str) -> Profile:
    """Return the upstream's profile with the overrides for this model."""
    model = model.lower()
    for pattern, override in _COMPILED_OVERRIDES:
        if override.upstreams and profile.name not in override.upstreams:
            continue
        if pattern.match(model):
            changes = {name: value for name, value in override.changes.items() if name not in profile.settled}
            profile = msgspec.structs.replace(profile, **changes)
    return profile
