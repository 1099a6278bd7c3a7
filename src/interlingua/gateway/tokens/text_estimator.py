"""Token estimate for a text, by the classes of its bytes, in a few passes.

The weights are fitted to the mean of the tokenizers of GPT-4o, Llama 3, Qwen 2.5, DeepSeek V3 and Gemma 2. The median
error is 4 %, over prose in twenty languages, code, JSON, tool schemas, logs, tables and digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

__all__ = ["DEFAULT_SAMPLE_CHARS", "text_tokens"]

DEFAULT_SAMPLE_CHARS = 8 * 1024
"""Size of the sample that is analysed in a long text."""
SLICE_CHARS = 64
"""Size of a slice. The slices of a sample are spread evenly over the text, because a request mixes prose and JSON."""
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
    """Estimate the tokens of the texts, concatenated. The time is bounded by the sample size, also for long texts."""
    total_chars = sum(map(len, texts))
    if total_chars <= sample_chars:
        return _weigh("\n".join(texts))
    sampled = "".join(_sample_slices(texts, total_chars, sample_chars // SLICE_CHARS))
    return _weigh(sampled) * total_chars / max(1, len(sampled))


def _sample_slices(texts: Sequence[str], total_chars: int, count: int) -> Iterator[str]:
    """Yield one slice from each of `count` equal parts. The offsets vary, so that they match no pattern in the text."""
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
