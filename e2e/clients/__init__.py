"""The clients that are run, one file each; they do not know each other."""

from __future__ import annotations

from e2e.client import Client
from e2e.clients import claude

__all__ = ["CLIENTS"]

CLIENTS: dict[str, Client] = {client.name: client for client in (claude.CLIENT,)}
