"""Differences between a request and a recording, in words."""

from __future__ import annotations

from collections.abc import Iterator

from interlingua.cassettes.request_meaning import RequestMeaning
from interlingua.common.common_prefix import common_prefix_length

__all__ = ["describe_differences", "distance"]

MAX_SHOWN = 8
"""Number of differences that are described; the others are counted."""
MAX_SHORT_CHARS = 60
"""Longest value that is shown as a whole."""
CONTEXT_CHARS = 24
"""Characters that are shown before the first difference of two texts."""


def distance(request: RequestMeaning, recording: RequestMeaning) -> tuple[int, int]:
    """Return how much a request differs from a recording: the number of differing facts, then of differing characters
    (roughly, from the first difference to the last)."""
    ours, theirs = _compared_facts(request, recording)
    differing = [label for label in {**ours, **theirs} if ours.get(label) != theirs.get(label)]
    return len(differing), sum(_span(ours.get(label, ""), theirs.get(label, "")) for label in differing)


def describe_differences(request: RequestMeaning, recording: RequestMeaning) -> list[str]:
    """Return a line for each difference, in the order of the request, and the number of further ones."""
    lines = list(_differences(*_compared_facts(request, recording)))
    more = len(lines) - MAX_SHOWN
    return lines if more <= 0 else [*lines[:MAX_SHOWN], f"and {more} more difference{'s' if more > 1 else ''}"]


def _compared_facts(request: RequestMeaning, recording: RequestMeaning) -> tuple[dict[str, str], dict[str, str]]:
    """Return the facts that count between the wires of both."""
    if request.wire == recording.wire:
        return request.facts, recording.facts
    shared = [name for name in request.settings if name in recording.settings]
    return (
        {**request.conversation, **{name: request.settings[name] for name in shared}},
        {**recording.conversation, **{name: recording.settings[name] for name in shared}},
    )


def _differences(ours: dict[str, str], theirs: dict[str, str]) -> Iterator[str]:
    for label in {**ours, **theirs}:
        here, recorded = ours.get(label), theirs.get(label)
        if here == recorded:
            continue
        if recorded is None:
            yield f"{label}: only in the request: {_shorten(here or '')}"
        elif here is None:
            yield f"{label}: only in the recording: {_shorten(recorded)}"
        elif max(len(here), len(recorded)) <= MAX_SHORT_CHARS:
            yield f"{label}: {_quote(here)}, recorded {_quote(recorded)}"
        else:
            yield _text_difference(label, here, recorded)


def _text_difference(label: str, here: str, recorded: str) -> str:
    """Describe the first difference of two long texts, with what precedes it."""
    start = common_prefix_length(here, recorded)
    line = here.count("\n", 0, start) + 1
    place = f"line {line}" if "\n" in here or "\n" in recorded else f"character {start + 1}"
    begin = max(start - CONTEXT_CHARS, here.rfind("\n", 0, start) + 1)
    lead = "…" if begin else ""
    ours, theirs = (_quote(lead + _shorten_after(text[begin:])) for text in (here, recorded))
    return f"{label}: differs in {place}: {ours}, recorded {theirs}"


def _shorten_after(text: str) -> str:
    length = CONTEXT_CHARS + MAX_SHORT_CHARS
    return text if len(text) <= length else f"{text[:length]}…"


def _shorten(text: str) -> str:
    return _quote(text if len(text) <= MAX_SHORT_CHARS else f"{text[:MAX_SHORT_CHARS]}…")


def _quote(text: str) -> str:
    """Return a text on one line, in quotes unless it is a JSON value that stands for itself."""
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    is_json = text[:1] in '{["' or text in ("true", "false") or text.replace(".", "", 1).lstrip("-").isdigit()
    return text if is_json else f"“{text}”"


def _span(a: str, b: str) -> int:
    """Return the number of characters between the common beginning and the common end of two texts."""
    start = common_prefix_length(a, b)
    rest_a, rest_b = a[start:], b[start:]
    end = common_prefix_length(rest_a[::-1], rest_b[::-1])
    return max(len(rest_a), len(rest_b)) - end
