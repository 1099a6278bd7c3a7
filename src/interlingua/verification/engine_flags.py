"""Flags of model servers: tool parser, chat template, and how to leave the calls in the text.

Advice names only flags that the server has.
"""

from __future__ import annotations

__all__ = ["TOOL_PARSERS", "fitting_parsers", "parser_flags", "template_advice", "unparsed_start"]

TOOL_PARSERS: dict[str, dict[str, str]] = {
    "vllm": {
        "apertus": "apertus",
        "deepseek_v3": "deepseek_v3",
        "deepseek_v31": "deepseek_v31",
        "deepseek_v32": "deepseek_v32",
        "deepseek_v4": "deepseek_v4",
        "dots": "dots",
        "ernie45": "ernie45",
        "functiongemma": "functiongemma",
        "gemma4": "gemma4",
        "gigachat3": "gigachat3",
        "glm45": "glm45",
        "glm47": "glm47",
        "granite3": "granite",
        "granite_20b_fc": "granite-20b-fc",
        "harmony": "openai",
        "hermes": "hermes",
        "hy3": "hy_v3",
        "inkling": "inkling",
        "internlm2": "internlm",
        "kimi_k2": "kimi_k2",
        "kimi_k3": "kimi_k3",
        "lfm2": "lfm2",
        "llama3_json": "llama3_json",
        "longcat": "longcat",
        "minicpm5": "minicpm5",
        "minimax_m2": "minimax_m2",
        "minimax_m3": "minimax_m3",
        "mistral_v3": "mistral",
        "mistral_v11": "mistral",
        "mistral_v13": "mistral",
        "muse": "muse_glimmer",
        "olmo3": "olmo3",
        "phi4": "phi4_mini_json",
        "pythonic": "llama4_pythonic",
        "qwen3_coder": "qwen3_coder",
        "seed_oss": "seed_oss",
        "step3": "step3",
        "xlam": "xlam",
    },
    "sglang": {
        "deepseek_v3": "deepseekv3",
        "deepseek_v31": "deepseekv31",
        "deepseek_v32": "deepseekv32",
        "deepseek_v4": "deepseekv4",
        "dots": "dots",
        "gemma4": "gemma4",
        "gigachat3": "gigachat3",
        "glm45": "glm45",
        "glm47": "glm47",
        "harmony": "gpt-oss",
        "hermes": "hermes",
        "inkling": "inkling",
        "internlm2": "interns1",
        "kimi_k2": "kimi_k2",
        "kimi_k3": "kimi_k3",
        "lfm2": "lfm2",
        "llama3_json": "llama3",
        "minicpm5": "minicpm5",
        "minimax_m2": "minimax-m2",
        "minimax_m3": "minimax-m3",
        "mistral_v3": "mistral",
        "mistral_v11": "mistral",
        "mistral_v13": "mistral",
        "muse": "muse",
        "pythonic": "pythonic",
        "qwen3_coder": "qwen3_coder",
        "step3": "step3",
    },
}
"""Name of the parser by engine and dialect. Source: the servers' registries of parsers, August 2026."""

_OTHER_SGLANG_NAMES = {"glm45": ("glm",), "hermes": ("qwen25", "qwen"), "qwen3_coder": ("mimo", "step3p5")}
"""Further parsers of SGLang that read a dialect."""
_UNPARSED_STARTS = {
    "vllm": "without a tool parser",
    "sglang": "without a tool parser",
    "llama.cpp": "with --skip-chat-parsing",
}
"""Start of an engine that leaves the calls in the text, in words."""
_TEMPLATE_FLAGS = {"vllm": "--chat-template", "sglang": "--chat-template", "llama.cpp": "--chat-template-file"}


def unparsed_start(engine: str) -> str:
    """Return how to start an engine so that Interlingua can read the calls in the text; "" if it is not known."""
    return _UNPARSED_STARTS.get(engine, "")


def template_advice(engine: str) -> str:
    """Return what helps against a wrong chat template."""
    if flag := _TEMPLATE_FLAGS.get(engine):
        return f"use the chat template of the model's own repository ({flag})"
    return "only the server's operator can correct the chat template: report it, or use another provider"


def fitting_parsers(engine: str, dialect: str) -> tuple[str, ...]:
    """Return the parsers of an engine that read a dialect, the usual one first; () if none is known."""
    name = TOOL_PARSERS.get(engine, {}).get(dialect)
    if name is None:
        return ()
    return (name, *_OTHER_SGLANG_NAMES.get(dialect, ())) if engine == "sglang" else (name,)


def parser_flags(engine: str, dialect: str) -> str:
    """Return the flags with which an engine parses the calls of a dialect; "" if there are none."""
    if engine == "llama.cpp":
        return "--jinja"
    names = fitting_parsers(engine, dialect)
    if not names:
        return ""
    name = names[0]
    return f"--enable-auto-tool-choice --tool-call-parser {name}" if engine == "vllm" else f"--tool-call-parser {name}"
