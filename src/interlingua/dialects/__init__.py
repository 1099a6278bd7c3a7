"""Every dialect, by name and by model id. The order is the order in which model ids are tried."""

from __future__ import annotations

from interlingua.dialect import Dialect
from interlingua.dialects import deepseek_v31, kimi_k2, standard
from interlingua.errors import UnknownDialect, expect

__all__ = ["dialect_for", "dialect_named", "dialects"]

STANDARD = standard.DIALECT
ALL = (
    kimi_k2.DIALECT,
    deepseek_v31.DIALECT,
    STANDARD,
)
BY_NAME = {dialect.name: dialect for dialect in ALL}


def dialects() -> tuple[Dialect, ...]:
    """Every dialect that is known."""
    return ALL


def dialect_named(dialect: str | Dialect) -> Dialect:
    if isinstance(dialect, Dialect):
        return dialect
    known = BY_NAME.get(str(dialect))
    if known is None:
        raise UnknownDialect(dialect, BY_NAME)
    return known


def dialect_for(model: str) -> Dialect:
    """The dialect that this model speaks; the standard one if the id is not known."""
    expect(model, str, "a model id is str", "for example 'moonshotai/kimi-k2-0905'")
    return next((dialect for dialect in ALL if dialect.speaks(model)), STANDARD)
