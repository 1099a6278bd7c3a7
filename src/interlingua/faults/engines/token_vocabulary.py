"""Vocabulary of a scripted engine: texts to token ids and back, without loss."""

from __future__ import annotations

import re
from collections.abc import Iterable

from interlingua.parsing.dialect import Dialect

__all__ = ["TokenVocabulary"]

_WORDS = (r"<\|[^\s<>]{1,40}\|>", r"\s?\w{1,6}", r"\s", r"[^\w\s]")


class TokenVocabulary:
    """Tokens get their ids in the order in which they occur first. Special tokens are one token each."""

    def __init__(self, dialect: Dialect) -> None:
        special = sorted(map(re.escape, dialect.tokens), key=len, reverse=True)
        self._pattern = re.compile("|".join((*special, *_WORDS)), re.DOTALL)
        self._ids: dict[str, int] = {}
        self._texts: list[str] = []

    def split(self, text: str) -> list[str]:
        return self._pattern.findall(text)

    def encode(self, text: str) -> list[int]:
        return [self._id(token) for token in self.split(text)]

    def decode(self, ids: Iterable[int]) -> str:
        return "".join(self._texts[id] for id in ids if 0 <= id < len(self._texts))

    def _id(self, token: str) -> int:
        if token not in self._ids:
            self._ids[token] = len(self._texts)
            self._texts.append(token)
        return self._ids[token]
