"""Tokens and costs of a run: an estimate before it starts, and what the upstream has counted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from interlingua.common.jsontext.codec import write_json
from interlingua.verification.probing.server_facts import Price
from interlingua.verification.run.trial_result import TrialResult
from interlingua.verification.samples.answer_key import ideal_reply
from interlingua.verification.samples.sample import Sample

__all__ = ["TokenCount", "count_tokens", "estimate_tokens"]

BYTES_PER_TOKEN = 3.5
"""Bytes of JSON and code for a token, roughly. Prose has more."""
THINKING_TOKENS = 150
"""Tokens that a model may think before a reply, roughly."""


class TokenCount(msgspec.Struct, frozen=True):
    prompt: int = 0
    reply: int = 0

    def __add__(self, other: TokenCount) -> TokenCount:
        return TokenCount(self.prompt + other.prompt, self.reply + other.reply)

    @property
    def total(self) -> int:
        return self.prompt + self.reply

    def dollars(self, price: Price | None) -> float | None:
        """Return the cost in US dollars; None if the price is unknown."""
        return (self.prompt * price.prompt + self.reply * price.reply) / 1e6 if price is not None else None


def estimate_tokens(samples: Iterable[tuple[Sample, int]]) -> TokenCount:
    """Return the tokens of a run, roughly. Each sample has the number of times that it is sent."""
    prompt = reply = 0
    for sample, times in samples:
        prompt += times * _tokens(write_json([sample.request.get("messages"), sample.request.get("tools")]))
        answer = ideal_reply(sample)
        size = len(answer.text) + sum(len(call.arguments) + len(call.name) for call in answer.calls)
        reply += times * (round(size / BYTES_PER_TOKEN) + THINKING_TOKENS)
    return TokenCount(prompt, reply)


def _tokens(text: str) -> int:
    return round(len(text.encode("utf-8", "replace")) / BYTES_PER_TOKEN)


def count_tokens(results: Sequence[TrialResult]) -> TokenCount:
    """Return the tokens that the upstream has counted for these trials."""
    return TokenCount(sum(result.input_tokens for result in results), sum(result.output_tokens for result in results))
