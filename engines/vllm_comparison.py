"""Comparison of the vLLM plugin with vLLM's own parsers, on the texts of the fixtures.

`python -m engines.vllm_comparison` writes `docs/integrations/vllm-parsers.md`. Each text is parsed whole, and streamed
token by token, some tokens at a time and all at once. The table shows where all of them agree, and in how many texts
the calls are those that `il.parse` finds.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import interlingua as il
from engines.environments import ROOT
from engines.judge import Judge
from engines.releases import RELEASES, release_path
from tests.support.harness import FIXTURES, Case, find_dialect, load_cases, tool

__all__ = [
    "BUILT_IN_PARSERS",
    "OURS",
    "Outcome",
    "compare",
    "dialect_names",
    "offered_tools",
    "open_judge",
    "read_case",
]

OURS = ("interlingua", "interlingua")
BUILT_IN_PARSERS: dict[str, tuple[str, str | None]] = {
    "apertus": ("apertus", None),
    "cohere": ("cohere_command3", "cohere_command3"),
    "deepseek_v3": ("deepseek_v3", "deepseek_r1"),
    "deepseek_v31": ("deepseek_v31", "deepseek_v3"),
    "deepseek_v32": ("deepseek_v32", "deepseek_v3"),
    "deepseek_v4": ("deepseek_v4", "deepseek_v4"),
    "deepseek_v41": ("deepseek_v41", "deepseek_v41"),
    "dots": ("dots", None),
    "ernie45": ("ernie45", "ernie45"),
    "functiongemma": ("functiongemma", None),
    "gemma4": ("gemma4", "gemma4"),
    "gigachat3": ("gigachat3", None),
    "glm45": ("glm45", "glm45"),
    "glm47": ("glm47", "glm47"),
    "granite3": ("granite", "granite"),
    "granite_20b_fc": ("granite-20b-fc", None),
    "hermes": ("hermes", "qwen3"),
    "hy3": ("hy_v3", "hy_v3"),
    "hy4": ("hy_v4", "hy_v4"),
    "inkling": ("inkling", "inkling"),
    "internlm2": ("internlm", None),
    "k2_horizon": ("k2_horizon", "k2_horizon"),
    "kimi_k2": ("kimi_k2", "kimi_k2"),
    "kimi_k3": ("kimi_k3", "kimi_k3"),
    "lfm2": ("lfm2", None),
    "llama3_json": ("llama3_json", None),
    "longcat": ("longcat", None),
    "minicpm5": ("minicpm5", None),
    "minimax_m2": ("minimax_m2", "minimax_m2"),
    "minimax_m3": ("minimax_m3", "minimax_m3"),
    "mistral_v11": ("mistral", "mistral"),
    "mistral_v13": ("mistral", "mistral"),
    "mistral_v3": ("mistral", "mistral"),
    "muse": ("muse_glimmer", "muse_glimmer"),
    "olmo3": ("olmo3", "olmo3"),
    "phi4": ("phi4_mini_json", None),
    "plamo3": ("plamo3", "plamo3"),
    "pythonic": ("pythonic", None),
    "qwen3_coder": ("qwen3_coder", "qwen3"),
    "seed_oss": ("seed_oss", "seed_oss"),
    "step3": ("step3", "step3"),
    "tool_calls_array": ("jamba", None),
    "xlam": ("xlam", None),
}
"""vLLM's own tool parser and reasoning parser for a dialect."""
PAGE = ROOT / "docs" / "integrations" / "vllm-parsers.md"
TOKEN_LIKE = re.compile(r"<[^<>\s]{2,40}>|\[/?[A-Z_]{4,20}\]")
"""Markers that have a token of their own in the models' vocabularies."""
TOKEN_SUFFIX = re.compile(r":[^<>]+")
STREAMED = ("token", "several", "once")


