"""Content blocks as upstreams send them, mended: starts, deltas and stops → events.

Upstreams number blocks wrongly, leave out starts and stops, put text where an empty start belongs, and interleave
blocks. What a delta means is told by its own kind; its index only says which call it belongs to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from interlingua import events as ev
from interlingua.common.jsontext.codec import write_json
from interlingua.core.options__limits import Limits
from interlingua.wires.anthropic_messages.tool_input import Input
from interlingua.wires.base import Choice, Json
from interlingua.wires.safe_ids import encode

__all__ = ["NAME", "SPOKEN", "Blocks", "not_translated"]

NAME = "anthropic-messages"
SPOKEN = ("text", "thinking", "redacted_thinking", "tool_use")
"""The kinds of blocks that events tell. All others are for clients of this wire."""

_Kind: TypeAlias = Literal["text", "thinking", "redacted_thinking", "tool_use", "nameless", "other"]


class _Block:
    """A block that is open. `number` is its place among all, which is what its index should be.

    `signature` is the one in its start, which waits for its end; None once one was told.
    """

    def __init__(self, number: int, kind: _Kind) -> None:
        self.number = number
        self.kind: _Kind = kind
        self.signature: str | None = ""
        self.call: _Call | None = None
        self.noted: set[str] = set()


class _Call:
    def __init__(self, key: int, name: str, input: Input) -> None:
        self.key = key
        self.name = name
        self.input = input


class Blocks:
    """The blocks of one reply. Each method adds to what the chunk says, and tells if it is not exact."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._open: dict[int, _Block] = {}  # by the index that the upstream has given
        self.count = 0
        """How many blocks have begun."""
        self._calls = 0
        self._in_doubt: _Call | None = None  # its block is over, but that of one that was cut would be so too

    # ── start ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def start(self, index: int | None, given: Any, choice: Choice) -> None:
        self._settle(choice)
        number, self.count = self.count, self.count + 1
        if index is None:
            choice.report("no-index", "a block without its index: placed by its order")
            index = number
        elif index != number:
            choice.report("renumbered", f"a block on index {index} where {number} comes next: renumbered")
        if index in self._open:
            self._close_late(index, choice)
        choice.exact &= not self._open  # one at a time
        content: Json = given if isinstance(given, dict) else {}
        kind = content.get("type")
        block = self._open[index] = _Block(number, kind if kind in SPOKEN else "other")
        if read := _STARTS.get(block.kind):
            read(self, block, content, choice)
        elif not isinstance(kind, str):
            choice.report("bad-chunk", f"a block without a type: {given!r:.60}; dropped")
        else:
            choice.events.append(
                ev.Finding("not-translated", f"a block of type {kind!r}: for clients of this wire only")
            )

    def _start_text(self, block: _Block, content: Json, choice: Choice) -> None:  # noqa: ARG002
        self._say(ev.TextDelta, content.get("text"), choice)
        choice.exact &= content.get("text") == ""

    def _start_thinking(self, block: _Block, content: Json, choice: Choice) -> None:
        block.signature = _text(content.get("signature"))
        self._say(ev.ReasoningDelta, content.get("thinking"), choice)
        choice.exact &= content.get("thinking") == "" and not block.signature

    def _start_redacted(self, block: _Block, content: Json, choice: Choice) -> None:  # noqa: ARG002
        data = _text(content.get("data"))
        choice.exact &= bool(data)
        choice.events += [ev.Seal(NAME, {"redacted": data})] if data else []

    def _start_call(self, block: _Block, content: Json, choice: Choice) -> None:
        id, name, start = _text(content.get("id")), _text(content.get("name")), content.get("input")
        if not name:
            block.kind = "nameless"
            choice.report("call-without-name", f"a call without a name (id {id!r}): given out as text")
            choice.events += [ev.TextDelta(write_json(start))] if start else []
            return
        if not id:
            choice.report("no-id", f"a call of {name!r} without an id: it gets one")
        block.call = _Call(self._calls, name, Input(start, self._limits.held))
        self._calls += 1
        choice.events.append(ev.CallStart(block.call.key, id or None, name))
        choice.exact &= start == {} and encode(id) == id

    # ── delta ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def delta(self, index: int | None, given: Any, choice: Choice) -> None:
        block = None if index is None else self._open.get(index)
        choice.exact &= block is not None and block.number == index and len(self._open) == 1
        if block is not None and block.kind == "other":
            if not isinstance(given, dict):
                choice.report("bad-chunk", f"a delta that is no object: {given!r:.60}; dropped")
            return
        delta: Json = given if isinstance(given, dict) else {}
        kind = delta.get("type")
        fits = _DELTAS.get(kind) if isinstance(kind, str) else None
        if fits is None:
            self._unknown_delta(block, kind, choice)
            return
        kinds, read = fits
        if block is None or block.kind not in kinds:
            choice.report("stray-delta", f"a {kind} where no block of its kind is open: read all the same")
        read(self, block, delta, choice)

    def more(self, index: int, kind: str, text: str, choice: Choice) -> bool:
        """`delta` for what a block of this kind says. False, and nothing has happened, if that is not the one block
        which is open, or not in its place."""
        block = self._open.get(index)
        if block is None or block.kind != kind or block.number != index or len(self._open) != 1:
            return False
        if block.call is not None:
            self._args(block.call, text, choice)
        elif text:
            choice.events.append(ev.TextDelta(text) if kind == "text" else ev.ReasoningDelta(text))
        return True

    def _unknown_delta(self, block: _Block | None, kind: Any, choice: Choice) -> None:
        if not isinstance(kind, str):
            choice.report("bad-chunk", f"a delta without a type: {kind!r:.60}; dropped")
        elif block is None or kind not in block.noted:
            choice.events.append(
                ev.Finding("not-translated", f"a delta of type {kind!r}: for clients of this wire only")
            )
            if block is not None:
                block.noted.add(kind)

    def _delta_text(self, block: _Block | None, delta: Json, choice: Choice) -> None:  # noqa: ARG002
        self._say(ev.TextDelta, delta.get("text"), choice)

    def _delta_thinking(self, block: _Block | None, delta: Json, choice: Choice) -> None:  # noqa: ARG002
        self._say(ev.ReasoningDelta, delta.get("thinking"), choice)

    def _delta_signature(self, block: _Block | None, delta: Json, choice: Choice) -> None:
        signature = _text(delta.get("signature"))
        if not signature:
            return
        if block is not None and block.signature:  # the one in the start is replaced, as it is by clients
            block.signature = signature
        elif block is not None and block.signature is None:  # some clients take the last, others join them
            choice.report("repeated-signature", "another signature for the same thinking: dropped")
        else:
            choice.events.append(ev.Seal(NAME, {"signature": signature}))
            if block is not None:
                block.signature = None

    def _delta_input(self, block: _Block | None, delta: Json, choice: Choice) -> None:
        given = delta.get("partial_json")
        text = given if isinstance(given, str) else "" if given is None else write_json(given)
        choice.exact &= text is given
        if block is not None and block.kind == "nameless":
            choice.exact = False
            choice.events += [ev.TextDelta(text)] if text else []
            return
        call = block.call if block is not None and block.call else self._last_call()
        if call is None:
            choice.report("no-such-call", "arguments for a call that is not open: dropped")
        else:
            self._args(call, text, choice)

    def _args(self, call: _Call, text: str, choice: Choice) -> None:
        ended = call.input.ended
        passed, rest = ("", text) if ended else call.input.feed(text)
        choice.exact &= passed == text or (ended and not text.strip())
        if passed:
            choice.events.append(ev.ArgsDelta(call.key, passed))
        if rest and rest.strip():
            choice.report("after-arguments", f"{len(rest)} characters after the arguments' end: dropped")
        if call.input.ended and not ended:
            self._end_call(call, choice)

    def _last_call(self) -> _Call | None:
        calls = [block.call for block in self._open.values() if block.call and not block.call.input.ended]
        return calls[-1] if calls else None

    # ── stop ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def stop(self, index: int | None, choice: Choice) -> None:
        if index not in self._open and len(self._open) == 1:  # whatever it says, it can mean but one
            index = next(iter(self._open))
            choice.exact = False
        block = None if index is None else self._open.pop(index, None)
        choice.exact &= block is not None and block.number == index and not self._open
        if block is None:
            return
        if block.call is not None and block.call.input.empty and self._is_last(block):
            self._in_doubt = block.call
        else:
            self._close(block, choice)

    def finish(self, choice: Choice, cut: bool = False) -> None:
        """The upstream has stopped: blocks that are still open are over. Calls that it has cut are the guard's. `cut`:
        by a limit or a filter, and the last call with it if it has no arguments."""
        self._settle(choice, cut)
        for index, block in list(self._open.items()):
            last = cut and self._is_last(block)
            if block.call is None or not (block.call.input.unfinished or (last and block.call.input.empty)):
                self._close_late(index, choice)
            elif rest := block.call.input.cut():
                choice.events.append(ev.ArgsDelta(block.call.key, rest))
        choice.exact &= not self._open
        self._open = {}

    def cut(self) -> list[ev.Event]:
        """No more will come: what is held of the calls that are open."""
        calls = [block.call for block in self._open.values() if block.call and not block.call.input.ended]
        calls += [self._in_doubt] if self._in_doubt else []
        self._open, self._in_doubt = {}, None
        return [ev.ArgsDelta(call.key, rest) for call in calls if (rest := call.input.cut())]

    def _is_last(self, block: _Block) -> bool:
        return block.number == self.count - 1

    def _settle(self, choice: Choice, cut: bool = False) -> None:
        """What follows a call in doubt shows that it had ended, or that it was cut."""
        call, self._in_doubt = self._in_doubt, None
        if call is not None and cut:
            self._cut_call(call, choice)
        elif call is not None:
            self._end_call(call, choice)

    def _close_late(self, index: int, choice: Choice) -> None:
        choice.report("block-not-closed", f"the block on index {index} was never closed: taken as closed")
        self._close(self._open.pop(index), choice)

    def _close(self, block: _Block, choice: Choice) -> None:
        if block.signature:
            choice.events.append(ev.Seal(NAME, {"signature": block.signature}))
            choice.exact = False
        if block.call is not None and not block.call.input.ended:
            self._end_call(block.call, choice)

    def _end_call(self, call: _Call, choice: Choice) -> None:
        if call.input.unfinished:
            self._cut_call(call, choice)
            return
        if rest := call.input.end():
            choice.events.append(ev.ArgsDelta(call.key, rest))
            choice.exact &= rest == "{}"  # no delta at all is as good
        choice.events += [ev.Finding(kind, message) for kind, message in call.input.notes]
        choice.events.append(ev.CallEnd(call.key))

    def _cut_call(self, call: _Call, choice: Choice) -> None:
        if rest := call.input.cut():
            choice.events.append(ev.ArgsDelta(call.key, rest))
            choice.exact = False
        choice.events.append(ev.Finding("cut-short", f"the block of {call.name!r} ends inside its arguments"))
        choice.events.append(ev.CallEnd(call.key, complete=False))

    def _say(self, kind: type[ev.TextDelta | ev.ReasoningDelta], text: Any, choice: Choice) -> None:
        if text is not None and not isinstance(text, str):
            choice.report("bad-chunk", f"text that is none: {text!r:.60}; dropped")
        elif text:
            choice.events.append(kind(text))
        else:
            choice.exact &= text == ""


_STARTS: dict[_Kind, Callable[[Blocks, _Block, Json, Choice], None]] = {
    "text": Blocks._start_text,
    "thinking": Blocks._start_thinking,
    "redacted_thinking": Blocks._start_redacted,
    "tool_use": Blocks._start_call,
}
_DELTAS: dict[str, tuple[tuple[_Kind, ...], Callable[[Blocks, _Block | None, Json, Choice], None]]] = {
    "text_delta": (("text",), Blocks._delta_text),
    "thinking_delta": (("thinking",), Blocks._delta_thinking),
    "signature_delta": (("thinking",), Blocks._delta_signature),
    "input_json_delta": (("tool_use", "nameless"), Blocks._delta_input),
}


def not_translated(what: str, kind: str) -> ev.Finding:
    return ev.Finding("not-translated", f"{what} of type {kind!r}: only clients of this wire are told of it")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
