"""Ids that look random, and ids that other replies may have, too."""

from __future__ import annotations

import pytest

from interlingua.core.unique_ids import is_unique

RANDOM = [
    ("call_a1b2c3d4e5f6g7h8i9j0k1l2", ""),  # OpenAI, SGLang
    ("chatcmpl-tool-0123456789abcdef0123456789abcdef", ""),  # vLLM
    ("call_k3j9x0aa", ""),  # Ollama
    ("toolu_01A09q90qw90lq917835lq9", ""),
    ("550e8400-e29b-41d4-a716-446655440000", ""),
    ("function-call-13784239834983498", ""),  # Gemini
    ("D681PevKs", ""),  # Mistral
]
REPEATED = [
    ("call_0", "bash"),
    ("functions.bash:0", "bash"),
    ("functions.search_web2024index:12", "search_web2024index"),
    ("chatcmpl-123", ""),
    ("call_20250801", ""),
    ("123456789", ""),
    ("msg_1", ""),
    ("x", ""),
]


@pytest.mark.parametrize(("id", "name"), RANDOM)
def test_random_id_is_unique(id: str, name: str) -> None:
    assert is_unique(id, name)


@pytest.mark.parametrize(("id", "name"), REPEATED)
def test_numbered_id_is_not_unique(id: str, name: str) -> None:
    assert not is_unique(id, name)
