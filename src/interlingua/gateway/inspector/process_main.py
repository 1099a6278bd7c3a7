"""Process of the inspector: receives what the workers send, and serves the page to them over a Unix socket.

    python -m interlingua.gateway.inspector.process_main

Its settings are one line of JSON on standard input. It ends when standard input is closed, also if the gateway dies.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from contextlib import suppress
from pathlib import Path

import msgspec
from aiohttp import web

from interlingua.errors import InterlinguaError
from interlingua.gateway.inspector.analyses import Analyses
from interlingua.gateway.inspector.exchange_archive import ArchivedExchanges, ExchangeArchive
from interlingua.gateway.inspector.exchange_ring import ExchangeRing
from interlingua.gateway.inspector.feed_receiver import FeedReceiver
from interlingua.gateway.inspector.http_api import make_inspector_app
from interlingua.gateway.inspector.socket_paths import feed_path, http_path

__all__ = ["ProcessSettings", "main"]

NICENESS = 5
"""Streams of the gateway come first."""


class ProcessSettings(msgspec.Struct, frozen=True):
    """Settings of the process."""

    folder: str
    """Folder of the sockets, which only its owner can enter."""
    memory: int
    keep: str = ""
    size: int = 0


def main() -> int:
    settings = msgspec.json.decode(sys.stdin.buffer.readline(), type=ProcessSettings)
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):  # it ends with the gateway, after its last exchange
        signal.signal(number, signal.SIG_IGN)
    with suppress(OSError):
        os.nice(NICENESS)
    try:
        asyncio.run(_serve(settings))
    except InterlinguaError as error:
        print(f"interlingua: inspector: {error}; {error.hint}", file=sys.stderr)  # noqa: T201
        return 1
    finally:  # the gateway may have been killed
        shutil.rmtree(settings.folder, ignore_errors=True)
    return 0


async def _serve(settings: ProcessSettings) -> None:
    source: ExchangeRing | ArchivedExchanges
    if settings.keep:
        source = ArchivedExchanges(ExchangeArchive(Path(settings.keep).expanduser(), settings.size), settings.memory)
        ring = source.ring
    else:
        source = ring = ExchangeRing(settings.memory)
    loop = asyncio.get_running_loop()
    for path in (feed_path(settings.folder), http_path(settings.folder)):
        with suppress(FileNotFoundError):  # of an earlier process
            os.unlink(path)
    feed = await loop.create_unix_server(lambda: FeedReceiver(ring), feed_path(settings.folder))
    runner = web.AppRunner(make_inspector_app(source, Analyses(source)), access_log=None, shutdown_timeout=0.5)
    await runner.setup()
    await web.UnixSite(runner, http_path(settings.folder)).start()
    try:
        await _wait_for_end_of_input()
    finally:
        feed.close()
        await runner.cleanup()
        if isinstance(source, ArchivedExchanges):
            source.close()


async def _wait_for_end_of_input() -> None:
    """Wait until the gateway has closed its end of the pipe."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()

    def read() -> None:
        if not os.read(sys.stdin.fileno(), 4096):
            loop.remove_reader(sys.stdin.fileno())
            ended.set()

    loop.add_reader(sys.stdin.fileno(), read)
    await ended.wait()


if __name__ == "__main__":
    sys.exit(main())
