"""Card: the result of a run, for the terminal, as JSON, as Markdown and as one HTML page."""

from interlingua.verification.card.card import Card, build_card

__all__ = ["Card", "build_card"]
