"""Check of recordings with the current code: does each reply still mean what it meant, on every wire?"""

from __future__ import annotations

import msgspec

from interlingua.cassettes.recorded_exchange import RecordedExchange, read_meaning_of
from interlingua.cassettes.reply_meaning import ReplyMeaning, describe_changes
from interlingua.cassettes.request_meaning import read_request_meaning
from interlingua.errors import InterlinguaError
from interlingua.wires import WIRES

__all__ = ["find_problems", "update_meaning"]


def find_problems(exchange: RecordedExchange) -> list[str]:
    """Return what has changed since the exchange was recorded, in words; an empty list if nothing has."""
    recorded = exchange.request.wire
    try:
        read_request_meaning(recorded, exchange.request.body)
        current = read_meaning_of(exchange)
    except InterlinguaError as error:
        return [f"it cannot be replayed: {error}"]
    problems = describe_changes(exchange.meaning, current)
    if exchange.reply.status >= 400 or not exchange.reply.is_complete:
        return problems
    for wire in WIRES if exchange.request.choices == 1 else [recorded]:  # other wires may have only one choice
        for stream in (True, False):
            try:
                other = read_meaning_of(exchange, wire, stream=stream)
                changes = describe_changes(_comparable(current, stream=stream), _comparable(other, stream=stream))
            except InterlinguaError as error:
                changes = [str(error)]
            form = "as a stream" if stream else "whole"
            problems += [f"{wire}, {form}: {change}" for change in changes]
    return problems


def _comparable(meaning: ReplyMeaning, *, stream: bool) -> ReplyMeaning:
    """Return what every wire can carry: a whole reply that has failed has only its error, and whether a call is
    complete cannot be said if its arguments are no object.
    """
    if meaning.error and not stream:
        return ReplyMeaning(error=meaning.error)
    calls = [
        call if isinstance(call.arguments, dict) else msgspec.structs.replace(call, complete=True)
        for call in meaning.calls
    ]
    others = [_comparable(other, stream=stream) for other in meaning.other_choices]
    return msgspec.structs.replace(meaning, calls=calls, other_choices=others)


def update_meaning(exchange: RecordedExchange) -> RecordedExchange:
    """Return the recording with what its reply means to the current code; unchanged if it cannot be replayed."""
    try:
        return msgspec.structs.replace(exchange, meaning=read_meaning_of(exchange))
    except InterlinguaError:
        return exchange
