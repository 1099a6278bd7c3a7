"""Token estimate for texts, by the classes of their bytes, in a few passes over a sample.

The weights are fitted to the mean of the tokenizers of GPT-4o, Llama 3, Qwen 2.5, DeepSeek V3 and Gemma 2. The median
error is 4 %, over prose in twenty languages, code, JSON, tool schemas, logs, tables and digits.

Estimates can be added up: the estimate of several texts is the sum of their estimates, however they are divided. So the
texts of an earlier request need not be estimated again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

__all__ = ["NO_TEXT", "WHOLE_CHARS", "TextSize", "measure_texts", "text_tokens"]

WHOLE_CHARS = 1024
"""Texts up to this length are analysed as a whole, and a sample of longer ones."""
SLICE_CHARS = 64
"""Size of the slices of which a sample consists."""
DENSE_CHARS, SPARSE_CHARS = 512, 4096
"""Size of the parts of a long text that have one slice each: first some dense ones, then sparse ones."""
DENSE_PARTS = 8
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
"""Tokens per occurrence of a byte class or sequence of classes: a lower-case letter, a capital letter, a capital inside
a word, a digit, a sign, four signs in a row, a line end or tab, two spaces in a row, a space after a sign."""
MAX_TOKEN_BYTES = 64
"""Maximum size of a token: a run of signs may be a single token."""
TOKENS_PER_WORD_START, TOKENS_PER_NUMBER_START = 0.154, 1.889
"""Additional tokens for each start of a word or number."""
_LEAD_BYTE_WEIGHTS = {
    "l": (range(0xC2, 0xCC), 1.614),  # Latin with accents
    "g": (range(0xCC, 0xD0), 0.529),  # Greek; combining accents
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
"""Tokens per non-ASCII character, by its first byte in UTF-8."""


def _thousandths(weight: float) -> int:
    return round(1000 * weight)


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
_ASCII_CLASS_WEIGHTS = [(kind.encode(), _thousandths(weight)) for kind, weight in _ASCII_WEIGHTS.items()]
_NON_ASCII_CLASS_WEIGHTS = [(kind.encode(), _thousandths(weight)) for kind, (_, weight) in _LEAD_BYTE_WEIGHTS.items()]
_LINE_END_WEIGHT = _thousandths(_ASCII_WEIGHTS["n"])
_WORD_START_WEIGHT, _NUMBER_START_WEIGHT = map(_thousandths, (TOKENS_PER_WORD_START, TOKENS_PER_NUMBER_START))


class TextSize(msgspec.Struct, frozen=True):
    """Estimated size of texts."""

    thousandths: int = 0
    """Thousandths of a token, by the classes of their bytes. Integers, so that sums do not depend on the order."""
    size_bytes: int = 0

    def __add__(self, other: TextSize) -> TextSize:
        return TextSize(self.thousandths + other.thousandths, self.size_bytes + other.size_bytes)

    def __sub__(self, other: TextSize) -> TextSize:
        return TextSize(self.thousandths - other.thousandths, self.size_bytes - other.size_bytes)

    @property
    def tokens(self) -> float:
        return max(self.thousandths / 1000, self.size_bytes / MAX_TOKEN_BYTES)


NO_TEXT = TextSize()


def text_tokens(texts: Sequence[str], whole_chars: int = WHOLE_CHARS) -> float:
    """Estimate the tokens of the texts."""
    return measure_texts(texts, whole_chars).tokens


def measure_texts(texts: Sequence[str], whole_chars: int = WHOLE_CHARS) -> TextSize:
    """Estimate the size of the texts.

    Args:
        texts: The texts. Their order has no effect.
        whole_chars: Texts up to this length are analysed as a whole, and a sample of longer ones.
    """
    if not texts:
        return NO_TEXT
    whole: list[str] = []
    dense: list[str] = []
    sparse: list[str] = []
    for text in texts:
        if len(text) <= whole_chars:
            whole.append(text)
        else:
            rest = _add_slices(text, 0, min(len(text), DENSE_PARTS * DENSE_CHARS), DENSE_CHARS, dense)
            rest = _add_slices(text, rest, len(text), SPARSE_CHARS, sparse)
            rest = _add_slices(text, rest, len(text), DENSE_CHARS, dense)
            whole.append(text[rest:])
    if not dense and not sparse:
        return _measure(whole)
    dense_size, sparse_size = _measure(dense), _measure(sparse)
    factors = ((dense_size, DENSE_CHARS // SLICE_CHARS), (sparse_size, SPARSE_CHARS // SLICE_CHARS))
    thousandths = sum(size.thousandths * factor for size, factor in factors)
    size_bytes = sum(size.size_bytes * factor for size, factor in factors)
    return _measure(whole) + TextSize(thousandths, size_bytes)


def _add_slices(text: str, start: int, end: int, part_chars: int, slices: list[str]) -> int:
    """Add one slice from each complete part of the text, and return the end of the last part.

    Their positions vary, so that they match no pattern in the text.
    """
    room = part_chars - SLICE_CHARS
    count = (end - start) // part_chars
    for n in range(count):
        position = start + n * part_chars + int(n * GOLDEN_RATIO % 1 * room)
        slices.append(text[position : position + SLICE_CHARS])
    return start + count * part_chars


def _measure(texts: list[str]) -> TextSize:
    """Measure texts as a whole. Each begins after a line end, so that no text has an effect on another."""
    if not texts:
        return NO_TEXT
    joined = "\n".join(["", *texts])
    data = joined.encode("utf-8", "surrogatepass")
    classes = data.translate(_BYTE_CLASSES)
    thousandths = sum([classes.count(byte_class) * weight for byte_class, weight in _ASCII_CLASS_WEIGHTS])
    thousandths += data.translate(_LETTER_TABLE).count(b" a") * _WORD_START_WEIGHT
    thousandths += data.translate(_DIGIT_TABLE).count(b" 0") * _NUMBER_START_WEIGHT
    if len(data) != len(joined):
        thousandths += sum([classes.count(kind) * weight for kind, weight in _NON_ASCII_CLASS_WEIGHTS])
    return TextSize(thousandths - len(texts) * _LINE_END_WEIGHT, len(data) - len(texts))
