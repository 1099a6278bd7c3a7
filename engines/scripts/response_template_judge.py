"""Judge with transformers: what its own parser reads from a text with a response template, whole and in pieces."""

from importlib.metadata import version
from typing import Any

from answers import answer_requests
from transformers.utils.chat_parsing.response_parser import ResponseParser
from transformers.utils.chat_parsing.response_templates import load_response_template


class Judge:
    def __init__(self) -> None:
        self._template: Any = None

    def compile(self, grammar: Any) -> float:
        self._template = load_response_template(grammar)
        return 0.0

    def parse(self, text: str, tools: Any, prefix: str, piece_size: int) -> Any:
        """Parse a text that arrives in pieces of this size; whole if it is 0."""
        parser = ResponseParser(self._template, prefix=prefix, tools=tools)
        for start in range(0, len(text), piece_size or len(text) or 1):
            parser.feed(text[start : start + (piece_size or len(text))])
        message, _ = parser.finalize()
        return message


judge = Judge()
answer_requests(compile=judge.compile, parse=judge.parse, version=lambda: version("transformers"))