@dataclass
class Outcome:
    """Replies of one pair of parsers for one text."""

    case: Case
    whole: dict[str, Any]
    streamed: dict[str, dict[str, Any]]
    expected: dict[str, Any]

    @property
    def agrees(self) -> bool:
        """True if the streamed replies are the whole reply."""
        return "error" not in self.whole and all(reply == self.whole for reply in self.streamed.values())

    @property
    def has_expected_calls(self) -> bool:
        """True if whole and streamed calls are those of `il.parse`; arguments are compared as JSON."""
        replies = (self.whole, *self.streamed.values())
        return all(_calls(reply) == _calls(self.expected) for reply in replies)

    def __str__(self) -> str:
        return f"{self.case}: {self.case.full_text!r}\n  whole    {self.whole}\n  streamed {self.streamed}"


def dialect_names() -> list[str]:
    """Return the dialects that have fixtures, without those of users: an engine knows dialects by name."""
    known = {dialect.name for dialect in il.list_dialects()}
    return sorted(path.stem for path in FIXTURES.glob("*.toml") if path.stem in known)


def open_judge(version: str) -> Judge:
    """Start a process with a release of vLLM.

    Raises:
        NotInstalled: `make engines` has not installed it.
    """
    release = release_path("vllm", version)
    judge = Judge("vllm", "vllm_parsers.py")
    judge.ask(do="load", release=str(release))
    return judge


def compare(judge: Judge, dialect: str, parsers: tuple[str, str | None]) -> Iterator[Outcome]:
    """Read all texts of a dialect with these parsers."""
    cases = load_cases(dialect)
    samples = [case.full_text for case in cases]
    for case in cases:
        yield read_case(judge, case, parsers if parsers == OURS else _without_idle_parser(case, parsers), samples)


def read_case(judge: Judge, case: Case, parsers: tuple[str, str | None], samples: list[str]) -> Outcome:
    tools = offered_tools(case)
    replies = judge.ask(
        do="read",
        tool_parser=parsers[0],
        reasoning_parser=parsers[1],
        dialect=case.dialect,
        markers=_tokens(case.dialect, samples),
        samples=samples,
        text=case.full_text,
        tools=tools,
        prefill=case.prefill,
    )
    replies = {name: _without_blank_content(reply) for name, reply in replies.items()}
    reply = il.parse(case.full_text, find_dialect(case.dialect), tools, case.prefill)
    expected = {
        "reasoning": reply.reasoning,
        "content": reply.text,
        "calls": [[call.name, call.arguments] for call in reply.calls],
    }
    return Outcome(case, replies["whole"], {name: replies[name] for name in STREAMED}, _without_blank_content(expected))


def offered_tools(case: Case) -> list[dict[str, Any]]:
    """Return the tools of the row. Where they are not known, those that it calls: a server always knows the tools."""
    if case.tools is not None:
        return case.offered_tools or []
    called = dict.fromkeys(part["call"] for part in case.parts if "call" in part)
    return [tool(name) for name in called] or [tool("unused")]


def _without_idle_parser(case: Case, parsers: tuple[str, str | None]) -> tuple[str, str | None]:
    """Return the parsers without the reasoning parser if nothing in the row is thinking: some take any text for it."""
    dialect, text = find_dialect(case.dialect), case.prefill + case.full_text
    thinks = any(marker in text for marker in (*dialect.thinking_openers, *dialect.thinking_closers))
    return parsers if thinks else (parsers[0], None)


def _tokens(dialect: str, samples: list[str]) -> list[str]:
    """Return the markers with a token of their own, also with the suffix that some models have in theirs."""
    markers = {marker for marker in find_dialect(dialect).markers if TOKEN_LIKE.fullmatch(marker)}
    written = {token for text in samples for token in TOKEN_LIKE.findall(text)}
    return sorted(markers | {token for token in written if TOKEN_SUFFIX.sub("", token) in markers})


def _without_blank_content(reply: dict[str, Any]) -> dict[str, Any]:
    """Return the reply without content that is only white space: vLLM drops it in whole replies."""
    if "content" in reply and not reply["content"].strip():
        return {**reply, "content": ""}
    return reply


def _calls(reply: dict[str, Any]) -> Any:
    return [(name, _arguments(arguments)) for name, arguments in reply["calls"]] if "calls" in reply else None


