"""About how many tokens has a text? Told by what its bytes are, in a few passes over them.

The weights are fitted to the vocabularies of GPT-4o, Llama 3, Qwen 2.5, DeepSeek V3 and Gemma 2, whose mean they meet
within 4 % at the median: over prose in twenty languages, code, JSON, tool schemas, logs, tables and digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

__all__ = ["DEFAULT_SAMPLE_CHARS", "text_tokens"]

DEFAULT_SAMPLE_CHARS = 8 * 1024
"""So many characters of a long text stand for all of it."""
SLICE_CHARS = 64
"""They are taken in slices of so many, evenly over the text: a request has prose here and JSON there."""
GOLDEN_RATIO = 0.618034

_ASCII_WEIGHTS = {
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
MAX_TOKEN_BYTES = 64
"""Bytes of a token, at the most: signs in a row may be one."""
TOKENS_PER_WORD_START, TOKENS_PER_NUMBER_START = 0.154, 1.889
"""Tokens for the beginning of each."""
_LEAD_BYTE_WEIGHTS = {
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


def _translation_table(classify: Callable[[int], str]) -> bytes:
    return "".join(map(classify, range(256))).encode("ascii")


def _byte_class(byte: int) -> str:
    if byte >= 0x80:
        return next((byte_class for byte_class, (leads, _) in _LEAD_BYTE_WEIGHTS.items() if byte in leads), "-")
    char = chr(byte)
    if char.isalpha():
        return "a" if char.islower() else "A"
    if char.isdigit():
        return "0"
    return " " if char == " " else "n" if char in "\n\r\t" else "."


_BYTE_CLASSES = _translation_table(_byte_class)
_LETTER_TABLE = _translation_table(lambda byte: "a" if byte < 0x80 and chr(byte).isalpha() else " ")
_DIGIT_TABLE = _translation_table(lambda byte: "0" if byte < 0x80 and chr(byte).isdigit() else " ")
_ASCII_CLASS_WEIGHTS = [(kind.encode(), weight) for kind, weight in _ASCII_WEIGHTS.items()]
_NON_ASCII_CLASS_WEIGHTS = [(kind.encode(), weight) for kind, (_, weight) in _LEAD_BYTE_WEIGHTS.items()]


def text_tokens(texts: Sequence[str], sample_chars: int = DEFAULT_SAMPLE_CHARS) -> float:
    """Of these, one behind the other. Beyond the sample, long texts take no more time than short ones."""
    total_chars = sum(map(len, texts))
    if total_chars <= sample_chars:
        return _weigh("\n".join(texts))
    sampled = "".join(_sample_slices(texts, total_chars, sample_chars // SLICE_CHARS))
    return _weigh(sampled) * total_chars / max(1, len(sampled))


def _sample_slices(texts: Sequence[str], total_chars: int, count: int) -> Iterator[str]:
    """One from each part of the text, at places that fall in with no pattern of its own."""
    part_chars, remaining = total_chars / count, iter(texts)
    text, text_start = next(remaining), 0
    for n in range(count):
        position = int((n + n * GOLDEN_RATIO % 1) * part_chars)
        while position >= text_start + len(text):
            text_start += len(text)
            text = next(remaining)
        yield text[position - text_start : position - text_start + SLICE_CHARS]


def _weigh(text: str) -> float:
    data = text.encode("utf-8", "surrogatepass")
    classes = data.translate(_BYTE_CLASSES)
    tokens = sum(classes.count(byte_class) * weight for byte_class, weight in _ASCII_CLASS_WEIGHTS)
    tokens += (
        data.translate(_LETTER_TABLE).count(b" a") * TOKENS_PER_WORD_START
        + data.translate(_DIGIT_TABLE).count(b" 0") * TOKENS_PER_NUMBER_START
    )
    if len(data) != len(text):
        tokens += sum(classes.count(kind) * weight for kind, weight in _NON_ASCII_CLASS_WEIGHTS)
    return max(tokens, len(data) / MAX_TOKEN_BYTES)
