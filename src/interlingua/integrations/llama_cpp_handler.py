"""Chat handler for llama-cpp-python that returns a model's calls as such.

    llama = Llama(model_path="model.gguf", chat_handler=InterlinguaChatHandler())
    llama.create_chat_completion(messages, tools=tools, stream=True)

The prompt is that of the chat template in the GGUF file. A required call is constrained by the dialect's grammar.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from llama_cpp import Llama, LlamaGrammar
from llama_cpp.llama_chat_format import (
    Jinja2ChatFormatter,
    chat_formatter_to_chat_completion_handler,
)

from interlingua.core.tool_choice import read_tool_choice
from interlingua.dialects.registry import get_dialect
from interlingua.errors import NotExpressible, UsageError
from interlingua.exports.exporter import export
from interlingua.integrations.chunk_translator import ChunkTranslator
from interlingua.integrations.reply_stream import LOGGER, choose_dialect, find_call_ids, find_prefill
from interlingua.parsing.dialect import Dialect

__all__ = ["InterlinguaChatHandler"]

PROMPT_END_CHARS = 1000
"""End of a prompt in which the beginning of the reply is looked for."""
TEMPLATE_KEY = "tokenizer.chat_template"
NAME_KEYS = ("general.name", "general.basename")


class InterlinguaChatHandler:
    """Chat handler of one `Llama`.

    Args:
        dialect: The dialect, if the model's name in the GGUF file or its path does not show it.
        chat_template: The template, if it is not that of the GGUF file.
        template_options: Variables for the template, such as `{"enable_thinking": False}`.
    """

    def __init__(
        self,
        dialect: str | Dialect | None = None,
        chat_template: str | None = None,
        template_options: dict[str, Any] | None = None,
    ) -> None:
        self._dialect = get_dialect(dialect) if dialect is not None else None
        self._chat_template = chat_template
        self._template_options = template_options or {}

    def __call__(
        self,
        *,
        llama: Llama,
        messages: list[Any],
        tools: list[Any] | None = None,
        tool_choice: Any = None,
        stream: bool = False,
        grammar: Any = None,
        functions: Any = None,
        function_call: Any = None,
        **options: Any,
    ) -> Any:
        """Return a chat completion, or an iterator of its chunks."""
        if functions or function_call:
            raise UsageError("functions and function_call are not supported", "pass tools and tool_choice")
        dialect = self._dialect or _find_dialect(llama)
        _keep_special_tokens(llama)
        prompt = self._formatter(llama)(messages=messages, tools=tools, **self._template_options)
        prefill = find_prefill(prompt.prompt[-PROMPT_END_CHARS:], dialect)
        complete_chat = chat_formatter_to_chat_completion_handler(lambda **_: prompt)
        reply = complete_chat(
            llama=llama,
            messages=messages,
            stream=stream,
            grammar=grammar or _call_grammar(dialect, tools, tool_choice, prefill),
            **options,
        )
        translator = ChunkTranslator(dialect, tools or [], tool_choice, prefill, find_call_ids(messages))
        return _translate_chunks(translator, reply) if stream else translator.translate(reply)

    def _formatter(self, llama: Llama) -> Jinja2ChatFormatter:
        template = self._chat_template or llama.metadata.get(TEMPLATE_KEY)
        if not template:
            raise UsageError("the GGUF file has no chat template", "pass chat_template= to the handler")
        bos, eos = (_token_text(llama, token) for token in (llama.token_bos(), llama.token_eos()))
        return Jinja2ChatFormatter(template, eos_token=eos, bos_token=bos, stop_token_ids=[llama.token_eos()])


class SpecialTokenizer:
    """Tokenizer of a `Llama` that writes special tokens, too: they are the markers of many dialects."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def tokenize(self, text: bytes, add_bos: bool = True, special: bool = True) -> list[int]:
        tokens: list[int] = self._tokenizer.tokenize(text, add_bos, special)
        return tokens

    def detokenize(
        self,
        tokens: list[int],
        prev_tokens: list[int] | None = None,
        special: bool = False,  # noqa: ARG002 (the interface of llama-cpp-python)
    ) -> bytes:
        text: bytes = self._tokenizer.detokenize(tokens, prev_tokens=prev_tokens, special=True)
        return text


def _find_dialect(llama: Llama) -> Dialect:
    return choose_dialect(*(llama.metadata.get(key) for key in NAME_KEYS), llama.model_path)


def _keep_special_tokens(llama: Llama) -> None:
    # A completion has no option for it: the text is always that of `Llama.detokenize` without special tokens.
    if not isinstance(llama.tokenizer_, SpecialTokenizer):
        llama.tokenizer_ = SpecialTokenizer(llama.tokenizer_)


def _token_text(llama: Llama, token: int) -> str:
    return llama.detokenize([token], special=True).decode("utf-8", "replace") if token >= 0 else ""


def _call_grammar(dialect: Dialect, tools: list[Any] | None, tool_choice: Any, prefill: str) -> Any:
    """Return the grammar for a required call; None if none is required or the dialect cannot have one."""
    choice = read_tool_choice(tool_choice)
    if not tools or choice is None or choice.mode != "required":
        return None
    try:
        return LlamaGrammar.from_string(export("gbnf", dialect, tools, choice, prefill=prefill).text, verbose=False)
    except NotExpressible as error:
        LOGGER.warning("the call is not constrained: %s", error)
        return None


def _translate_chunks(translator: ChunkTranslator, chunks: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for chunk in chunks:
        yield from translator.feed(chunk)
    yield from translator.close()
