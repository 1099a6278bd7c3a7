"""Source of exchanges for the page: the memory of the inspector's process, its database, or files."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Protocol, TypeVar

import msgspec

from interlingua.captures.capture_format import CapturedExchange
from interlingua.errors import InterlinguaError
from interlingua.gateway.settings.redaction import Redactor
from interlingua.inspection.exchange_summary import SummarizedExchange

__all__ = ["ChangeLog", "ExchangeSource", "UnknownExchange", "redact_summary"]

T = TypeVar("T", bound=msgspec.Struct)

MAX_REMEMBERED_REMOVALS = 10_000
WAIT_SECONDS = 15.0
"""Longest time without a change, so that a connection that is gone is noticed."""


class UnknownExchange(InterlinguaError):
    """No exchange has this id. It may have been dropped, because newer ones needed the room, or its file is gone."""

    status = 404

    def __init__(self, id: str) -> None:
        hint = "its file was removed, or newer exchanges needed the room: see inspect.memory in the settings"
        super().__init__(f"no exchange {id!r:.100}", hint)


def redact_summary(summarized: SummarizedExchange, redactor: Redactor) -> SummarizedExchange:
    """Return the summary without the secrets that the redactor finds in its texts."""

    def redact(struct: T) -> T:
        texts = {name: value for name in struct.__struct_fields__ if isinstance(value := getattr(struct, name), str)}
        return msgspec.structs.replace(struct, **{name: redactor.redact_text(text) for name, text in texts.items()})

    return SummarizedExchange(redact(summarized.summary), redact(summarized.facts))


class ExchangeSource(Protocol):
    """Exchanges that the page shows. All methods but `changes` may be called in any thread, and may block."""

    @property
    def changes(self) -> ChangeLog:
        """Changes of the exchanges, for live pages."""

    @property
    def is_live(self) -> bool:
        """True if exchanges of a running gateway are added."""

    def list_exchanges(self) -> list[SummarizedExchange]:
        """Return all exchanges, in any order."""

    def find_summary(self, id: str) -> SummarizedExchange:
        """Return the summary of one exchange. Raises UnknownExchange."""

    def load(self, id: str) -> CapturedExchange:
        """Return an exchange without secrets. Raises UnknownExchange, or BadInput if it cannot be read."""


class ChangeLog:
    """Ids of exchanges that have changed, for pages that wait for them. It belongs to the event loop, but for
    `changed_at`."""

    def __init__(self) -> None:
        self.version = 0
        self._changed: dict[str, int] = {}
        self._removed: deque[tuple[int, str]] = deque(maxlen=MAX_REMEMBERED_REMOVALS)
        self._waiters: set[asyncio.Future[None]] = set()

    def add(self, id: str) -> None:
        """Note that an exchange is new or has changed."""
        self.version += 1
        self._changed.pop(id, None)
        self._changed[id] = self.version
        self._wake()

    def remove(self, id: str) -> None:
        """Note that an exchange is gone."""
        self.version += 1
        self._changed.pop(id, None)
        self._removed.append((self.version, id))
        self._wake()

    def announce(self) -> None:
        """Note that something besides the exchanges has changed."""
        self.version += 1
        self._wake()

    def changed_at(self, id: str) -> int:
        """Return the version in which an exchange has changed last; 0 if it has not. It may be called in any thread."""
        return self._changed.get(id, 0)

    def since(self, version: int) -> tuple[list[str], list[str]]:
        """Return the ids that have changed since this version, and those that were removed."""
        changed: list[str] = []
        for id, changed_at in reversed(self._changed.items()):
            if changed_at <= version:
                break
            changed.append(id)
        return changed[::-1], [id for removed_at, id in self._removed if removed_at > version]

    async def wait(self, version: int) -> None:
        """Wait until there are changes since this version, for some seconds at most."""
        if self.version > version:
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        try:
            await asyncio.wait([waiter], timeout=WAIT_SECONDS)
        finally:
            self._waiters.discard(waiter)

    def _wake(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
