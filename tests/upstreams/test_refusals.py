"""Messages of model servers that refuse a request, and what they refuse."""

from __future__ import annotations

import re

import pytest

from interlingua.translation.upstream_errors import CONTEXT_LENGTH_CODE, error_from_response
from interlingua.upstreams.refusals import REFUSAL_PATTERNS, Refusal, RefusalPattern, recognize_refusal

NO_PARSER = Refusal("no-tool-parser")
NO_IMAGES = Refusal("no-images")
NO_CONSTRAINT = Refusal("no-constraint")
NO_THINKING = Refusal("no-thinking")


def window(window: int, input: int, reply: int = 0) -> Refusal:
    return Refusal("window", window=window, input=input, reply=reply)


def reply_limit(largest: int) -> Refusal:
    return Refusal("reply-limit", largest=largest)


REFUSALS = [
    ("Invalid structured_outputs structural_tag specification.", NO_CONSTRAINT),
    ("Invalid structural tag specification.", NO_CONSTRAINT),
    ("Failed to compile structural_tag grammar: Unknown format", NO_CONSTRAINT),
    (
        "Grammar-based generation (json_schema, regex, ebnf, structural_tag) is not supported when the server is"
        " launched with --grammar-backend none",
        NO_CONSTRAINT,
    ),
    ('"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set', NO_PARSER),
    ('tool_choice="required" requires --tool-call-parser to be set', Refusal("no-tool-parser", forced=True)),
    ('tool_choice=function "read" requires --tool-call-parser to be set', Refusal("no-tool-parser", forced=True)),
    (
        "tool_choice=\"function=ChatCompletionNamedFunction(name='read') type='function'\" requires"
        " --tool-call-parser to be set",
        Refusal("no-tool-parser", forced=True),
    ),
    (
        "'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context length is 40960"
        " tokens and your request has 15000 input tokens (32000 > 40960 - 15000).",
        window(40960, 15000, 32000),
    ),
    (
        "max_tokens is too large: 32000. This model's maximum context length is 40960 tokens and your request has 15000"
        " input tokens",
        window(40960, 15000, 32000),
    ),
    (
        "This model's maximum context length is 128000 tokens. However, you requested 65535 output tokens and your"
        " prompt contains at least 62466 input tokens, for a total of at least 128001 tokens. Please reduce the length"
        " of the input prompt or the number of requested output tokens. (parameter=input_tokens, value=62466)",
        window(128000, 62466, 65535),
    ),
    (
        "This model's maximum context length is 40960 tokens. However, you requested 40959 output tokens and your"
        " prompt contains 9000 characters (more than 128 characters, which is the upper bound for 1 input tokens)."
        " Please reduce the length of the input prompt or the number of requested output tokens."
        " (parameter=input_text, value=9000)",
        window(40960, 0, 40959),
    ),
    (
        "You passed 9000 input characters and requested 40959 output tokens. However, the model's context length is"
        " only 40960 tokens, resulting in a maximum input length of 1 tokens (at most 128 characters). Please reduce"
        " the length of the input prompt. (parameter=input_text, value=9000)",
        window(40960, 0, 40959),
    ),
    (
        "This endpoint's maximum context length is 131072 tokens. However, you requested about 138956 tokens (7884 of"
        ' text input, 131072 in the output). Please reduce the length of either one, or use the "middle-out"'
        " transform to compress your prompt automatically.",
        window(131072, 0, 131072),
    ),
    (
        "This endpoint's maximum context length is 131072 tokens. However, you requested about 141607 tokens (7884 of"
        " text input, 2651 of tool input, 131072 in the output). Please reduce the length of either one, or use the"
        ' "middle-out" transform to compress your prompt automatically.',
        window(131072, 0, 131072),
    ),
    (
        "You passed 27905 input tokens and requested 4096 output tokens. However, the model's context length is only"
        " 32000 tokens, resulting in a maximum input length of 27904 tokens. Please reduce the length of the input"
        " prompt. (parameter=input_tokens, value=27905)",
        window(32000, 27905, 4096),
    ),
    (
        "This model's maximum context length is 16384 tokens. However, you requested 20000 tokens (10000 in the"
        " messages, 10000 in the completion). Please reduce the length of the messages or completion.",
        window(16384, 10000, 10000),
    ),
    (
        "This model's maximum context length is 4097 tokens, however you requested 4116 tokens (3860 in your prompt;"
        " 256 for the completion). Please reduce your prompt; or completion length.",
        window(4097, 3860, 256),
    ),
    (
        "Requested token count exceeds the model's maximum context length of 202752 tokens. You requested a total of"
        " 202941 tokens: 170941 tokens from the input messages and 32000 tokens for the completion. Please reduce the"
        " number of tokens in the input messages or the completion to fit within the limit.",
        window(202752, 170941, 32000),
    ),
    (
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 6000 `inputs` tokens and"
        " 4096 `max_new_tokens`",
        window(8193, 6000, 4096),
    ),
    (
        "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length or"
        " `max_tokens` and try again",
        window(200000, 190000, 20000),
    ),
    (
        "This model's maximum context length is 40960 tokens. However, your request has 50000 input tokens. Please"
        " reduce the length of the input messages.",
        window(40960, 50000),
    ),
    (
        "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens in the messages, Please"
        " reduce the length of the messages.",
        window(8192, 9000),
    ),
    (
        "The decoder prompt (length 40000) is longer than the maximum model length of 32768. Make sure that"
        " `max_model_len` is no smaller than the number of text tokens.",
        window(32768, 40000),
    ),
    (
        "The decoder prompt (length 32768) plus the number of requested output tokens (at least 1) is longer than the"
        " maximum model length of 32768. Make sure that `max_model_len` is no smaller than the number of text tokens"
        " (prompt + requested output tokens).",
        window(32768, 32768),
    ),
    ("The input (9000 tokens) is longer than the model's context length (8192 tokens).", window(8192, 9000)),
    (
        "request (34965 tokens) exceeds the available context size (32768 tokens), try increasing it",
        window(32768, 34965),
    ),
    (
        "max_tokens=140000 cannot be greater than max_model_len=max_total_tokens=131072. Please request fewer output"
        " tokens. (parameter=max_tokens, value=140000)",
        reply_limit(131072),
    ),
    (
        "max_completion_tokens=140000 cannot be greater than max_model_len=max_total_tokens=131072. Please request"
        " fewer output tokens. (parameter=max_completion_tokens, value=140000)",
        reply_limit(131072),
    ),
    (
        "max_tokens is too large: 32000. This model supports at most 16384 completion tokens, whereas you provided"
        " 32000.",
        reply_limit(16384),
    ),
    ("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", reply_limit(8192)),
    ("InternalError.Algo.InvalidParameter: Range of max_tokens should be [1, 8192]", reply_limit(8192)),
    ("The max_tokens parameter is illegal.：限制数值范围[1,131072]", reply_limit(131072)),
    (
        "max_tokens: 200000 > 64000, which is the maximum allowed number of output tokens for claude-sonnet-5",
        reply_limit(64000),
    ),
    ("At most 0 image(s) may be provided in one prompt.", NO_IMAGES),
    ("At most 0 image(s) may be provided in one request.", NO_IMAGES),
    ("Qwen/Qwen3-8B is not a multimodal model", NO_IMAGES),
    ("Model only supports text input; received unsupported content type 'image_url'.", NO_IMAGES),
    (
        "Multimodal inputs are not supported when --language-model-only is set; the encoder is not loaded. Restart"
        " without the flag.",
        NO_IMAGES,
    ),
    ("image input is not supported - hint: if this is unexpected, you may need to provide the mmproj", NO_IMAGES),
    ("image input is not supported by this server", NO_IMAGES),
    ("this model is missing data required for image input", NO_IMAGES),
    ("Model does not support images. Please use a model that does.", NO_IMAGES),
    ("No endpoints found that support image input", NO_IMAGES),
    (
        "Failed to deserialize the JSON body into the target type: messages[1]: unknown variant `image_url`, expected"
        " `text` at line 1 column 300",
        NO_IMAGES,
    ),
    ("messages.content.type is invalid, allowed values: ['text']", NO_IMAGES),
    ('"llama3.1:8b" does not support thinking', NO_THINKING),
    ("Unsupported parameter: 'reasoning_effort' is not supported with this model.", NO_THINKING),
    ("Unsupported parameter: 'reasoning.effort' is not supported with this model.", NO_THINKING),
    ("`reasoning_effort` is not supported with this model", NO_THINKING),
    (
        "Unsupported value: 'reasoning_effort' does not support 'none' with this model. Supported values are:"
        " 'minimal', 'low', 'medium', and 'high'.",
        NO_THINKING,
    ),
]
"""Messages as servers send them, and what they refuse. Those of vLLM (0.6 to 0.27), SGLang (0.4 to 0.5), llama.cpp
(b4000 to b10586) and Ollama (0.33) were compared with their code, the others with what users have reported."""


