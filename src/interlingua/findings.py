"""Every kind of finding: what was seen, and what is done about it. A kind that is not here fails the tests."""

from __future__ import annotations

__all__ = ["KINDS"]

KINDS: dict[str, str] = {
    # the model's text
    "noise": "a token that is no part of a reply, such as the end of a turn: dropped",
    "stray-marker": "a marker where it means nothing: dropped",
    "no-section": "a call outside a section: taken as a call",
    "no-opener": "a call whose opener was lost on the way: taken as a call, for its tool was offered",
    "section-not-closed": "a section of calls that was never closed: taken as closed",
    "text-in-section": "text among the calls of a section: kept as text",
    "no-separator": "arguments right after the header, without the marker between: taken as such",
    "call-not-closed": "a call that was never closed: taken as closed",
    "value-not-closed": "a param's value that was never closed: taken as closed",
    "bad-value": "a param's value that does not fit its type: kept as a string",
    "repeated-param": "a param that the call has already: passed on, and to most readers the last one counts",
    "value-as-string": "a number or a word where only a string fits: taken as a string",
    "no-quote": "a string without its quotes, or without the first of them: taken as one",
    "unnamed-value": "a value without its key: taken as the one param that it can be, or else given out as text",
    "mended-arguments": "arguments that lack a bracket, a comma or a value: read as meant",
    "broken-header": "a call that breaks off in its header: given back as text",
    "odd-header": "a header with parts that are wrong, doubled or unknown: read as far as it can be",
    "no-arguments": "a call that ends after its header: taken as one without arguments",
    "detected": "the dialect of a reply that was not known: read as that from there on",
    # a call's name and id
    "guessed-name": "a call without a name: taken as the one offered tool whose params fit",
    "header-as-name": "a call without a name, and no one tool fits: its header is taken as the name",
    "call-without-name": "a call that nothing names: its arguments are given out as text",
    "renamed": "a name with native text or a prefix in it: taken without",
    "unknown-tool": "a tool that was not offered: passed on all the same",
    "not-a-tool": "what looks like a call of a tool not offered, where it may be something else: given out as text",
    "no-tools-offered": "a call although no tool was offered: given out as text",
    "duplicate-call": "a call that came as text and structured, with one id: taken once",
    "late-id": "an id that comes after arguments too long to wait for it: dropped, and one is made",
    "id-renamed": "an id that the conversation already has: made unique",
    # a call's arguments
    "bad-arguments": "arguments that are no JSON object: passed on as they are",
    "arguments-as-value": "structured arguments sent as a value, not as text: written as text",
    "unwrapped-arguments": "arguments that are an object inside a string: taken out of it",
    "after-arguments": "more after the end of the arguments: dropped",
    "resent-arguments": "each piece of structured arguments holds all those before it: sent once",
    "call-withheld": "a call that is cut or not valid, in whole delivery: not delivered",
    # structured calls
    "function-call": "the legacy function_call: taken as a tool call",
    "no-index": "a tool call without its index: placed by its id or its order",
    "shared-index": "another call on an index that is in use: taken as a call of its own",
    "renumbered": "a tool call on an index that does not come next: renumbered",
    "no-id": "a tool call without an id: it gets one",
    "no-type": "a tool call without its type: taken as a function",
    "repeated-id": "the id sent again: dropped",
    "changed-id": "another id inside a call: dropped",
    "repeated-name": "the name sent again: dropped",
    "no-such-call": "arguments for a call that is not open: dropped",
    # the end of a reply
    "stop-reason": "a stop reason that does not fit the reply: corrected",
    "unknown-finish-reason": "a finish reason that is not of the wire: read as the nearest",
    "no-finish-reason": "no finish reason at all: taken from what was sent",
    "cut-short": "a reply that ends inside a call: the call is incomplete",
    "after-stop": "more after the reply had stopped: dropped",
    "after-end": "more after the end of the stream: dropped",
    "lost": "text that waited behind an open call when the reply failed: lost",
    "choice-dropped": "more than one choice, for a client that can be told of one: dropped",
    # the stream
    "bad-json": "an event that is no JSON object: passed on untouched, or dropped where the client speaks another wire",
    "bad-chunk": "a part of a chunk that is not of its type: dropped",
    "empty-event": "an event without data: sent as a comment",
    "cut-event": "a stream that ends inside an event: the event is dropped",
    "half-character": "half of a surrogate pair left at the end: dropped",
    "not-utf-8": "bytes that are not UTF-8: read as U+FFFD",
    # settings
    "over-limit": "more than a limit allows: what was held is given out, and reading starts afresh",
    "reasoning-dropped": "thinking: dropped, as set",
}
