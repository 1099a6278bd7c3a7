"""pytest plugin: `@pytest.mark.cassette`, and fixtures with a base URL or an SDK client that gets recorded replies.

pytest imports this module in every run of a user who has installed Interlingua. So it imports nothing but pytest until
a test uses a cassette.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import pytest

if TYPE_CHECKING:
    from anthropic import Anthropic, AsyncAnthropic
    from openai import AsyncOpenAI, OpenAI

    from interlingua.testing.cassette_session import CassetteSession

MARKER = "cassette"
MODE_OPTION, MODE_SETTING = "--cassette-mode", "cassette_mode"
MODES = ("none", "once", "new_episodes", "all", "rewrite")
_UNSAFE_CHARACTERS = re.compile(r"[^\w.\[\]-]+")
_SESSION = "_interlingua_cassette"
"""Attribute of a test: its cassette. Old versions of pytest have no stash."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("interlingua", "recorded replies of models")
    with suppress(ValueError):  # another plugin has an option of this name: the setting still works
        group.addoption(
            MODE_OPTION,
            choices=MODES,
            help="none: only recorded replies (default if CI is set). once: record tests without a cassette (default). "
            "new_episodes: record what is missing. all: record everything anew.",
        )
    with suppress(ValueError):
        parser.addini(MODE_SETTING, "default of --cassette-mode", default="")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f"{MARKER}(name=None, **options): the test gets recorded replies; options are those of "
        "interlingua.testing.use_cassette",
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let marked tests use the fixture, whether they name it or not."""
    for item in items:
        names = getattr(item, "fixturenames", None)
        if names is not None and MARKER not in names and item.get_closest_marker(MARKER):
            names.insert(0, MARKER)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
    """Fail a test that sent a request without a recording, also if the program under test has handled the error."""
    outcome = yield
    session: CassetteSession | None = getattr(item, _SESSION, None)
    if session is None or call.when != "call" or not session.misses or session.allow_misses:
        return
    report: pytest.TestReport = outcome.get_result()
    text = "\n\n".join(session.misses) + f"\n{session.record_hint}"
    if report.passed:
        report.outcome, report.longrepr = "failed", text
    else:
        report.sections.append(("requests without a recording", text))


def _record_hint(mode: str | None) -> str:
    """Return the hint for a request without a recording. `mode`: that of the test's marker or configuration."""
    if mode == "none":
        return 'this test never records (mode="none"): record the test that the cassette belongs to'
    return f"record it: pytest {MODE_OPTION}=new_episodes; record all anew: pytest {MODE_OPTION}=all"


# ── fixtures ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="session")
def cassette_config() -> dict[str, Any]:
    """Options for all cassettes, as for `interlingua.testing.use_cassette`. Override it in a `conftest.py`."""
    return {}


@pytest.fixture
def cassette_dir(request: pytest.FixtureRequest) -> Path:
    """Folder of the cassettes of a test module: `cassettes/MODULE` beside it. Override it to move them."""
    path = Path(str(getattr(request, "path", None) or request.node.fspath))
    return Path(path.parent, "cassettes", path.stem)


@pytest.fixture
def cassette(
    request: pytest.FixtureRequest,
    cassette_config: dict[str, Any],
    cassette_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[CassetteSession]:
    """The cassette of the test, `CLASS.TEST.yaml`. Clients that the SDKs make without a base URL use it, too."""
    from interlingua.testing.cassette_session import use_cassette

    names, options = _marker_options(request.node)
    path = cassette_dir / (names[0] if names else _default_name(request.node))
    options = {**cassette_config, **options}
    options.setdefault("record_hint", _record_hint(options.get("mode")))
    options["mode"] = _record_mode(request.config, options.get("mode"))
    with use_cassette(path, **options) as session:
        setattr(request.node, _SESSION, session)
        for name, value in session.environment.items():
            monkeypatch.setenv(name, value)
        yield session


@pytest.fixture
def cassette_url(cassette: CassetteSession) -> str:
    """Base URL of the cassette, with `/v1`."""
    return cassette.openai_url


@pytest.fixture
def openai_client(cassette: CassetteSession) -> Iterator[OpenAI]:
    """Client of the OpenAI SDK that gets recorded replies."""
    with cassette.openai() as client:
        yield client


@pytest.fixture
def async_openai_client(cassette: CassetteSession) -> AsyncOpenAI:
    """Asynchronous client of the OpenAI SDK that gets recorded replies."""
    return cassette.async_openai()


@pytest.fixture
def anthropic_client(cassette: CassetteSession) -> Iterator[Anthropic]:
    """Client of the Anthropic SDK that gets recorded replies."""
    with cassette.anthropic() as client:
        yield client


@pytest.fixture
def async_anthropic_client(cassette: CassetteSession) -> AsyncAnthropic:
    """Asynchronous client of the Anthropic SDK that gets recorded replies."""
    return cassette.async_anthropic()


def _record_mode(config: pytest.Config, configured: str | None) -> str:
    """Return the record mode: that of the command line, of the test, of the settings of pytest, or the default.

    A test with the mode `none` never records: it uses the cassette of another one.
    """
    if configured == "none":
        return configured
    chosen = config.getoption(MODE_OPTION, default=None) or configured
    if not chosen:
        with suppress(ValueError, KeyError):
            chosen = config.getini(MODE_SETTING)
    is_ci = os.environ.get("CI", "").lower() not in ("", "0", "false")
    return str(chosen or ("none" if is_ci else "once"))


def _marker_options(node: pytest.Item) -> tuple[list[str], dict[str, Any]]:
    """Return the names and the options of all markers of a test. Those nearer to the test take precedence."""
    names: list[str] = []
    options: dict[str, Any] = {}
    for marker in node.iter_markers(MARKER):
        names += marker.args
        options = {**marker.kwargs, **options}
    return names, options


def _default_name(node: pytest.Item) -> str:
    parent = node.getparent(pytest.Class)
    name = f"{parent.name}.{node.name}" if parent is not None else node.name
    safe = _UNSAFE_CHARACTERS.sub("-", name)[:150]
    return f"{safe}.yaml" if safe == name else f"{safe}-{crc32(name.encode()):08x}.yaml"
