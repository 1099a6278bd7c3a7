"""Correction of text that is almost JSON, as it streams: only errors that have one possible meaning.

    raw control character in a string     escaped
    comma before a closing bracket        removed
    ] that can only end an object         replaced by }
    True, False, None outside of strings  true, false, null
    missing brackets at the end           added, only by `JsonCorrector.close_brackets`

Brackets are added only on request, because only the caller knows whether the model has ended the value; a comma before
them is removed.

A *correction* is one such change of the text. A *repair* is any change of malformed arguments: a correction, or one of
`repair.py`. Settings and findings speak of repairs.

Everything else stays as it is, and so does all text after it. Valid JSON is returned as it came, piece by piece. Only
a comma at the end of a piece waits for the next character that is not whitespace.
"""

from __future__ import annotations

from collections.abc import Sequence

from interlingua.common.jsontext.scanner import JsonScanner

__all__ = ["JsonCorrector", "correct_json"]


class JsonCorrector:
    """Applies the corrections of a scanner to the text that it has scanned.

    `notes` describes the corrections, each kind once.
    """

    __slots__ = ("_held_offset", "_held_pieces", "_scanner", "notes")

    def __init__(self, scanner: JsonScanner) -> None:
        self._scanner = scanner
        self._held_pieces: list[str] = []
        self._held_offset: int | None = None  # offset of the first character that is held back
        self.notes: list[str] = []

    @property
    def held_pieces(self) -> Sequence[str]:
        """The text that waits for the next character."""
        return self._held_pieces

    def correct(self, text: str) -> str:
        """Return the text that can be sent.

        Args:
            text: all that the scanner has scanned since the last call; "" after the end of the text.
        """
        scanner = self._scanner
        if scanner.is_settled:  # nearly always
            return text
        undecided_offset = scanner.undecided_offset
        if undecided_offset is not None and undecided_offset == self._held_offset:
            self._held_pieces.append(text)
            return ""
        if self._held_pieces:
            text = "".join(self._held_pieces) + text
            self._held_pieces.clear()
        offset = scanner.offset - len(text)
        self._held_offset = undecided_offset
        if undecided_offset is None:
            scanner.is_settled = True
        else:
            self._held_pieces.append(text[undecided_offset - offset :])
            text = text[: undecided_offset - offset]
        return self._apply_corrections(text, offset) if scanner.corrections else text

    def _apply_corrections(self, text: str, offset: int) -> str:
        """Return the text with the scanner's corrections. `offset`: that of the text."""
        parts: list[str] = []
        pos = 0
        for start, stop, replacement, note in self._scanner.corrections:
            parts += (text[pos : start - offset], replacement)
            pos = stop - offset
            if note not in self.notes:
                self.notes.append(note)
        self._scanner.corrections.clear()
        parts.append(text[pos:])
        return "".join(parts)

    def close_brackets(self) -> str:
        """Add the closing brackets that are missing at the end, if that is all that is missing.

        Only for a value that the model has ended. A comma before the brackets is removed.

        Returns:
            The text that was held back, and the brackets; "" if something else is missing, or nothing.
        """
        if self._scanner.ended:
            return ""
        brackets = self._scanner.close_brackets()
        if not brackets:
            return ""
        remainder = self.correct("")
        self.notes.append(f"closing brackets that are missing at the end: added {brackets!r:.20}")
        return remainder + brackets

    def release(self) -> str:
        """Return the text that is held back, unchanged, because the text was cut."""
        held = "".join(self._held_pieces)
        self._held_pieces.clear()
        self._held_offset = None
        return held


def correct_json(text: str) -> tuple[str, list[str]]:
    """Correct a text with one JSON value, or several. Return the text and a note for each kind of correction.

    Missing brackets are not added, because the text may have been cut: see `JsonCorrector.close_brackets`.
    """
    parts: list[str] = []
    notes: list[str] = []
    end = 0
    while end < len(text):
        start = end
        scanner = JsonScanner(corrects=True)
        corrector = JsonCorrector(scanner)
        end = scanner.scan_all(text, start)
        parts.append(corrector.correct(text[start:end]))
        scanner.finish()
        parts.append(corrector.correct(""))
        notes += [note for note in corrector.notes if note not in notes]
    return "".join(parts), notes