def _arguments(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


@dataclass
class Counts:
    """Numbers of texts, for one pair of parsers."""

    texts: int = 0
    well_formed: int = 0
    agree: int = 0
    calls: int = 0
    well_formed_calls: int = 0

    def add(self, outcome: Outcome) -> None:
        is_well_formed = not outcome.case.findings
        self.texts += 1
        self.well_formed += is_well_formed
        self.agree += outcome.agrees
        self.calls += outcome.has_expected_calls
        self.well_formed_calls += is_well_formed and outcome.has_expected_calls

    def cells_with_texts(self) -> str:
        return f"{self.texts} | {self.cells()}"

    def cells(self) -> str:
        return f"{self.agree} | {self.calls} | {self.well_formed_calls} of {self.well_formed} |"


def _table(version: str) -> Iterator[str]:
    yield f"## vLLM {version}\n"
    counted = "s = w | calls | well-formed"
    yield f"| dialect | texts | `interlingua`: {counted} | vLLM's parsers | {counted} |"
    yield "|---|---|---|---|---|---|---|---|---|"
    all_ours, all_theirs = Counts(), Counts()
    with open_judge(version) as judge:
        for dialect in dialect_names():
            row = f"| `{dialect}` | {_count(judge, dialect, OURS, all_ours).cells_with_texts()}"
            built_in = _built_in_parsers(judge, dialect)
            if built_in is not None:
                names = ", ".join(f"`{name}`" for name in built_in if name)
                row += f" {names} | {_count(judge, dialect, built_in, all_theirs).cells()}"
            else:
                row += " none | | | |"
            print(f"vLLM {version}: {row}", file=sys.stderr)
            yield row
    yield f"| all | {all_ours.cells_with_texts()} on {all_theirs.texts} texts | {all_theirs.cells()}\n"


def _built_in_parsers(judge: Judge, dialect: str) -> tuple[str, str | None] | None:
    """Return vLLM's parsers for a dialect; None if this release has none."""
    names = BUILT_IN_PARSERS.get(dialect)
    if names is None or not judge.ask(do="has_parsers", tool_parser=names[0], reasoning_parser=names[1]):
        return None
    return names


def _count(judge: Judge, dialect: str, parsers: tuple[str, str | None], total: Counts) -> Counts:
    counts = Counts()
    for outcome in compare(judge, dialect, parsers):
        counts.add(outcome)
        total.add(outcome)
        if parsers == OURS and not outcome.agrees:
            print(f"stream differs: {outcome}", file=sys.stderr)
    return counts


HEADER = """# Parsers inside vLLM, compared

`python -m engines.vllm_comparison` writes this page. It runs the parsers of each release of vLLM on the texts of
`tests/data/fixtures`, in the parser that vLLM's server composes of a tool parser and a reasoning parser. The tokenizer
is made of the same texts and has one token for each marker.

Each text is parsed whole, and streamed token by token, four tokens at a time and all at once.

- *s = w* (stream = whole) counts the texts in which all four replies have the same thinking, text and calls. Content
  that is only white space does not count, because vLLM drops it from whole replies.
- *calls* counts the texts in which all four have the calls that `il.parse` finds, with equal JSON as arguments.
- *well-formed* counts the same among the texts in which Interlingua finds nothing to correct. The others are malformed,
  most of them as models really wrote them. All were collected to test Interlingua, and not to test vLLM.

vLLM's reasoning parsers run only on texts with thinking, because some of them take any text for it. vLLM always reads
gpt-oss (`harmony`) with a parser of its own, which no plugin replaces: that row shows what the plugin would do.

The numbers of vLLM's parsers for `hy4` vary by a few texts from run to run. The vocabulary here has the markers of Hy3
and Hy4 with and without a suffix, as their fixtures do; that of a model has one of both. Ignore these two rows.
"""


def main() -> None:
    sections = [line for version in RELEASES["vllm"] for line in _table(version)]
    PAGE.write_text("\n".join([HEADER, *sections]), encoding="utf-8")


if __name__ == "__main__":
    main()
