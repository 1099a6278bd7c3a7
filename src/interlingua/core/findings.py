"""Registry of all finding kinds: the irregularity, then the correction. A kind that is missing here fails the tests."""

from __future__ import annotations

from collections.abc import Iterable

from interlingua.events import Finding

__all__ = ["FINDING_KINDS", "FindingCollector"]

FINDING_KINDS: dict[str, str] = {
    # the model's text
    "noise": "a token that is not part of a reply, such as an end-of-turn token: dropped",
    "stray-marker": "a marker where it has no meaning: dropped",
    "closer-in-text": "a closing marker in the text after a call, which may be cut where it quotes one: kept as text",
    "no-section": "a call outside a section: accepted as a call",
    "no-opener": "a call whose opening marker is missing: accepted as a call, because its tool was offered",
    "section-not-closed": "a section of calls without its closing marker: treated as closed",
    "text-in-section": "text between the calls of a section: kept as text",
    "no-separator": "arguments directly after the header, without the separator marker: accepted as arguments",
    "call-not-closed": "a call without its closing marker: treated as closed; incomplete if a part may be missing",
    "string-not-closed": "a JSON string that is not closed at the end of its call: the call is marked as incomplete",
    "value-not-closed": "a param's value without its closing marker: treated as closed",
    "ambiguous-value": "a param's value that quotes a part of a call, or unclear line breaks: the call is incomplete",
    "quoted-call": "a call inside back-ticks or a code block, with text after it: kept as text",
    "call-in-code": "a call of an offered tool inside back-ticks or a code block that ends the reply: accepted",
    "opener-in-value": "a line of a value that looks like the start of a call: kept as text; the call is incomplete",
    "bad-value": "a param's value that does not match its type, in the schema or in the text: kept, often as a string",
    "repeated-param": "a param that the call already has: forwarded; after a string, the call is incomplete",
    "value-as-string": "a number or a bare word where only a string is valid: converted to a string",
    "no-quote": "a string without its quotes, or without the opening quote: accepted as a string",
    "unnamed-value": "a value without its key: assigned to the only possible param, else returned as text",
    "mended-arguments": "arguments next to the name, or a missing bracket, comma or value, or a wrong quote: repaired",
    "broken-header": "a call whose header is truncated: returned as text",
    "odd-header": "a header with malformed, duplicate or unknown parts: parsed as far as possible",
    "no-arguments": "a call that ends after its header: accepted as a call without arguments",
    "detected": "a reply in an unknown dialect: the dialect was detected and is used from there on",
    # a call's name and id
    "guessed-name": "a call without a name: assigned to the only offered tool whose params match",
    "header-as-name": "a call without a name, and no single tool matches: its header is used as the name",
    "call-without-name": "a call without any name: its arguments are returned as text",
    "renamed": "a name that contains native text or a prefix: removed from the name",
    "unknown-tool": "a call of a tool that was not offered: forwarded anyway",
    "other-tool": "a call of an offered tool, although the tool choice names another one: forwarded anyway",
    "not-a-tool": "text like a call of a tool that was not offered, which may be something else: returned as text",
    "no-tools-offered": "a call although no tool was offered: returned as text",
    "duplicate-call": "a call sent both as text and as a structured call, with the same id: forwarded once",
    "late-id": "an id that arrives after the call has started: dropped, and an id is generated",
    "id-renamed": "an id that the conversation already contains: made unique",
    # a call's arguments
    "bad-arguments": "arguments that are not a JSON object: forwarded unchanged",
    "repaired-arguments": "arguments that are almost JSON: repaired without changing the meaning",
    "arguments-as-value": "structured arguments sent as a JSON value instead of a string: serialized",
    "unwrapped-arguments": "arguments that are an object inside a string: unwrapped",
    "after-arguments": "text after the end of the arguments: dropped",
    "resent-arguments": "each delta of structured arguments repeats all previous ones: forwarded once",
    "odd-deltas": "arguments in a block's start, and deltas that are not valid JSON: those of the start are used",
    "call-withheld": "a truncated or invalid call, with `delivery: whole`: not delivered",
    # structured calls
    "function-call": "the legacy function_call: converted to a tool call",
    "no-index": "a tool call or block without its index: placed by its id or its order",
    "shared-index": "another call or item on an index that is in use: treated as a separate one",
    "renumbered": "a tool call, block or item whose index is not the next one: renumbered",
    "no-id": "a tool call without an id: an id is generated",
    "no-type": "a tool call without its type: treated as a function",
    "repeated-id": "the id sent again: dropped",
    "changed-id": "a different id inside a call: dropped",
    "repeated-name": "the name sent again: dropped",
    "no-such-call": "arguments for a call that is not open or not known: dropped",
    "guessed-input": "the text of a custom tool that is not in its only param: taken from where the model wrote it",
    # items and content blocks
    "changed-text": "a complete text or complete arguments that do not start with their deltas: the deltas are used",
    "repeated-item": "an item of a response that is added or done twice: used once",
    "no-message-start": "a message or response without its start event: a start is added",
    "stray-delta": "a delta although no block of its kind is open: forwarded anyway",
    "repeated-signature": "a second signature for the same thinking: dropped",
    "block-not-closed": "a block that was never closed: treated as closed",
    "not-translated": "a block, item, delta, event or field that only clients of the same wire can receive",
    # the end of a reply
    "stop-reason": "a stop reason that does not match the reply: corrected",
    "unknown-finish-reason": "a finish reason that the wire does not define: mapped to the nearest one",
    "no-finish-reason": "no finish reason: derived from the content of the reply",
    "empty-turn": "a reply without text and without calls, at most with thinking: forwarded, or retried",
    "cut-short": "a reply that ends inside a call: the call is marked as incomplete",
    "after-stop": "data after the reply had stopped: dropped",
    "after-end": "data after the end of the stream: dropped",
    "lost": "text that was buffered behind an open call when the reply failed: lost",
    "choice-dropped": "more than one choice, for a client whose wire has only one: dropped",
    # an upstream whose reply does not match the request, or that fails
    "asked-again": "an upstream that failed before it sent any content: retried, or failed over to another upstream",
    "not-asked-again": "an upstream that failed, and fails too often to retry now: the client receives the error",
    "refusal-corrected": "a request that an upstream refused for a reason that can be removed: changed and sent again",
    "call-asked-again": "a malformed call, with `delivery: whole`: the upstream is asked again, once, and constrained",
    "whole-reply": "a complete reply although a stream was requested: converted to a stream",
    "streamed-reply": "a stream although a complete reply was requested: assembled",
    "usage-estimated": "an upstream that reports no usage: the client receives an estimate",
    "summary-cut": "a summary of a conversation (compaction) that reached the token limit: sent without its end",
    "key-redacted": "a key of the gateway in a reply of the upstream that it was sent to: replaced by `***`",
    # a request for an upstream
    "field-dropped": "a field that the upstream's wire does not have: dropped",
    "content-dropped": "a part of a message that the upstream's wire cannot carry: dropped, or replaced by a note",
    "content-as-text": "a part of a message that only the client's wire has: described in text",
    "document-as-text": "a plain-text document: sent as text",
    "billing-line": "a line for Anthropic only, which changes with each request: removed",
    "cache-mark-dropped": "cache_control for an upstream that does not support it: dropped",
    "error-as-text": "a tool's error, where the wire has no field for it: stated in the text of the result",
    "image-moved": "an image in a tool's result: moved to a user message",
    "reordered": "text after a call, where the wire allows text only before the calls: moved before them",
    "wrapped-arguments": "arguments of a past call that are not a JSON object, where the wire requires one: wrapped",
    "seal-dropped": "the signature or encrypted data of another upstream: dropped; the thinking is kept",
    "seal-unreadable": "a signature of past thinking of another client, key or version, or a modified one: dropped",
    "thinking-dropped": "past thinking that the upstream does not accept back: dropped",
    "thinking-wish": "an amount of thinking that the upstream cannot be asked for: the nearest value is sent",
    "custom-tool": "a tool that takes text: offered as a function with one string",
    "namespace": "tools of a namespace: offered under names prefixed with the namespace",
    "deferred-tool": "a tool that the model has to search for first: not sent to the upstream",
    "hosted-tool": "a tool that only another wire has, usually run by its server: not offered",
    "tools-narrowed": "tools that the tool choice excludes, or whose name is a duplicate: not sent to the upstream",
    "name-shortened": "a tool name that is longer than the wire allows: shortened, and restored in the reply",
    "no-max-tokens": "no token limit, where the wire requires one: a default is sent",
    "sampling-changed": "a value outside the wire's range: moved into the range",
    "format-dropped": "a response format that the wire does not have: dropped",
    # the stream
    "bad-json": "an event that is not a JSON object: dropped; inside a call, or after a hundred, the reply fails",
    "wrapped-chunk": "a chunk or reply inside another object: unwrapped",
    "bad-chunk": "a part of a chunk that has the wrong type: dropped",
    "empty-event": "an event without data: sent as a comment",
    "cut-event": "a stream that ends inside an event: the event is dropped",
    "half-character": "an unpaired surrogate at the end of a text: dropped",
    "not-utf-8": "bytes that are not UTF-8: decoded as U+FFFD",
    # a request's history
    "no-result": "a call without a result: a result that states this is added",
    "orphan-result": "a result without its call: converted to user text",
    "late-result": "a result that follows a later assistant message: converted to user text",
    "several-results": "another result for the same call: merged with the first, or dropped if it is identical",
    "result-moved": "a result that does not directly follow its call: moved there",
    "split-turn": "an assistant message between a call and its result: merged with the message of the call",
    "misplaced": "a call or thinking in a message that is not from the assistant: converted to text",
    "empty-content": "an empty message, or an empty part of one: dropped, or replaced by `(no content)`",
    "odd-name": "the name of a past call with characters that no tool name can have: the characters are replaced",
    # requirements of an upstream
    "system-as-user": "system messages in the middle of a conversation: converted to user text",
    "thinking-lost": "past calls without the thinking that the upstream requires: a placeholder is sent",
    "thinking-stopped": "thinking where the upstream does not support it: disabled for this reply",
    "no-tool-parser": "a server without a tool parser, which rejects tools: `tool_choice: none`; calls read from text",
    "image-omitted": "an image for a model that does not accept images: replaced by a text",
    "choice-relaxed": "a tool choice that cannot be expressed, or names tools that are not sent: left to the model",
    "bridge": "a user message directly after results, which the upstream rejects: an assistant message is inserted",
    "go-on": "a conversation that ends with an assistant message, which the upstream rejects: a user message is added",
    "max-tokens": "a token limit above the upstream's maximum: reduced to the maximum",
    "prompt-truncated": "a prompt longer than the context of a server that silently removes its beginning: sent anyway",
    "budget-lowered": "a thinking budget that leaves no tokens for the answer: lowered",
    "stop-dropped": "stop sequences that the upstream does not accept: dropped",
    "setting-dropped": "a setting that the upstream does not support: dropped",
    "not-constrained": "a request whose calls should be constrained, but cannot be: sent without a constraint",
    "partly-constrained": "a requirement of a tool's schema that no constraint can express: left to the model",
    # settings
    "runaway": "arguments with endless whitespace between two tokens: the reply fails",
    "over-limit": "data above a limit: the buffered text is sent to the client, and parsing restarts",
    "reasoning-dropped": "thinking: dropped, as configured",
}


class FindingCollector:
    """Findings of one request or reply, without duplicates."""

    def __init__(self) -> None:
        self._findings: dict[tuple[str, str], Finding] = {}

    def report(self, kind: str, message: str, place: str = "") -> None:
        """Add a finding. A repeated kind and message is recorded once, with its first place."""
        self._findings.setdefault((kind, message), Finding(kind, message, place))

    @staticmethod
    def join(parts: Iterable[Iterable[Finding]]) -> list[Finding]:
        """Return the findings of several collectors, without duplicates."""
        joined = FindingCollector()
        for part in parts:
            for finding in part:
                joined.report(finding.kind, finding.message, finding.place)
        return joined.findings

    @property
    def findings(self) -> list[Finding]:
        return list(self._findings.values())
