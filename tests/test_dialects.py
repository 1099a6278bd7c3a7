"""The registry: by name, by model id, and that every dialect is whole."""

from __future__ import annotations

import pytest

import interlingua as il
from interlingua.dialects import dialect_named

MODELS = {
    "moonshotai/kimi-k2": "kimi_k2",
    "moonshotai/kimi-k2-0905": "kimi_k2",
    "moonshotai/Kimi-K2-Instruct-0905": "kimi_k2",
    "moonshotai/kimi-k2-thinking": "kimi_k2",
    "moonshotai/kimi-k2.5": "kimi_k2",
    "moonshotai/kimi-k2:free": "kimi_k2",
    "kimi-k2-0711-preview": "kimi_k2",
    "kimi-k2-turbo-preview": "kimi_k2",
    "kimi-k2.7-code": "kimi_k2",
    "kimi-k2:1t-cloud": "kimi_k2",
    "KIMI_K2": "kimi_k2",
    "accounts/fireworks/models/kimi-k2-instruct": "kimi_k2",
    "moonshot.kimi-k2-thinking": "kimi_k2",
    "unsloth/Kimi-K2-Instruct-GGUF": "kimi_k2",
    "kimi-for-coding": "kimi_k2",
    "kimi-latest": "kimi_k2",
    "someone/kimi-k2-distill-qwen-7b": "kimi_k2",
    "deepseek-ai/DeepSeek-V3.1": "deepseek_v31",
    "deepseek/deepseek-chat-v3.1:free": "deepseek_v31",
    "accounts/fireworks/models/deepseek-v3p1": "deepseek_v31",
    "deepseek-v3.1:671b-cloud": "deepseek_v31",
    "deepseek-v3-1-terminus": "deepseek_v31",
    "someone/kimi-k2-vs-deepseek-v3.1": "kimi_k2",
    "gpt-5": "standard",
    "claude-sonnet-4-5": "standard",
    "LLM360/K2-Think": "standard",
    "moonshot-v1-8k": "standard",
    "": "standard",
}


@pytest.mark.parametrize(("model", "dialect"), MODELS.items(), ids=MODELS)
def test_model_ids(model: str, dialect: str) -> None:
    assert il.dialect_for(model).name == dialect


@pytest.mark.parametrize("dialect", il.dialects(), ids=lambda dialect: dialect.name)
def test_every_dialect_is_whole(dialect: il.Dialect) -> None:
    assert dialect_named(dialect.name) is dialect
    assert dialect_named(dialect) is dialect
    assert dialect.summary
    assert all(model == model.lower() for model in dialect.models)
    if dialect.shape is not None:
        reply = il.parse(dialect.sample, dialect)
        assert reply.calls
        assert not reply.findings
        assert il.render(reply, dialect) == dialect.sample
