"""Who sees what goes by, piece by piece: captures, and the log if it tells all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from interlingua.gateway.observability.exchange_record import Exchange
from interlingua.gateway.observability.log import Log
from interlingua.gateway.settings.redaction import Redactor

__all__ = ["InLog", "Witness", "Witnesses"]


class Witness(Protocol):
    """Sees one exchange. It never waits, and never fails."""

    def request(self, headers: Mapping[str, str], body: bytes) -> None: ...

    def asked(self, url: str, headers: Mapping[str, str], body: bytes) -> None: ...

    def received(self, data: bytes) -> None: ...

    def sent(self, data: bytes) -> None: ...

    def finish(self, exchange: Exchange) -> None: ...


class InLog:
    """Bodies as lines of the log, without headers: keys stand there. An upstream may quote the client's in a body."""

    def __init__(self, log: Log, id: str, redactor: Redactor) -> None:
        self._log = log
        self._id = id
        self._redactor = redactor

    def request(self, headers: Mapping[str, str], body: bytes) -> None:
        self._redactor = self._redactor.with_credentials(headers)
        self._tell("from the client", body)

    def asked(self, url: str, headers: Mapping[str, str], body: bytes) -> None:  # noqa: ARG002
        self._tell(f"to {url}", body)

    def received(self, data: bytes) -> None:
        self._tell("from the upstream", data)

    def sent(self, data: bytes) -> None:
        self._tell("to the client", data)

    def finish(self, exchange: Exchange) -> None:
        """The line of the request tells it."""

    def _tell(self, what: str, data: bytes) -> None:
        self._log.debug(what, id=self._id, body=self._redactor.data(data).decode("utf-8", "replace"))


class Witnesses:
    """Several, as one."""

    def __init__(self, *witnesses: Witness) -> None:
        self._all = witnesses

    def request(self, headers: Mapping[str, str], body: bytes) -> None:
        for one in self._all:
            one.request(headers, body)

    def asked(self, url: str, headers: Mapping[str, str], body: bytes) -> None:
        for one in self._all:
            one.asked(url, headers, body)

    def received(self, data: bytes) -> None:
        for one in self._all:
            one.received(data)

    def sent(self, data: bytes) -> None:
        for one in self._all:
            one.sent(data)

    def finish(self, exchange: Exchange) -> None:
        for one in self._all:
            one.finish(exchange)
