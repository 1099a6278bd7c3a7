"""Reference page of `interlingua verify`: requests, failures, metrics, evidence. `docs.generate` writes it."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable

from interlingua.faults.engines import ENGINE_FAULTS
from interlingua.verification.attribution import CAUSES
from interlingua.verification.engine_flags import TOOL_PARSERS, fitting_parsers
from interlingua.verification.judging.failure import FAILURE_KINDS
from interlingua.verification.samples.builtin import BUILTIN_SET_NAME, builtin_samples

__all__ = ["verification_page"]

METRICS = (
    ("right", "requests without a failure, of all requests"),
    (
        "right with Interlingua",
        "the same replies, after Interlingua has corrected them; a server that refuses tools because it has no parser "
        "is asked as the gateway asks it",
    ),
    (
        "answered",
        "requests with a reply in the end that a client can read, of all requests (Query-Success-Rate of "
        "MiniMax-Provider-Verifier)",
    ),
    ("replies per attempt", "replies, of all attempts including retries (`success_rate` there)"),
    ("call rate", "replies whose finish reason is a call, of all requests (Finish-ToolCalls-Rate there)"),
    (
        "schema accuracy",
        "of the replies whose finish reason is a call, those with calls that all name an offered tool and fit its "
        "schema (`schema_accuracy` of K2-Vendor-Verifier, ToolCalls-Accuracy of MiniMax-Provider-Verifier; these count "
        "a call of a tool without a schema as invalid)",
    ),
    ("finish reason", "replies with a finish reason that matches their content, of all replies"),
    (
        "more than thinking",
        "requests whose reply is not thinking alone (1 − Error-Only-Reasoning-Rate of MiniMax-Provider-Verifier)",
    ),
    (
        "trigger precision, recall, F1",
        "TP: a call is expected, and the finish reason is one. FP: it is one, and none is expected. FN: one is "
        "expected, and it is none. Precision TP/(TP+FP), recall TP/(TP+FN), F1 their harmonic mean",
    ),
    (
        "trigger match",
        "(TP + TN) of all requests whose expectation is known; a reply that is cut by its token limit is no TN "
        "(ToolCalls-Match-Rate of MiniMax-Provider-Verifier)",
    ),
    (
        "reference precision, recall, F1",
        "the same, with the finish reason of a reference run (`--against`) instead of the expectation: `tool_call_f1` "
        "of K2-Vendor-Verifier, ToolCalls-Trigger Similarity of MiniMax-Provider-Verifier. A request without a reply "
        "calls no tool",
    ),
    (
        "language, no repetition, parameter order",
        "samples with `check_type`: no Cyrillic character; no three characters four times; a text that names the "
        "parameters of the tool in the order of the request (Language-Following-Success-Rate and "
        "Scenario-Check-Pass-Rate of MiniMax-Provider-Verifier)",
    ),
    ("prompt tokens", "samples of Kimi-Vendor-Verifier: the expected number, or up to three more"),
)
EVIDENCE = (
    (
        "what the model wrote",
        "the request again, whole: vLLM and SGLang with `return_token_ids` and `/detokenize`, llama.cpp with "
        "`verbose`, others with `logprobs`; an older vLLM gets the prompt of `/tokenize` at `/v1/completions`",
    ),
    ("whether streams fail each time", "if the whole reply is right: the stream, twice more"),
    (
        "whether the model sees the tools",
        "the prompt itself, or its tokens with and without the tools, by `/tokenize` or `usage`",
    ),
    ("whether the request is refused for its schema", "the same conversation with one plain tool"),
    (
        "whether tokens were lost",
        "the tokens that the server counts, compared with the delivered and the expected reply",
    ),
)


def verification_page() -> str:
    samples = builtin_samples()
    counts = Counter(sample.category for sample in samples)
    categories = ", ".join(f"`{category}` ({count})" for category, count in counts.items())
    requests = (
        f"The built-in set `{BUILTIN_SET_NAME}` has {len(samples)} conversations: {categories}. Each is sent as a "
        "stream and as a whole reply. Built-in requests have the temperature 0 and a limit of 4096 tokens, and are "
        "adapted to the profile of the upstream, as the gateway does it. Requests of a file are sent as they are, with "
        "their own settings; only `model`, `stream_options` and the options of the command line are added."
    )
    parsers = [
        (f"`{dialect}`", _parser_cell("vllm", dialect), _parser_cell("sglang", dialect))
        for dialect in sorted({name for names in TOOL_PARSERS.values() for name in names})
    ]
    faults = [(f"`{fault.name}`", fault.cause, fault.description) for fault in ENGINE_FAULTS.values()]
    return f"""# Verification

What `interlingua verify` measures, and how. [The guide](../guides/choose-a-provider.md) shows how to use it.

## Requests

{textwrap.fill(requests, 120, break_on_hyphens=False)}

A reply is judged as a plain client reads it: calls are joined by their index, nothing is corrected. White space around
an expected string does not count, and a call may have more arguments than expected if its schema allows them.

{_table(("failure", "meaning"), ((f"`{kind}`", meaning) for kind, meaning in FAILURE_KINDS.items()))}

The gravest failure of a reply, the first in this list, is attributed:

{_table(("cause", "meaning"), ((cause.replace("-", " "), meaning) for cause, meaning in CAUSES.items()))}

## Metrics

Every rate has the 95 % interval of Wilson. A request is one sample in one mode.
The stream and the whole reply of a sample are not independent, so the interval of both together is a little too narrow.

{_table(("metric", "definition"), METRICS)}

Requests of two runs are paired by a digest of messages, tools and tool choice. Two rates differ clearly if Newcombe's
interval of their difference excludes zero.

## Evidence

Failures whose cause the reply does not show need further requests; their tokens are counted separately.

{_table(("evidence", "how"), EVIDENCE)}

## Tool parsers

The flag `--tool-call-parser` that `doctor` and the card name for a dialect, and other parsers that read it:

{_table(("dialect", "vLLM", "SGLang"), parsers)}

## Scripted engines

`interlingua faults engine NAME` runs a model server with one of these faults. [How often they are attributed
right](../attribution.md):

{_table(("fault", "cause", "description"), faults)}
"""


def _table(columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [columns, ("---",) * len(columns), *rows]
    return (
        "\n".join(f"| {' | '.join(cells)} |" for cells in lines).replace("| --- |", "|---|").replace(" --- |", "---|")
    )


def _parser_cell(engine: str, dialect: str) -> str:
    return ", ".join(f"`{name}`" for name in fitting_parsers(engine, dialect)) or "–"
