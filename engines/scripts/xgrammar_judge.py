"""Judge with xgrammar: structural tags, its built-in ones, and EBNF."""

import json
import time
from importlib.metadata import version
from typing import Any

import xgrammar as xgr
from answers import answer_requests


def byte_tokenizer() -> xgr.TokenizerInfo:
    """Return a tokenizer with one token for each byte, and the end of the text."""
    tokens = [bytes([byte]) for byte in range(256)] + [b"</s>"]
    return xgr.TokenizerInfo(tokens, vocab_type=xgr.VocabType.RAW, stop_token_ids=[256])


class Judge:
    def __init__(self) -> None:
        self._tokenizer = byte_tokenizer()
        self._matcher: xgr.GrammarMatcher | None = None

    def compile(self, grammar: Any) -> float:
        compiler = xgr.GrammarCompiler(self._tokenizer, cache_enabled=False, max_threads=1)
        started = time.perf_counter()
        compiled = (
            compiler.compile_grammar(grammar)
            if isinstance(grammar, str)
            else compiler.compile_structural_tag(json.dumps(grammar))
        )
        seconds = time.perf_counter() - started
        self._matcher = xgr.GrammarMatcher(compiled, terminate_without_stop_token=True)
        return seconds

    def accepts(self, texts: list[str]) -> list[bool]:
        assert self._matcher
        answers = []
        for text in texts:
            self._matcher.reset()
            answers.append(self._matcher.accept_string(text) and self._matcher.is_terminated())
        return answers


def builtin_tag(model: str, tools: list[Any], tool_choice: Any, reasoning: bool) -> Any:
    """Return xgrammar's own tag for a model."""
    return xgr.get_model_structural_tag(model, tools, tool_choice, reasoning).model_dump()


judge = Judge()
answer_requests(
    compile=judge.compile, accepts=judge.accepts, builtin_tag=builtin_tag, version=lambda: version("xgrammar")
)
