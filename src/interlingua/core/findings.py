"""Every kind of finding: what was seen, and what is done about it. A kind that is not here fails the tests."""

from __future__ import annotations

from interlingua.events import Finding

__all__ = ["FINDING_KINDS", "FindingCollector"]

FINDING_KINDS: dict[str, str] = {
    # the model's text
    "noise": "a token that is no part of a reply, such as the end of a turn: dropped",
    "stray-marker": "a marker where it means nothing: dropped",
    "closer-in-text": "a closer in the text behind a call, which may have been cut where it quotes one: kept as text",
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
    "mended-arguments": "arguments that lack a bracket, a comma or a value, or stand beside the name: read as meant",
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
    "odd-deltas": "arguments in a block's start, and others in its deltas that are no JSON: the start's are taken",
    "call-withheld": "a call that is cut or not valid, in whole delivery: not delivered",
    # structured calls
    "function-call": "the legacy function_call: taken as a tool call",
    "no-index": "a tool call or block without its index: placed by its id or its order",
    "shared-index": "another call or item on an index that is in use: taken as one of its own",
    "renumbered": "a tool call, block or item on an index that does not come next: renumbered",
    "no-id": "a tool call without an id: it gets one",
    "no-type": "a tool call without its type: taken as a function",
    "repaired-arguments": "arguments whose writing was mended, because the caller allowed it: the meaning is the same",
    "repeated-id": "the id sent again: dropped",
    "changed-id": "another id inside a call: dropped",
    "repeated-name": "the name sent again: dropped",
    "no-such-call": "arguments for a call that is not open: dropped",
    "guessed-input": "the text of a custom tool that did not come as its one param: taken from where it stood",
    # items and content blocks
    "changed-text": "a text or arguments, sent whole, that do not begin with their deltas: the deltas count",
    "repeated-item": "an item of a response that is added or done twice: taken once",
    "no-message-start": "a message or response without its start: it gets one",
    "stray-delta": "a delta where no block of its kind is open: read all the same",
    "repeated-signature": "another signature for the same thinking: dropped",
    "block-not-closed": "a block that was never closed: taken as closed",
    "not-translated": "a block, item, delta, event or field that only clients of the same wire can be told of",
    # the end of a reply
    "stop-reason": "a stop reason that does not fit the reply: corrected",
    "unknown-finish-reason": "a finish reason that is not of the wire: read as the nearest",
    "no-finish-reason": "no finish reason at all: taken from what was sent",
    "empty-turn": "a reply that stops with no text and no call, at most with thinking: passed on, or asked for again",
    "cut-short": "a reply that ends inside a call: the call is incomplete",
    "after-stop": "more after the reply had stopped: dropped",
    "after-end": "more after the end of the stream: dropped",
    "lost": "text that waited behind an open call when the reply failed: lost",
    "choice-dropped": "more than one choice, for a client that can be told of one: dropped",
    # an upstream that answers otherwise than it was asked, or not at all
    "asked-again": "an upstream that failed before it had said a word: asked again, or another one in its place",
    "not-asked-again": "an upstream that failed, and fails too often to be asked again now: the client is told",
    "whole-reply": "a whole reply where a stream was asked for: told as a stream",
    "streamed-reply": "a stream where a whole reply was asked for: put together",
    "usage-estimated": "an upstream that tells no usage: the client is told an estimate",
    # a request for an upstream
    "field-dropped": "a field that the upstream's wire has no place for: dropped",
    "content-dropped": "a piece of a message that the upstream's wire cannot carry: dropped, or named in its place",
    "content-as-text": "a piece of a message that only the client's wire has: told in words",
    "document-as-text": "a document of plain text: sent as text",
    "billing-line": "a line for Anthropic alone that changes with each request: removed",
    "cache-mark-dropped": "cache_control for an upstream that does not know it: dropped",
    "error-as-text": "a tool's failure, where the wire has no field for it: told in the result's text",
    "image-moved": "an image in a tool's result: moved to a message of the user",
    "reordered": "text behind a call, where the wire has one text and then the calls: it stands before",
    "wrapped-arguments": "past arguments that are no JSON object, where the wire wants one: wrapped",
    "seal-dropped": "what another upstream had sent beside its thinking: dropped, the thinking stays",
    "seal-unreadable": "what vouches for past thinking, sealed with another key or changed: dropped",
    "thinking-dropped": "past thinking that the upstream would not take back: dropped",
    "thinking-wish": "how much to think, in a measure that the upstream does not have: the nearest is asked for",
    "custom-tool": "a tool that takes text: offered as a function with one string",
    "namespace": "tools of a namespace: offered under names with it in front",
    "deferred-tool": "a tool that the model has yet to search for: not shown",
    "hosted-tool": "a tool that only another wire knows, and mostly its servers run: not offered",
    "tools-narrowed": "tools that the choice does not allow, or with a name that another has: not shown",
    "name-shortened": "a tool's name that is longer than the wire takes: told in short, and the client's in the reply",
    "no-max-tokens": "no limit of the reply, where the wire wants one: a usual one is sent",
    "sampling-changed": "a value that is out of the wire's range: brought into it",
    "format-dropped": "a format of the reply that the wire cannot ask for: dropped",
    # the stream
    "bad-json": "an event that is no JSON object: dropped; inside a call, or after a hundred, the reply has failed",
    "wrapped-chunk": "a chunk or reply inside another object: taken out of it",
    "bad-chunk": "a part of a chunk that is not of its type: dropped",
    "empty-event": "an event without data: sent as a comment",
    "cut-event": "a stream that ends inside an event: the event is dropped",
    "half-character": "half of a surrogate pair left at the end of a text: dropped",
    "not-utf-8": "bytes that are not UTF-8: read as U+FFFD",
    # a request's history
    "no-result": "a call without a result: answered with one that says so",
    "orphan-result": "a result without its call: told as text of the user",
    "late-result": "a result that comes after the model has spoken again: told as text of the user",
    "several-results": "another result for the same call: joined with the first, or dropped if it is the same",
    "result-moved": "a result that is not right behind its call: moved there",
    "split-turn": "a message of the model between a call and its result: joined with the call",
    "misplaced": "a call or thinking in a message that is not the model's: told as text",
    "empty-content": "a message, or a piece of one, with nothing in it: dropped, or told as `(no content)`",
    "odd-name": "the name of a past call that no tool can have: its odd characters are replaced",
    # what an upstream does not take
    "system-as-user": "system messages in the middle of a conversation: told as text of the user",
    "thinking-lost": "past calls without the thinking that the upstream wants with them: it gets a blank",
    "thinking-stopped": "thinking where the upstream cannot think now: switched off for this reply",
    "choice-relaxed": "a choice of tools that cannot be told, or of such that are not shown: left to the model",
    "bridge": "a user who speaks right behind results, where that is refused: the model says a word between",
    "go-on": "a conversation that ends with the model, where that is refused: the user asks it to go on",
    "max-tokens": "more tokens for the reply than the upstream takes: as many as it takes",
    "budget-lowered": "a budget for thinking that leaves nothing for the answer: lowered",
    "stop-dropped": "stop sequences that the upstream does not take: dropped",
    "setting-dropped": "a setting that the upstream does not know: dropped",
    # settings
    "runaway": "arguments that go on with blanks between two tokens: the reply has failed",
    "over-limit": "more than a limit allows: what was held is given out, and reading starts afresh",
    "reasoning-dropped": "thinking: dropped, as set",
}


class FindingCollector:
    def __init__(self) -> None:
        self._findings: dict[tuple[str, str], Finding] = {}

    def report(self, kind: str, message: str, place: str = "") -> None:
        """The same message twice is one finding, at the first place."""
        self._findings.setdefault((kind, message), Finding(kind, message, place))

    @property
    def findings(self) -> list[Finding]:
        return list(self._findings.values())
