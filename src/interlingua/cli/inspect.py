"""`interlingua inspect`: show captured exchanges on a web page, on loopback."""

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
import socket
import sys
import webbrowser
from contextlib import suppress

from aiohttp import web

from interlingua.cli.common import console
from interlingua.errors import BadInput
from interlingua.gateway.inspector.analyses import Analyses
from interlingua.gateway.inspector.capture_files import CaptureFiles, find_capture_files
from interlingua.gateway.inspector.http_api import BASE_PATH, make_inspector_app
from interlingua.gateway.inspector.page_access import PageAccess
from interlingua.gateway.settings.schema import Settings

DESCRIPTION = """\
Serves a page that shows captured exchanges: what the model sent, what the
client received, where they differ, and which turn broke the prompt cache. The
page listens on loopback and needs a key that is part of the printed URL. It
uses no network.

Captures are files that `interlingua serve --capture DIR` writes. Folders are
searched for them, and watched for new, changed and removed ones. A running
gateway with --inspect has the same page at /inspector."""
EPILOG = """\
examples:
  interlingua inspect captures/
  interlingua inspect 20260304T050607-req_1f0c.jsonl
  interlingua inspect --no-browser --port 8485 captures/

Ctrl-C ends it.
"""
HOST = "127.0.0.1"
KEY_BYTES = 16
MAX_PRINTED_PROBLEMS = 10
"""Number of files that are no captures whose problems are printed at once."""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("captures", nargs="+", metavar="CAPTURE", help="capture files, or folders of them")
    parser.add_argument("--port", type=int, default=0, metavar="N", help="port to listen on; default: any free one")
    parser.add_argument("--no-browser", action="store_true", help="print the URL, and do not open a browser")


def run(args: argparse.Namespace) -> None:
    files = find_capture_files(args.captures)
    if not files and not any(map(os.path.isdir, args.captures)):
        raise BadInput("there is no capture among these files", "pass files that `interlingua serve --capture` wrote")
    listener = _bind(args.port)
    key = secrets.token_urlsafe(KEY_BYTES)
    url = f"http://{HOST}:{listener.getsockname()[1]}{BASE_PATH}/"
    console.write(f"{url}#key={key}\n".encode())
    with suppress(KeyboardInterrupt):
        asyncio.run(_serve(args.captures, listener, key, "" if args.no_browser else f"{url}#key={key}"))


def _bind(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen()  # the URL is printed before the server runs
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BadInput(f"cannot listen on {HOST}:{port}: {reason}", "choose another port with --port") from error
    return listener


async def _serve(paths: list[str], listener: socket.socket, key: str, browser_url: str) -> None:
    source = CaptureFiles(paths)
    access = PageAccess(Settings(host=HOST), key)

    def guard(request: web.Request) -> None:
        access.check(request.path, request.headers)

    app = make_inspector_app(source, Analyses(source, source.problems), guard)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
    await runner.setup()
    await web.SockSite(runner, listener).start()
    watcher = asyncio.create_task(source.watch(_FileReport(source).print_news))
    if browser_url:
        await asyncio.to_thread(_open_browser, browser_url)
    try:
        await watcher
    finally:
        watcher.cancel()
        await runner.cleanup()


class _FileReport:
    """Report of the files that were read, on stderr: how many captures at first, and each file that is none."""

    def __init__(self, source: CaptureFiles) -> None:
        self._source = source
        self._is_first = True
        self._reported: set[str] = set()

    def print_news(self) -> None:
        if self._is_first:
            count = len(self._source.list_exchanges())
            console.print_stderr(f"interlingua: {count} capture{'' if count == 1 else 's'}")
            self._is_first = False
        problems = [problem for problem in self._source.problems if problem not in self._reported]
        self._reported.update(problems)
        for problem in problems[:MAX_PRINTED_PROBLEMS]:
            console.print_stderr(f"interlingua: left out: {console.printable(problem)}")
        if len(problems) > MAX_PRINTED_PROBLEMS:
            console.print_stderr(f"interlingua: and {len(problems) - MAX_PRINTED_PROBLEMS} more files left out")


def _open_browser(url: str) -> None:
    """Open a browser. Programs that it starts may write to the terminal, and must not wait for it."""
    with suppress(webbrowser.Error):
        if not webbrowser.open(url):
            console.print_stderr("interlingua: open the URL in a browser")
    sys.stdout.flush()