@pytest.mark.parametrize(("message", "refusal"), REFUSALS)
def test_message_is_recognized(message: str, refusal: Refusal) -> None:
    assert recognize_refusal(400, f"chat: {message}") == refusal
    assert recognize_refusal(0, message) == refusal, "in a stream"


@pytest.mark.parametrize("row", REFUSAL_PATTERNS, ids=lambda row: f"{row.kind}: {row.source}")
def test_each_pattern_has_a_message(row: RefusalPattern) -> None:
    assert any(re.search(row.regex, message) for message, _ in REFUSALS)


@pytest.mark.parametrize("status", [401, 403, 429, 503])
def test_status_of_access_and_load_is_not_a_refusal(status: int) -> None:
    assert recognize_refusal(status, "At most 0 image(s) may be provided in one prompt.") is None


@pytest.mark.parametrize(
    "message",
    [
        "At most 1 image(s) may be provided in one prompt.",
        "prompt is too long",
        "",
        "tool_choice is not valid",
        "[1, 5]",
    ],
)
def test_other_messages_are_not_refusals(message: str) -> None:
    assert recognize_refusal(400, message) is None


def test_vllm_stops_counting_the_prompt_at_its_limit() -> None:
    exact, at_least = window(40960, 15000, 32000), window(128000, 62466, 65535)
    assert (exact.is_input_exact, exact.left) == (True, 25960)
    assert not at_least.is_input_exact
    assert not window(40960, 0, 50000).is_input_exact, "not stated"


WINDOW_MESSAGES = [
    *(
        message
        for message, refusal in REFUSALS
        if refusal.kind == "window" and "exceed context limit" not in message  # agents know Anthropic's own message
    ),
    "the request exceeds the available context size. try increasing the context size or enable context shift",
    "input is larger than the max context size. skipping",
    "input (9000 tokens) is larger than the max context size (8192 tokens). skipping",
    "the input length exceeds the context length",
    "the prompt is longer than the context length currently available to the model; shorten the prompt, adjust the"
    " context length in settings, or use a model with a longer context length",
    "This endpoint's maximum context length is 16384 tokens. However, you requested about 94307 tokens (94307 of text"
    ' input). Please reduce the length of either one, or use the "middle-out" transform to compress your prompt'
    " automatically.",
    "This model's maximum context length is 128000 tokens. However, your messages resulted in 204308 tokens. Please"
    " reduce the length of the messages.",
]


@pytest.mark.parametrize("message", WINDOW_MESSAGES)
def test_window_that_is_exceeded_is_a_context_length_error_for_clients(message: str) -> None:
    error = error_from_response(400, {}, message.encode(), 0)
    assert error.code == CONTEXT_LENGTH_CODE
