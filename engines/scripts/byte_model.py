"""Tiny model with random weights: one token for each byte, and the end of the text. It is made, not downloaded.

A model with random weights never ends what it begins. So it has a habit: it likes to begin one of the given markers,
and to go on with a marker that it has begun. What the markers mean, it does not know; a constraint has to.
"""

from collections.abc import Sequence

import torch
from transformers import LlamaConfig, LlamaForCausalLM, LogitsProcessor

END = 256
VOCABULARY_SIZE = 257
BEGIN_MARKER, GO_ON_WITH_MARKER, PLAIN, CLOSE, STOP = 4.5, 7.0, 3.0, 1.5, 5.0
"""What the habits add to the logits of random weights."""
PLAIN_BYTES = b'abcdefghijklmnop 0123456789"\\\n}{[],:'
CLOSING_BYTES = b'"}])'


def make_model(seed: int = 7) -> LlamaForCausalLM:
    """Return a Llama with two layers and random weights, always the same for a seed."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    config = LlamaConfig(
        vocab_size=VOCABULARY_SIZE,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=1024,
        bos_token_id=END,
        eos_token_id=END,
        pad_token_id=END,
    )
    return LlamaForCausalLM(config).eval()


class Habits(LogitsProcessor):
    """Adds the habits to the logits."""

    def __init__(self, markers: Sequence[str], prompt_length: int) -> None:
        self._next_bytes: dict[bytes, set[int]] = {}
        for marker in {marker.encode() for marker in markers}:
            for length in range(len(marker)):
                self._next_bytes.setdefault(marker[:length], set()).add(marker[length])
        self._longest = max(map(len, self._next_bytes), default=0)
        self._prompt_length = prompt_length
        self._base = torch.full((VOCABULARY_SIZE,), 0.0)
        for byte in PLAIN_BYTES:
            self._base[byte] += PLAIN
        for byte in CLOSING_BYTES:
            self._base[byte] += CLOSE
        for byte in self._next_bytes.get(b"", ()):
            self._base[byte] += BEGIN_MARKER
        self._base[END] += STOP

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        scores = scores + self._base
        for row, ids in enumerate(input_ids[:, self._prompt_length :].tolist()):
            written = bytes(id for id in ids[-self._longest :] if id != END)
            for length in range(min(len(written), self._longest), 0, -1):
                if found := self._next_bytes.get(written[-length:]):
                    scores[row, list(found)] += GO_ON_WITH_MARKER
                    break
        return scores
