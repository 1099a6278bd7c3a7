"""Judge with llguidance: Lark grammars."""

import time
from importlib.metadata import version

import llguidance
from answers import answer_requests


class Judge:
    def __init__(self) -> None:
        self._tokenizer = llguidance.LLTokenizer("byte")
        self._matcher: llguidance.LLMatcher | None = None

    def compile(self, grammar: str) -> float:
        started = time.perf_counter()
        self._matcher = llguidance.LLMatcher(self._tokenizer, llguidance.LLMatcher.grammar_from_lark(grammar))
        if error := self._matcher.get_error():
            raise ValueError(error)
        return time.perf_counter() - started

    def accepts(self, texts: list[str]) -> list[bool]:
        assert self._matcher
        answers = []
        for text in texts:
            self._matcher.reset()
            tokens = list(text.encode())
            answers.append(self._matcher.try_consume_tokens(tokens) == len(tokens) and self._matcher.is_accepting())
        return answers


judge = Judge()
answer_requests(compile=judge.compile, accepts=judge.accepts, version=lambda: version("llguidance"))
