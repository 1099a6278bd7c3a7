"""Cassettes: recorded exchanges with models that replay on every API, without a model, a key or a network."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from interlingua.cassettes.cassette_files import cassette_name, load_cassette
    from interlingua.cassettes.cassette_format import read_cassette, write_cassette
    from interlingua.cassettes.match_rules import MatchRules
    from interlingua.cassettes.recorded_exchange import (
        RecordedExchange,
        RecordedUpstream,
        record_exchange,
        translate_recording,
    )
    from interlingua.cassettes.recording_index import CassetteMiss

__all__ = [
    "CassetteMiss",
    "MatchRules",
    "RecordedExchange",
    "RecordedUpstream",
    "cassette_name",
    "load_cassette",
    "read_cassette",
    "record_exchange",
    "translate_recording",
    "write_cassette",
]

_MODULES = {
    "CassetteMiss": "recording_index",
    "MatchRules": "match_rules",
    **dict.fromkeys(("cassette_name", "load_cassette"), "cassette_files"),
    **dict.fromkeys(("read_cassette", "write_cassette"), "cassette_format"),
    **dict.fromkeys(
        ("RecordedExchange", "RecordedUpstream", "record_exchange", "translate_recording"), "recorded_exchange"
    ),
}
"""Each public name and its module, imported on first use."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
