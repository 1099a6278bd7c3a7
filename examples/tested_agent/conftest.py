"""The model that is recorded: `interlingua serve --demo`. Replays need neither it nor a key nor a network."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture(scope="session")
def cassette_config() -> dict[str, Any]:
    return {"upstream": "http://127.0.0.1:8484/v1"}
