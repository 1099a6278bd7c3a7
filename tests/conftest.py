"""What holds for all tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

pytest.register_assert_rewrite("tests.support.client_loops")  # so that it tells what differs

from tests.support.budget import PROFILE, examples  # noqa: E402
from tests.support.client_loops import GatewaySession, block_external_connections, demo_gateway  # noqa: E402
from tests.support.upstream_server import UpstreamServer  # noqa: E402

# A busy machine is no failure: time is measured where it matters, by ratio. The same code gives the same result twice;
# new examples are for `make fuzz`.
settings.register_profile("quick", deadline=None, print_blob=True, derandomize=True, max_examples=examples(100))
settings.register_profile("full", deadline=None, print_blob=True, derandomize=True)
settings.register_profile("search", deadline=None, print_blob=True, max_examples=1000)
settings.load_profile(PROFILE)


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
    """What one client says to it, and to nobody else."""
    with block_external_connections(monkeypatch):
        yield GatewaySession(*demo)


@pytest.fixture(scope="module")
def upstream() -> Iterator[UpstreamServer]:
    """A scripted upstream, for the tests of one file."""
    server = UpstreamServer()
    yield server
    server.stop()
