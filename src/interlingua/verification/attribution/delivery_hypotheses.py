"""Hypotheses on damaged streams: does the reply become right if one event is dropped, or two change places?"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from interlingua.verification.reply_reading import CallDelta, ClientCall, ClientReply

__all__ = ["explain_damage"]

MAX_DELTAS = 2000
"""Longer streams are not searched, because each hypothesis takes time."""
MAX_HYPOTHESES = 400


def explain_damage(reply: ClientReply, is_right: Callable[[Sequence[ClientCall]], bool]) -> str:
    """Return the damage of the stream that explains wrong arguments; "" if no single damage does.

    Args:
        reply: The reply, with the deltas of its calls.
        is_right: Returns whether these calls are right.
    """
    deltas = list(reply.deltas)
    if not deltas or len(deltas) > MAX_DELTAS:
        return ""
    repeated = [n for n in range(1, len(deltas)) if _is_repeated(deltas, n)]
    for n in repeated[:MAX_HYPOTHESES]:
        if is_right(_rebuild(reply, deltas[:n] + deltas[n + 1 :])):
            return f"event {deltas[n].event} repeats the event before it: without it the calls are right"
    neighbours = [n for n in range(1, len(deltas)) if deltas[n - 1].call == deltas[n].call]
    for n in neighbours[:MAX_HYPOTHESES]:
        swapped = [*deltas[: n - 1], deltas[n], deltas[n - 1], *deltas[n + 1 :]]
        if deltas[n - 1].text != deltas[n].text and is_right(_rebuild(reply, swapped)):
            return f"events {deltas[n - 1].event} and {deltas[n].event} are in the wrong order"
    return ""


def _is_repeated(deltas: list[CallDelta], n: int) -> bool:
    return (deltas[n].call, deltas[n].text) == (deltas[n - 1].call, deltas[n - 1].text)


def _rebuild(reply: ClientReply, deltas: list[CallDelta]) -> list[ClientCall]:
    pieces: dict[int, list[str]] = {}
    for delta in deltas:
        pieces.setdefault(delta.call, []).append(delta.text)
    return [ClientCall(call.id, call.name, "".join(pieces.get(number, ()))) for number, call in enumerate(reply.calls)]
