"""About how many tokens has a text? Told by what its bytes are, in a few passes over them.

The weights are fitted to the vocabularies of GPT-4o, Llama 3, Qwen 2.5, DeepSeek V3 and Gemma 2, whose mean they meet
within 4 % at the median: over prose in twenty languages, code, JSON, tool schemas, logs, tables and digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

__all__ = ["SAMPLE", "text_tokens"]

SAMPLE = 8 * 1024
"""So many characters of a long text stand for all of it."""
SLICE = 64
"""They are taken in slices of so many, evenly over the text: a request has prose here and JSON there."""
GOLDEN = 0.618034

_ASCII = {
    "a": 0.177,
    "A": 0.241,
    "aA": 1.116,
    "0": 0.25,
    ".": 0.469,
    "....": -1.644,
    "n": 1.001,
    "  ": 0.134,
    ". ": 0.689,
}
"""Tokens for each: letters, a capital inside a word, digits, signs, four signs in a row, ends of lines, spaces in a
row, a space behind a sign."""
LONGEST = 64
"""Bytes of a token, at the most: signs in a row may be one."""
WORD, NUMBER = 0.154, 1.889
"""Tokens for the beginning of each."""
_LEADS = {
    "l": (range(0xC2, 0xCC), 1.614),  # Latin with accents
    "g": (range(0xCC, 0xD0), 0.529),  # Greek; accents alone
    "c": (range(0xD0, 0xD5), 0.349),  # Cyrillic
    "h": (range(0xD5, 0xD8), 0.588),  # Hebrew
    "r": (range(0xD8, 0xE0), 0.428),  # Arabic
    "i": (range(0xE0, 0xE1), 0.521),  # Indic scripts, Thai
    "s": (range(0xE1, 0xE3), 0.15),  # signs
    "k": (range(0xE3, 0xEA), 0.676),  # Kana, Han
    "o": (range(0xEA, 0xEE), 0.767),  # Hangul
    "w": (range(0xEE, 0xF0), 3.075),  # wide signs
    "e": (range(0xF0, 0xF5), 1.961),  # emoji
}
"""By the first byte of a character in UTF-8: tokens for each."""


def _table(name: Callable[[int], str]) -> bytes:
    return "".join(map(name, range(256))).encode("ascii")


def _kind(byte: int) -> str:
    if byte >= 0x80:
        return next((kind for kind, (leads, _) in _LEADS.items() if byte in leads), "-")
    text = chr(byte)
    if text.isalpha():
        return "a" if text.islower() else "A"
    if text.isdigit():
        return "0"
    return " " if text == " " else "n" if text in "\n\r\t" else "."


_KINDS = _table(_kind)
_LETTERS = _table(lambda byte: "a" if byte < 0x80 and chr(byte).isalpha() else " ")
_DIGITS = _table(lambda byte: "0" if byte < 0x80 and chr(byte).isdigit() else " ")
_COUNTED = [(kind.encode(), weight) for kind, weight in _ASCII.items()]
_OTHERS = [(kind.encode(), weight) for kind, (_, weight) in _LEADS.items()]


def text_tokens(texts: Sequence[str], sample: int = SAMPLE) -> float:
    """Of these, one behind the other. Beyond the sample, long texts take no more time than short ones."""
    size = sum(map(len, texts))
    if size <= sample:
        return _weighed("\n".join(texts))
    taken = "".join(_slices(texts, size, sample // SLICE))
    return _weighed(taken) * size / max(1, len(taken))


def _slices(texts: Sequence[str], size: int, number: int) -> Iterator[str]:
    """One from each part of the text, at places that fall in with no pattern of its own."""
    part, waiting = size / number, iter(texts)
    text, begin = next(waiting), 0
    for n in range(number):
        at = int((n + n * GOLDEN % 1) * part)
        while at >= begin + len(text):
            begin += len(text)
            text = next(waiting)
        yield text[at - begin : at - begin + SLICE]


def _weighed(text: str) -> float:
    data = text.encode("utf-8", "surrogatepass")
    kinds = data.translate(_KINDS)
    tokens = sum(kinds.count(kind) * weight for kind, weight in _COUNTED)
    tokens += data.translate(_LETTERS).count(b" a") * WORD + data.translate(_DIGITS).count(b" 0") * NUMBER
    if len(data) != len(text):
        tokens += sum(kinds.count(kind) * weight for kind, weight in _OTHERS)
    return max(tokens, len(data) / LONGEST)
