"""Dialect registry: lookup by name and by model id, and completeness of every dialect."""

from __future__ import annotations

import tomllib
from fnmatch import fnmatchcase

import pytest

import interlingua as il
from interlingua.dialects.registry import get_dialect
from tests.support.paths import DATA

MODELS: dict[str, list[str]] = tomllib.loads((DATA / "models.toml").read_text(encoding="utf-8"))
IDS = [(model, dialect) for dialect, models in MODELS.items() for model in models]


@pytest.mark.parametrize(("model", "dialect"), IDS, ids=[model for model, _ in IDS])
def test_model_ids(model: str, dialect: str) -> None:
    assert il.dialect_for(model).name == dialect


def test_models_of_the_demo_name_their_dialect() -> None:
    assert [il.dialect_for(f"demo/{dialect.name}") for dialect in il.dialects()] == list(il.dialects())
    assert il.dialect_for("demo/other").name == "standard"


def test_model_ids_of_every_dialect() -> None:
    assert sorted(MODELS) == sorted(dialect.name for dialect in il.dialects())
    assert len(IDS) == len(dict(IDS))


@pytest.mark.parametrize("dialect", il.dialects(), ids=lambda dialect: dialect.name)
def test_every_glob_matches_a_model(dialect: il.Dialect) -> None:
    models = MODELS.get(dialect.name, [])
    for glob in dialect.models:
        assert any(fnmatchcase(model.lower(), glob) for model in models), glob


@pytest.mark.parametrize("dialect", il.dialects(), ids=lambda dialect: dialect.name)
def test_every_dialect_is_complete(dialect: il.Dialect) -> None:
    assert get_dialect(dialect.name) is dialect
    assert get_dialect(dialect) is dialect
    assert dialect.summary
    assert all(model == model.lower() for model in dialect.models)
    if dialect.shape is not None:
        reply = il.parse(dialect.sample, dialect)
        assert reply.calls
        assert not reply.findings
        assert il.render(reply, dialect) == dialect.sample
