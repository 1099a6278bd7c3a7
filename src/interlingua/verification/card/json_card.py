"""Card as JSON, for programs: all counts, and the shares computed from them."""

from __future__ import annotations

from typing import Any

import msgspec

from interlingua.verification.card.card import Card
from interlingua.verification.card.comparison import Comparison
from interlingua.verification.run.metrics import Rate, TriggerScore

__all__ = ["json_card", "json_comparison"]


def json_card(card: Card) -> dict[str, Any]:
    metrics = card.metrics
    rates = {
        name: _rate(value) for name in metrics.__struct_fields__ if isinstance(value := getattr(metrics, name), Rate)
    }
    return {
        "format": 1,
        "run": msgspec.to_builtins(card.header),
        "complete": card.is_complete,
        "done": card.trials_done,
        "verdict": card.verdict,
        "rates": rates,
        "right_by_mode": {mode: _rate(rate) for mode, rate in metrics.right_by_mode.items()},
        "right_by_category": {name: _rate(rate) for name, rate in metrics.right_by_category.items()},
        "triggers": {
            "expected": _score(metrics.expected_triggers),
            "reference": _score(metrics.reference_triggers) if metrics.reference_triggers else None,
        },
        "causes": [msgspec.to_builtins(cause) for cause in card.causes],
        "failures": [_failure(group) for group in card.failures],
        "oddities": dict(card.oddities),
        "latency": {
            "first_content": msgspec.to_builtins(metrics.first_content),
            "duration": msgspec.to_builtins(metrics.duration),
        },
        "tokens": msgspec.to_builtins(card.tokens),
        "extra_tokens": msgspec.to_builtins(card.extra_tokens),
        "dollars": card.dollars,
        "reference": card.reference or None,
    }


def json_comparison(comparison: Comparison) -> dict[str, Any]:
    """Return both cards, and what they have in common."""
    return {
        "a": json_card(comparison.a),
        "b": json_card(comparison.b),
        "both": comparison.both,
        "clear_differences": [rate.name for rate in comparison.rates if rate.is_clear],
        "only_a_right": list(comparison.only_a_right),
        "only_b_right": list(comparison.only_b_right),
        "agreement": _score(comparison.agreement),
    }


def _rate(rate: Rate) -> dict[str, Any]:
    low, high = rate.interval
    value = None if rate.value is None else round(rate.value, 6)
    return {"count": rate.count, "total": rate.total, "value": value, "low": round(low, 6), "high": round(high, 6)}


def _score(score: TriggerScore) -> dict[str, Any]:
    return {
        **msgspec.to_builtins(score),
        "precision": score.precision,
        "recall": score.recall,
        "f1": score.f1,
        "pairs": score.pairs,
    }


def _failure(group: Any) -> dict[str, Any]:
    examples = [
        {
            "id": example.id,
            "stream": example.stream,
            "reasons": list(example.attribution.reasons),
            "confidence": example.attribution.confidence,
            "raw_text": example.attribution.raw_text,
            "response": example.excerpt,
        }
        for example in group.examples
    ]
    return {
        "cause": group.cause,
        "kind": group.kind,
        "count": group.count,
        "certain": group.certain,
        "examples": examples,
    }
