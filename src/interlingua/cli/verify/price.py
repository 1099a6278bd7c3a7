"""The option --price."""

from __future__ import annotations

from interlingua.errors import UsageError
from interlingua.verification.probing.server_facts import Price

__all__ = ["parse_price"]


def parse_price(text: str | None) -> Price | None:
    """Return the prices that --price names; None without the option."""
    if text is None:
        return None
    try:
        prompt, reply = (float(part) for part in text.split(","))
    except ValueError:
        raise UsageError(
            f"--price {text!r} is not two numbers", "dollars for a million tokens: --price 0.60,2.50"
        ) from None
    return Price(prompt, reply)
