"""Habits of a model with random weights, which would never end what it begins.

It likes to begin one of the given markers and to go on with a marker that it has begun. The longer a reply is, the more
it likes to end things. What the markers mean, it does not know; a constraint has to.
"""

from collections.abc import Sequence

END = 256
"""The token after the bytes: the end of the reply."""
PLAIN_BYTES = b'abcdefghijklmnop 0123456789"\\\n}{[],:'
BEGIN_MARKER, GO_ON_WITH_MARKER, PLAIN, STOP = 4.5, 7.0, 3.0, 3.0
"""Amount that the habits add to the logits of random weights."""
BEGIN_ENDING, GO_ON_WITH_ENDING = 0.03, 0.2
"""Amount that they add for each token of the reply so far."""


class Habits:
    """Habits as tables. A state is the beginning of a marker or an ending that was written last.

    Args:
        markers: Texts that the model likes to write.
        endings: Texts with which it ends what it has begun.
        vocabulary_size: The number of tokens: the bytes, the end, and others that are never sampled.
    """

    def __init__(self, markers: Sequence[str], endings: Sequence[str], vocabulary_size: int) -> None:
        self._markers = {marker.encode() for marker in (*markers, *endings) if marker}
        self._endings = {ending.encode() for ending in endings if ending}
        self._size = vocabulary_size
        states = sorted({b"", *(marker[:length] for marker in self._markers for length in range(len(marker)))})
        numbers = {state: number for number, state in enumerate(states)}
        self.bonus = [self._bonus_of(state) for state in states]
        """Amount that each state adds to the logits."""
        self.impatience = [self._impatience_of(state) for state in states]
        """Amount that it adds for each token of the reply so far."""
        self.next_state = [[_follow(state, token, numbers) for token in range(vocabulary_size)] for state in states]

    def _bonus_of(self, state: bytes) -> list[float]:
        bonus = [0.0] * self._size
        for byte in PLAIN_BYTES:
            bonus[byte] += PLAIN
        for byte in _next_bytes(b"", self._markers):
            bonus[byte] += BEGIN_MARKER
        if state:
            for byte in _next_bytes(state, self._markers):
                bonus[byte] += GO_ON_WITH_MARKER
        bonus[END] += STOP
        bonus[END + 1 :] = [-1e9] * (self._size - END - 1)
        return bonus

    def _impatience_of(self, state: bytes) -> list[float]:
        impatience = [0.0] * self._size
        for token in _next_bytes(b"", self._endings):
            impatience[token] = BEGIN_ENDING
        impatience[END] = GO_ON_WITH_ENDING
        if state:
            for token in _next_bytes(state, self._endings):
                impatience[token] = GO_ON_WITH_ENDING
        return impatience


def _next_bytes(state: bytes, texts: set[bytes]) -> set[int]:
    """Return the bytes that go on with a text that was begun."""
    return {text[len(state)] for text in texts if text.startswith(state) and text != state}


def _follow(state: bytes, token: int, numbers: dict[bytes, int]) -> int:
    """Return the state after a token: the longest end of the text that begins a marker."""
    if token >= END:
        return numbers[b""]
    written = state + bytes([token])
    return next(numbers[written[start:]] for start in range(len(written) + 1) if written[start:] in numbers)
