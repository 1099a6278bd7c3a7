"""Settings and fixtures of all tests."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import settings

pytest.register_assert_rewrite("tests.support.client_loops")  # so that it tells what differs

from tests.support.budget import PROFILE, examples  # noqa: E402
from tests.support.client_loops import GatewaySession, block_external_connections, demo_gateway  # noqa: E402
from tests.support.signals import handle_ignored_signals  # noqa: E402
from tests.support.upstream_server import UpstreamServer  # noqa: E402

handle_ignored_signals()

# A busy machine is no failure: time is measured where it matters, by ratio. The same code gives the same result twice;
# new examples are for `make fuzz`.
settings.register_profile("quick", deadline=None, print_blob=True, derandomize=True, max_examples=examples(100))
settings.register_profile("full", deadline=None, print_blob=True, derandomize=True)
settings.register_profile("search", deadline=None, print_blob=True, max_examples=1000)
settings.load_profile(PROFILE)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Exclude the collected tests from garbage collection: they live until the end, and are a million objects."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)  # before pytest selects the tests by their markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the rows of large tables as `slow`, except one in n (`@pytest.mark.one_row_in(n)`).

    The first row that stays depends on the name of the test. Otherwise, all tables with one row for each dialect would
    leave out the same dialects.
    """
    counts: Counter[str] = Counter()
    for item in items:
        marker = item.get_closest_marker("one_row_in")
        if marker is None or item.get_closest_marker("slow"):
            continue
        test = item.nodeid.partition("[")[0]
        if (counts[test] + crc32(test.encode())) % marker.args[0]:
            item.add_marker("slow")
        counts[test] += 1


@pytest.fixture(scope="session", autouse=True)
def state_folder_of_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the state of gateways that run in the process of a test out of the user's folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session")
def demo() -> Iterator[tuple[str, Path]]:
    """A gateway with the demo model, as users start it."""
    with demo_gateway() as gateway:
        yield gateway


@pytest.fixture
def talk(demo: tuple[str, Path], monkeypatch: pytest.MonkeyPatch) -> Iterator[GatewaySession]:
    """A session of one client with it; connections elsewhere are blocked."""
    with block_external_connections(monkeypatch):
        yield GatewaySession(*demo)


@pytest.fixture(scope="module")
def upstream() -> Iterator[UpstreamServer]:
    """A scripted upstream, for the tests of one file."""
    server = UpstreamServer()
    yield server
    server.stop()
