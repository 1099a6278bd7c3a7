"""One scenario, played against one gateway in one API: the client's side of it, and what the upstream saw."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

from interlingua.faults.apis import body_for, offered
from interlingua.faults.checker import raw_client as client
from interlingua.faults.checker.client_view import Heard, hear
from interlingua.faults.checker.raw_client import Got
from interlingua.faults.upstream.server import ELSEWHERE, SEEN

__all__ = ["Play", "Refused", "Target", "Told"]


class Refused(Exception):
    """The gateway took no such request: the upstream was never asked."""


@dataclass(frozen=True)
class Target:
    """The gateway that is tried, and the fault server behind it."""

    gateway: str
    faults: str
    prefix: str = ""
    """What the gateway wants before a model's id."""
    key: str = ""
    """What clients show to the gateway."""
    patience: float = 25
    """How long a client waits for anything, in seconds: long enough to hear our own gateway say that it is there."""


@dataclass
class Told(Heard):
    """What the client heard, and how the connection went."""

    cut: bool = False
    """The answer breaks off, and the client notices."""
    waiting: bool = False
    """The client's patience is over, the answer is not."""
    took: float = 0

    @property
    def alive(self) -> bool:
        """The last that came in the stream is a sign of life: a comment, or a ping of Messages."""
        last = self.body.replace(b"\r", b"").rstrip(b"\n").rpartition(b"\n\n")[2]
        return self.streamed and (last.startswith(b":") or b"event: ping" in last)


@dataclass
class Play:
    target: Target
    api: str
    name: str
    run: str
    """A run of its own, so that the fault server counts it from one."""

    @property
    def model(self) -> str:
        """As the upstream is asked for it."""
        return f"{self.name}--{self.run}"

    @property
    def path(self) -> str:
        base = urlsplit(self.target.gateway).path.rstrip("/")
        return f"{base if base.endswith('/v1') else base + '/v1'}/{self.api}"

    @property
    def elsewhere(self) -> str:
        """An address where nobody has any reason to ask, on another host."""
        return f"http://localhost:{urlsplit(self.target.faults).port}{ELSEWHERE}{self.model}"

    # ── asking ────────────────────────────────────────────────────────────────────────────────────────────────────

    def body(self, stream: bool = True, offer: bool = True, **more: Any) -> bytes:
        asked = {**body_for(self.api, self.target.prefix + self.model, stream), **(offered(self.api) if offer else {})}
        return json.dumps({**asked, **more}).encode()

    def request(self, body: bytes, **headers: str) -> bytes:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        return client.request(self.path, body, {**self.headers(), **given})

    def headers(self) -> dict[str, str]:
        url = urlsplit(self.target.gateway)
        key = self.target.key
        shown = {"authorization": f"Bearer {key}", "x-api-key": key} if key else {}
        return {"host": url.netloc, "anthropic-version": "2023-06-01", **shown}

    def begin(self, data: bytes) -> socket.socket:
        """A connection on which this was sent, as far as the gateway has read it."""
        sock = client.connect(self.target.gateway, self.target.patience)
        with suppress(OSError):  # it may have answered before it has read all
            sock.sendall(data)
        return sock

    def send(self, data: bytes, seconds: float | None = None) -> Told:
        """The answer to these bytes, whatever it is."""
        began = time.monotonic()
        try:
            with self.begin(data) as sock:
                raw, over = client.read(sock, seconds or self.target.patience)
        except OSError as error:
            return Told(0, {}, b"", error=str(error), cut=True, took=time.monotonic() - began)
        told = self.heard(client.parsed(raw))
        told.waiting, told.took = not over, time.monotonic() - began
        return told

    def heard(self, got: Got) -> Told:
        told = Told(got.status, dict(got.headers), got.body, cut=got.cut)
        return told if not got.status else self._heard(told)

    def _heard(self, told: Told) -> Told:
        hear(told, self.api)
        return told

    def ask(self, stream: bool = True, offer: bool = True, seconds: float | None = None, **more: Any) -> Told:
        """The answer to a usual request. Raises if the gateway takes none such."""
        told = self.send(self.request(self.body(stream, offer, **more)), seconds)
        if 400 <= told.status < 500 and not self.seen():
            raise Refused(f"{told.status}, and the upstream was not asked: {told.error[:120]}")
        if told.status == 200 and told.streamed != stream:
            told.odd.append(
                "a stream was asked for, and this is none" if stream else "a stream, which nobody asked for"
            )
        return told

    # ── what the upstream saw ─────────────────────────────────────────────────────────────────────────────────────

    def seen(self) -> list[Any]:
        """The requests for this model that came to the fault server."""
        path = f"{SEEN}?model={quote(self.model)}"
        with client.connect(self.target.faults, 10) as sock:
            sock.sendall(client.request(path, method="GET"))
            raw, _ = client.read(sock, 10)
        found: list[Any] = client.parsed(raw).json
        return found

    def until(self, true: Callable[[list[Any]], bool], seconds: float) -> list[Any]:
        """What was seen, once that is true, or the time is over."""
        end = time.monotonic() + seconds
        while not true(seen := self.seen()) and time.monotonic() < end:
            time.sleep(0.02)
        return seen
