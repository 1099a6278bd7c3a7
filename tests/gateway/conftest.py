"""Fixtures of all tests of the gateway."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest


@pytest.fixture(autouse=True)
def close_sdk_clients(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Close the clients that a test has created. Otherwise their sockets are closed with a warning in a later test."""
    clients: list[Any] = []

    def record_clients(sdk_class: Any) -> None:
        original_init = sdk_class.__init__

        def init(self: Any, *args: Any, **fields: Any) -> None:
            original_init(self, *args, **fields)
            if "http_client" not in fields:  # else the connections belong to the caller
                clients.append(self)

        monkeypatch.setattr(sdk_class, "__init__", init)

    record_clients(openai.OpenAI)
    record_clients(anthropic.Anthropic)
    yield
    for client in clients:
        client.close()
