"""Chromium for tests of web pages, driven by Playwright. Tests are skipped where it is missing."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.paths import DATA

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

__all__ = [
    "OpenPage",
    "check_accessibility",
    "find_chromium",
    "open_browser",
    "open_page",
    "run_inspect",
    "wait_until",
]

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
TIMEOUT_SECONDS = 60.0
"""Long, because the machine may be busy."""
DESKTOP = (1440, 900)


def find_chromium() -> str:
    """Return the path of the browser. Skip the test, with the reason, if it or Playwright is missing."""
    pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    path = next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)
    if path is None:
        pytest.skip("chromium is not installed: apt-get install chromium")
    return path


class OpenPage:
    """A page of the inspector, and everything that went wrong in it."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.url = url
        self.problems: list[str] = []
        page.set_default_timeout(TIMEOUT_SECONDS * 1000)
        page.on("console", lambda message: self._add(message.type, message.text))
        page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        page.on("requestfailed", lambda request: self._add_failed(request.url, request.failure or ""))
        page.on("request", lambda request: self._check_origin(request.url))

    def _add(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.problems.append(f"{kind}: {text}")

    def _add_failed(self, url: str, failure: str) -> None:
        if "ERR_ABORTED" not in failure:  # the page itself ends requests that it has no more use for
            self.problems.append(f"failed: {url}: {failure}")

    def _check_origin(self, url: str) -> None:
        if not url.startswith((self.url.split("/inspector")[0], "data:", "blob:", "file:")):
            self.problems.append(f"foreign request: {url}")

    def open(self) -> OpenPage:
        """Open the list of exchanges, with the key in the URL."""
        self.page.goto(self.url)
        self.page.wait_for_selector(".exchange-row, .empty h2")
        return self

    def go(self, route: str) -> None:
        """Go to a route: `exchanges/ID/reply`."""
        self.page.evaluate("(hash) => { location.hash = hash; }", f"#/{route}")

    def text(self, selector: str) -> str:
        return self.page.inner_text(selector)

    def texts(self, selector: str) -> list[str]:
        return self.page.locator(selector).all_inner_texts()

    def wait(self, selector: str) -> None:
        self.page.wait_for_selector(selector)


def wait_until(condition: Callable[[], Any], what: str = "") -> None:
    """Wait until the condition holds. The page's policy forbids Playwright's own functions for it."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"waited too long for {what or condition}"
        time.sleep(0.03)


@contextmanager
def open_browser() -> Iterator[Browser]:
    path = find_chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def open_page(
    browser: Browser, url: str, size: tuple[int, int] = DESKTOP, dark: bool = False, **options: Any
) -> Iterator[OpenPage]:
    """Open a page in a context of its own. It must not have problems at the end."""
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]}, color_scheme="dark" if dark else "light", **options
    )
    try:
        opened = OpenPage(context.new_page(), url)
        yield opened
        assert opened.problems == []
    finally:
        context.close()


@contextmanager
def run_inspect(*paths: Path | str) -> Iterator[str]:
    """Run `interlingua inspect` for these captures until the block ends. Yields its URL, with the key."""
    command = [sys.executable, "-m", "interlingua", "inspect", "--no-browser", *map(str, paths)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def check_accessibility(page: Page) -> list[str]:
    """Return the serious problems that axe finds in the page."""
    page.evaluate((DATA / "axe" / "axe.min.js").read_text(encoding="utf-8") + "\n;0")
    results: dict[str, Any] = page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{violation['id']} ({violation['impact']}): {node['html'][:160]} {node.get('failureSummary', '')[:200]}"
        for violation in results["violations"]
        if violation["impact"] in ("serious", "critical")
        for node in violation["nodes"][:3]
    ]
