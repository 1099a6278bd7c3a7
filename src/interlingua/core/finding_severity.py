"""Severity of findings, and what a user can do about those that are not harmless."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

__all__ = ["SEVERITIES", "Severity", "advice_for", "severity_of"]

Severity: TypeAlias = Literal["info", "warning", "error"]
"""info: normalised, and the meaning is certain. warning: changed, dropped or inferred, so that the client or the model
may notice it. error: a call or a part of the reply is lost or incomplete."""
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""All severities, the least severe first."""

_ERRORS = {
    "string-not-closed": "the client must not run the call; raise the token limit, or ask the model again",
    "ambiguous-value": "the client must not run the call; ask the model again, or write the file in parts",
    "opener-in-value": "the client must not run the call; ask the model again",
    "header-as-name": "no tool has this name: offer fewer similar tools, or ask the model again",
    "call-without-name": "the call is lost as a call; ask the model again",
    "bad-arguments": "the client cannot read the arguments; set `delivery: whole`, or ask the model again",
    "call-withheld": "the call was not delivered; raise the token limit, or ask the model again",
    "no-such-call": "arguments are lost; report it to the provider, or let the gateway parse the text (`dialect`)",
    "cut-short": "the client must not run the call; raise the token limit (`max_tokens`)",
    "lost": "the reply failed; look at the error",
    "not-asked-again": "the upstream fails too often; see `interlingua status`, and configure a `fallback`",
    "bad-json": "the upstream's stream is broken; record it with `--capture`, and report it to the provider",
    "bad-chunk": "a part of the reply is lost; record it with `--capture`, and report it to the provider",
    "cut-event": "the stream was cut; check proxies and timeouts between gateway and upstream",
    "not-utf-8": "characters are lost; the upstream must send UTF-8",
    "summary-cut": "the agent forgets the rest; raise the token limit, or compact earlier",
    "prompt-truncated": "the model loses its instructions and tools: raise the context window of the server",
    "runaway": "ask the model again; another dialect or server may avoid it",
    "over-limit": "raise the limit in `limits`, or check whether the model repeats itself",
}
_WARNINGS = {
    "closer-in-text": "look at the text: if a call is missing, record the reply (`--capture`) and check its dialect",
    "no-opener": "check that the server does not remove special tokens (vLLM: `skip_special_tokens: false`)",
    "call-not-closed": "if the call is incomplete, raise the token limit of the client",
    "value-not-closed": "check the value; if it is often cut, raise the token limit of the client",
    "quoted-call": "if it was meant as a call, tell the model in the prompt not to put calls into code blocks",
    "call-in-code": "tell the model in the prompt not to put calls into code blocks",
    "bad-value": "the tool gets a value of another type: describe the type in the tool's schema and description",
    "repeated-param": "check the arguments: one of the values is not used",
    "unnamed-value": "check the arguments: the param was inferred",
    "mended-arguments": "check the arguments: a bracket, comma or quote was added or changed",
    "broken-header": "if it was a call and no mention of one, raise the token limit, or ask the model again",
    "odd-header": "check the name of the call",
    "guessed-name": "check that the call is of the right tool",
    "unknown-tool": "the client reports to the model that the tool does not exist; check the tools of the request",
    "other-tool": "the upstream ignores `tool_choice`; check whether its API supports it",
    "not-a-tool": "if it was a call, offer the tool in the request",
    "no-tools-offered": "if calls are expected, send the tools with each request",
    "after-arguments": "look at what was dropped; record the reply with `--capture`",
    "odd-deltas": "the upstream sends arguments twice and differently; report it to the provider",
    "shared-index": "the upstream numbers its calls wrongly; report it to the provider",
    "changed-id": "the upstream changes ids inside a call; report it to the provider",
    "guessed-input": "check the input of the custom tool",
    "changed-text": "the upstream's summary differs from what it streamed; report it to the provider",
    "stray-delta": "the upstream's stream has a wrong order; report it to the provider",
    "block-not-closed": "the upstream's stream is incomplete; report it to the provider",
    "not-translated": "use a client of the same API as the upstream if you need it",
    "unknown-finish-reason": "check whether the provider documents it",
    "no-finish-reason": "the upstream may have cut the reply; check its log",
    "empty-turn": "set `empty: retry`; check whether the context is full or the thinking used all tokens",
    "after-stop": "the upstream sends data after the end; report it to the provider",
    "choice-dropped": "ask for one choice (`n: 1`)",
    "asked-again": "see the failed attempts in the log, in `interlingua status` and in the metrics",
    "refusal-corrected": "the log names the setting of the server that avoids the refusal",
    "key-redacted": "the upstream repeats a key; change the key, and report it to the provider",
    "field-dropped": "the upstream does not get this field; use an upstream of the same API if you need it",
    "content-dropped": "the model does not see this part; use an upstream of the same API if you need it",
    "hosted-tool": "use `web_search` and `web_fetch` of the settings, or an upstream that runs the tool",
    "tools-narrowed": "check the names of the tools and the tool choice",
    "seal-unreadable": "all replicas need the same `seal_key`; a client cannot send back the thinking of another",
    "sampling-changed": "the value is outside of what the API allows",
    "format-dropped": "the reply may have another format; describe it in the prompt",
    "thinking-wish": "the amount of thinking differs from what the client asked for",
    "half-character": "the upstream cuts characters; report it to the provider",
    "no-result": "the client did not send the result of a call; check whether it was interrupted",
    "orphan-result": "the client sent a result without its call; check its history",
    "late-result": "the client sent a result too late; check its history",
    "several-results": "the client sent two results for one call; check its history",
    "misplaced": "the client's history has calls of other roles; check the client",
    "thinking-lost": "the client does not send thinking back; update it, or disable thinking",
    "thinking-stopped": "the model does not think in this reply",
    "image-omitted": "use a model with vision, or set `vision: true` if it has",
    "choice-relaxed": "the model may not call the tool that the client requires",
    "max-tokens": "the reply may be shorter than the client allows",
    "budget-lowered": "the model thinks less than the client allows",
    "stop-dropped": "the reply does not end at these texts",
    "setting-dropped": "the upstream does not get this setting",
}
"""Advice by kind of finding. All other kinds are of the severity `info`."""


def severity_of(kind: str) -> Severity:
    return "error" if kind in _ERRORS else "warning" if kind in _WARNINGS else "info"


def advice_for(kind: str) -> str:
    """Return what a user can do about findings of this kind; "" if nothing has to be done."""
    return _ERRORS.get(kind) or _WARNINGS.get(kind, "")
