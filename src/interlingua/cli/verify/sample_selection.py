"""The options --only and --limit."""

from __future__ import annotations

from interlingua.errors import UsageError, suggestion_hint
from interlingua.verification.samples.sample import Sample

__all__ = ["select_samples"]


def select_samples(samples: list[Sample], only: str | None, limit: int | None) -> list[Sample]:
    """Return the samples with these categories or ids, and at most `limit` of them, spread over the set.

    Raises:
        UsageError: A name is unknown, or the limit is not positive.
    """
    if only is not None:
        names = {name.strip() for name in only.split(",") if name.strip()}
        known = {name for sample in samples for name in (sample.category, sample.id)}
        if unknown := sorted(names - known):
            categories = sorted({sample.category for sample in samples})
            raise UsageError(f"--only: no sample is called {unknown[0]!r}", suggestion_hint(unknown[0], categories))
        samples = [sample for sample in samples if sample.category in names or sample.id in names]
    if limit is None or limit >= len(samples):
        return samples
    if limit < 1:
        raise UsageError("--limit must be at least 1", "for example: --limit 20")
    return [samples[n * len(samples) // limit] for n in range(limit)]
