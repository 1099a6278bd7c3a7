"""Tests of programs that call models: recorded replies instead of a model, as a pytest plugin or a context manager."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from interlingua.cassettes.recording_index import CassetteMiss
    from interlingua.testing.cassette_session import CassetteSession, use_cassette

__all__ = ["CassetteMiss", "CassetteSession", "use_cassette"]

_MODULES = {
    "CassetteMiss": "interlingua.cassettes.recording_index",
    "CassetteSession": "interlingua.testing.cassette_session",
    "use_cassette": "interlingua.testing.cassette_session",
}
"""Each public name and its module. They are imported on first use: pytest imports this package at each start."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
