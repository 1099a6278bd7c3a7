"""Profiles of known upstreams: one row each, with its differences from the defaults and the evidence for each.

A fact is listed if the upstream's documentation states it, its server or SDK implements it, or users reported its
response; without such evidence the row states *not verified*. Unknown facts are left at the defaults in `profile`.
Facts about a single model, whatever its upstream, are in `model_overrides`. The list covers upstreams that agents use
today.
"""

from __future__ import annotations

from interlingua.upstreams.profile import Profile

__all__ = ["PROFILES"]

OPENAI = Profile(
    name="openai",
    summary="OpenAI",
    hosts=("api.openai.com", "*.openai.azure.com"),
    max_tokens="max_completion_tokens",  # its reference: max_tokens is deprecated, and reasoning models reject it
    system_role="developer",  # its reference
    thinking="effort",
    efforts=("low", "medium", "high", "xhigh", "max"),  # users' probes: GPT-5.6; older models support fewer
    replay="none",  # chat completions neither return thinking nor accept it back
    own_seals=True,
    seal_wire="openai-responses",  # its reference: encrypted_content of reasoning items
    allowed_tools=True,  # its SDK: `allowed_tools` as a choice
    stop=4,  # its reference
    images_in_results=False,  # its SDK: tool messages contain only text
    web_search_wires=("openai-responses",),  # its reference
    cache_key=True,  # its reference
)
ANTHROPIC = Profile(
    name="anthropic",
    summary="Anthropic",
    hosts=("api.anthropic.com",),
    system_anywhere=False,  # its documentation: only the newest models, and only after a user turn
    blank_text=False,  # its answer: text must contain non-whitespace
    names=False,  # its SDK: messages have no names
    billing_line=True,
    thinking="budget",
    efforts=("low", "medium", "high", "xhigh", "max"),  # its SDK; older models support fewer
    tool_search=True,  # its documentation
    web_search_wires=("anthropic-messages",),  # its documentation
    own_seals=True,
    seal_wire="anthropic-messages",  # users' reports: "Invalid signature in thinking block" after switching models
    thinking_first=True,  # users' reports: a turn must start with a thinking block, also in a tool loop
    required_with_thinking=False,  # its documentation: with thinking only `auto` and `none`
    images_in_results=True,  # its documentation
    top_k=True,  # its reference
    cache_marks=True,  # its documentation
)
OPENROUTER = Profile(
    name="openrouter",
    summary="OpenRouter: models of many providers, each with its own limits, behind one API",
    hosts=("openrouter.ai", "*.openrouter.ai"),
    thinking="openrouter",  # its documentation
    replay="reasoning_details",  # its documentation
    top_k=True,  # its reference
    cache_marks=True,  # its documentation: for Claude, Gemini and Qwen
    web_search_wires=("openai-responses",),  # its SDK's reference
    cache_key=True,  # its SDK's reference
)
MOONSHOT = Profile(
    name="moonshot",
    summary="Moonshot: Kimi",
    hosts=("api.moonshot.ai", "api.moonshot.cn", "*.moonshot.ai", "*.moonshot.cn", "api.kimi.com"),
    max_tokens="max_completion_tokens",  # its reference: max_tokens is deprecated
    thinking="type",  # its guide; users' reports: "cannot specify both 'thinking' and 'reasoning_effort'"
    thinks_unasked=True,  # its guide: since K2.5
    thinking_with_calls=True,  # users' reports: "reasoning_content is missing in assistant tool call message"
    required_with_thinking=False,  # its answer: "tool_choice 'required' is incompatible with thinking enabled"
    parallel=False,  # not verified: not seen in its reference
    stop=5,  # its reference
    strict_tools=False,  # other clients do not send it
    ids="functions",  # the model's tool call guidance; users' reports: other ids end in text instead of calls
    cache_key=True,  # its own client sends it
)
DEEPSEEK = Profile(
    name="deepseek",
    summary="DeepSeek",
    hosts=("api.deepseek.com", "*.deepseek.com"),
    thinking="type-effort",  # its guide: every effort is accepted and mapped to low, high or max
    thinks_unasked=True,  # its guide
    thinking_with_calls=True,  # its guide: thinking of turns with calls "must be passed back"; also in Messages
    required_with_thinking=False,  # its answer: "Thinking mode does not support this tool_choice"
    parallel=False,  # not verified: not seen in its reference
    stop=16,  # its reference
    strict_tools=False,  # its reference: only on its beta URL
)
QWEN = Profile(
    name="qwen",
    summary="Qwen at Alibaba's Model Studio (DashScope)",
    hosts=("dashscope*.aliyuncs.com",),
    system_anywhere=False,  # users' reports: "System message must be at the beginning" since Qwen3.5
    thinking="enable",  # its documentation
    thinks_unasked=True,  # its documentation: since Qwen3.5
    required_with_thinking=False,  # its answer: "does not support being set to required or object in thinking mode"
    top_k=True,  # its reference
    cache_marks=True,  # its documentation
    web_search_wires=("openai-responses",),  # its documentation
    strict_tools=False,  # not verified: not seen in its reference
)
ZAI = Profile(
    name="zai",
    summary="Z.ai: GLM",
    hosts=("api.z.ai", "open.bigmodel.cn"),
    largest=131_072,  # users' reports: the range in the error message, for GLM-5.3; its reference: 128K
    names=False,  # other clients do not send them
    thinking="type",  # its documentation
    thinks_unasked=True,  # its documentation: since GLM-4.7
    required=False,  # its reference: `auto` only
    choice_none=False,  # its reference: `auto` only
    parallel=False,  # not verified: not seen in its reference
    stop=1,  # its reference
    usage_option=False,  # other clients do not send it; the last chunk contains the usage anyway
    user=False,  # its reference: `user_id` instead
    strict_tools=False,  # other clients do not send it
)
MINIMAX = Profile(
    name="minimax",
    summary="MiniMax, which requires `parameters` for every tool, even for a tool without params",
    hosts=("api.minimax.io", "api.minimaxi.com", "api.minimax.chat"),
    max_tokens="max_completion_tokens",  # its reference: max_tokens is deprecated
    system_anywhere=False,  # its answer: "chat content has invalid message role: system"
    thinking="none",  # users' reports: M2 always thinks, whatever the request contains
    replay="reasoning_details",  # its documentation
    thinks_unasked=True,
    required=False,  # its reference has no tool_choice
    choice_none=False,  # its reference has no tool_choice
    can_stop_thinking=False,
    parallel=False,  # not verified: not seen in its reference
    strict_tools=False,  # not verified: not seen in its reference
)
MISTRAL = Profile(
    name="mistral",
    summary="Mistral, which rejects every field that it does not know",
    hosts=("api.mistral.ai", "*.mistral.ai"),
    max_tokens="max_tokens",  # its answer to max_completion_tokens: 422, extra inputs are not permitted
    system_anywhere=False,  # its answer: "Unexpected role"
    alternating=True,  # users' reports: "conversation roles must alternate"
    user_after_results=False,  # its answer: "Unexpected role 'user' after role 'tool'"
    prefill=False,  # its answer: "Expected last role User or Tool"
    names=False,  # its answer: 422, extra inputs are not permitted
    thinking="effort",  # its reference
    efforts=("high",),  # its answer, and its guide: `none` or `high`
    replay="none",  # its answer to reasoning_content: 422, extra inputs are not permitted
    ids="nine",  # its answer: "must be a-z, A-Z, 0-9, with a length of 9"
    usage_option=False,  # its answer: 422, extra inputs are not permitted; the last chunk contains the usage anyway
    user=False,  # not verified: not seen in its reference
    metadata=False,  # its answer: 422, extra inputs are not permitted
    seed="random_seed",  # its reference
    known_fields=(  # its reference; its answer to others: 422, extra inputs are not permitted
        "temperature",
        "top_p",
        "presence_penalty",
        "frequency_penalty",
        "n",
        "random_seed",
        "prediction",
        "prompt_mode",
        "safe_prompt",
        "guardrails",
    ),
)
GOOGLE = Profile(
    name="google",
    summary="Google: Gemini, by its API that is compatible with OpenAI's",
    hosts=("generativelanguage.googleapis.com", "aiplatform.googleapis.com", "*-aiplatform.googleapis.com"),
    thinking="effort",  # not verified
    efforts=("minimal", "low", "medium", "high"),  # not verified
    replay="none",  # not verified; users' reports: signatures of calls carry the thinking
    names=False,  # not verified
    parallel=False,  # not verified
    metadata=False,  # the same
    user=False,  # the same
    images_in_results=False,  # not verified
)
VLLM = Profile(
    name="vllm",
    summary="vLLM: behaviour depends on the model's chat template",
    system_anywhere=False,  # users' reports: "System message must be at the beginning" with Qwen's templates
    thinking="template",  # its documentation
    replay="reasoning",  # its documentation: reasoning_content was renamed
    thinks_unasked=True,  # its documentation: Qwen3 and most thinking models; not Granite, DeepSeek V3.1 and Gemma 4
    images_in_results=False,  # users' reports: tool messages only support text
    top_k=True,  # its documentation
    constraint="structured_outputs",  # its source: since 0.11, with any tool choice that leaves it to the model
)
SGLANG = Profile(
    name="sglang",
    summary="SGLang: behaviour depends on the model's chat template",
    hosts=("*:30000",),
    system_anywhere=False,  # the same templates as vLLM's
    thinking="template",  # its documentation
    replay="reasoning_content",  # its source
    thinks_unasked=True,  # its documentation: most thinking models
    top_k=True,  # its documentation
    constraint="response_format",  # its source; it rejects a tool choice that forces a call beside it
)
LLAMA_CPP = Profile(
    name="llama.cpp",
    summary="llama.cpp's server: behaviour depends on the model's chat template",
    system_anywhere=False,  # users' reports: status 500 from the template, with Qwen's
    thinking="template",  # its documentation
    replay="reasoning_content",  # its source
    thinks_unasked=True,  # not verified: depends on the template
    named=False,  # users' reports: a choice that names a tool is silently treated as `auto`
    top_k=True,  # its documentation
)
OLLAMA = Profile(
    name="ollama",
    summary="Ollama",
    hosts=("*:11434", "ollama.com"),
    thinking="effort",  # its documentation: reasoning_effort; `think` is for its own API
    efforts=("low", "medium", "high", "max"),  # its answer: "must be high, medium, low, max, or none"
    replay="reasoning",  # users' reports: reasoning_content is silently ignored
    thinks_unasked=True,  # users' reports
    required=False,  # users' reports: tool_choice is silently ignored, up to 0.32.15 and in Messages too
    choice_none=False,  # the same
    parallel=False,  # its documentation lists the supported fields
    user=False,  # the same
    strict_tools=False,  # not verified: not seen in its documentation
    truncates=True,  # its documentation; users' reports: the tools at the beginning of the prompt are lost
)

PROFILES = (
    OPENAI,
    ANTHROPIC,
    OPENROUTER,
    MOONSHOT,
    DEEPSEEK,
    QWEN,
    ZAI,
    MINIMAX,
    MISTRAL,
    GOOGLE,
    VLLM,
    SGLANG,
    LLAMA_CPP,
    OLLAMA,
)
