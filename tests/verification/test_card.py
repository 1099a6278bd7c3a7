"""Cards: the same numbers in all formats, safe HTML, and comparisons."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import msgspec
import pytest

from interlingua.dialects.registry import list_dialects
from interlingua.verification.attribution import CAUSES, Attribution
from interlingua.verification.card import Card, build_card
from interlingua.verification.card.advice import advise
from interlingua.verification.card.card import LatencyCurve
from interlingua.verification.card.comparison import compare_runs, is_clear_difference
from interlingua.verification.card.formats import format_seconds, format_share, format_tokens
from interlingua.verification.card.html_comparison import html_comparison
from interlingua.verification.card.html_elements import Html, element
from interlingua.verification.card.html_page import card_page
from interlingua.verification.card.json_card import json_card, json_comparison
from interlingua.verification.card.markdown_card import markdown_card
from interlingua.verification.card.markdown_comparison import markdown_comparison
from interlingua.verification.card.svg_plots import latency_plot
from interlingua.verification.card.terminal_card import terminal_lines
from interlingua.verification.card.terminal_comparison import terminal_comparison
from interlingua.verification.engine_flags import TOOL_PARSERS, parser_flags
from interlingua.verification.judging.failure import Failure
from interlingua.verification.probing.server_facts import Price
from interlingua.verification.run.cost import TokenCount
from interlingua.verification.run.metrics import Rate, TriggerScore
from interlingua.verification.run.reference import Reference
from interlingua.verification.run.run_log import RunHeader, StoredRun
from interlingua.verification.run.trial_result import TrialResult
from tests.support.browser import open_browser

HEADER = RunHeader(
    version="1.2",
    url="http://127.0.0.1:8000/v1",
    api="openai-chat",
    model="acme/<b>kimi</b>",
    dialect="kimi_k2",
    engine="vllm",
    engine_version="0.24.0",
    set_name="set",
    set_digest="d",
    trials=8,
    notes=("a note",),
)
VERDICT = "4 of 8 requests are right (22 to 78 % with 95 % confidence); with Interlingua 7."
ATTACK = "<script>alert(1)</script>\x1b[31m\u202e"


def result(number: int, cause: str = "", **fields: Any) -> TrialResult:
    defaults: dict[str, Any] = {"id": f"s-{number}", "category": "code", "digest": f"d{number}", "status": 200}
    defaults |= {"seconds": 0.5 + number, "first_content_seconds": 0.1 + number, "stream": number % 2 == 0}
    defaults |= {"input_tokens": 100, "output_tokens": 10, "expects": "calls", "wants_tools": not cause}
    if cause:
        failure = Failure("no-call", "expected: f")
        attribution = Attribution(cause=cause, kind="no-call", reasons=("because",), raw_text=ATTACK)  # type: ignore[arg-type]
        defaults |= {"failures": (failure,), "attribution": attribution, "excerpt": ATTACK, "prompt": "call f"}
    return TrialResult(**defaults | fields)


def run_of(*results: TrialResult, **fields: Any) -> StoredRun:
    return StoredRun(header=HEADER, results=results, extra_tokens=TokenCount(7, 0), **fields)


RUN = run_of(
    *(result(n) for n in range(4)),
    *(result(4 + n, cause) for n, cause in enumerate(("model", "engine-parser", "transport"))),
    result(7, "engine-parser", oddities=("no-index",), corrected_failures=("no-call",)),
)
CARD = build_card(RUN, price=Price(1.0, 2.0))


def terminal_text(card: Card, width: int = 80) -> str:
    return "\n".join(terminal_lines(card, width, lambda text, _: text))


def test_all_formats_have_the_same_numbers() -> None:
    texts = [terminal_text(CARD), markdown_card(CARD), card_page(CARD)]
    for text in texts:
        assert VERDICT in " ".join(text.split())
        assert "50.0 %" in text
        assert "87.5 %" in text
        assert "no-index" in text
        assert "a note" in text
        for cause in ("model", "engine parser", "transport"):
            assert cause in text
    data = json_card(CARD)
    assert data["rates"]["right"] == {"count": 4, "total": 8, "value": 0.5, "low": 0.215216, "high": 0.784784}
    causes = {cause["cause"]: cause["count"] for cause in data["causes"]}
    assert causes == {"model": 1, "engine-parser": 2, "transport": 1}
    assert data["triggers"]["expected"]["recall"] == 0.5
    assert data["tokens"] == {"prompt": 800, "reply": 80}
    assert data["dollars"] == pytest.approx((807 * 1.0 + 80 * 2.0) / 1e6)


LONG_RUN = run_of(*(result(number) for number in range(1000)))
LONG_CARD = build_card(
    LONG_RUN, Reference(name="official", called={(r.digest, r.stream): True for r in LONG_RUN.results})
)


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("card", [CARD, LONG_CARD], ids=["short", "long"])
def test_terminal_card_fits_the_width(card: Card, width: int) -> None:
    text = terminal_text(card, width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text, "nothing is shortened"


@pytest.mark.parametrize(("right", "bar"), [(0, "····"), (1, "━···"), (125, "━━━·"), (127, "━━━·"), (128, "━━━━")])
def test_bar_is_full_only_at_100_percent_and_empty_only_at_0(right: int, bar: str) -> None:
    run = run_of(*(result(n) for n in range(right)), *(result(n, "model") for n in range(128 - right)))
    line = next(line for line in terminal_text(build_card(run), 60).splitlines() if line.startswith("  right "))
    assert f" {bar} " in line


@pytest.mark.parametrize(
    ("cause", "engine", "remaining", "advice"),
    [
        (
            "engine-parser",
            "vllm",
            [(), ()],
            "--tool-call-parser kimi_k2, or put Interlingua in front of it, which makes all of",
        ),
        ("engine-parser", "vllm", [(), ("no-call",)], "which makes 1 of them right"),
        ("engine-parser", "vllm", [("no-call",)], "--tool-call-parser kimi_k2, or without a tool parser"),
        ("engine-parser", "llama.cpp", [("no-call",)], "with --jinja, or with --skip-chat-parsing: then Interlingua"),
        ("template", "llama.cpp", [("no-call",)], "repository (--chat-template-file)."),
        ("template", "", [("no-call",)], "Only the server's operator can correct the chat template"),
        ("engine-parser", "", [()], "Put Interlingua in front of it, which makes all of them right."),
        ("engine-parser", "", [("no-call",)], "Only the server can correct this"),
        ("transport", "", [(), ("no-call",)], "which makes 1 of them right. The others need a retry"),
        ("transport", "", [("no-call",)], "What is lost cannot be restored"),
    ],
)
def test_advice_promises_only_what_was_seen(cause: Any, engine: str, remaining: list[Any], advice: str) -> None:
    results = [result(n, cause, corrected_failures=kinds) for n, kinds in enumerate(remaining)]
    assert advice in advise(cause, results, msgspec.structs.replace(HEADER, engine=engine))


def test_partial_run_is_marked() -> None:
    card = build_card(run_of(result(0)))
    for text in (terminal_text(card), markdown_card(card), card_page(card)):
        assert "1 of 8 requests" in text
        assert "not complete" in text


def test_run_without_results_has_a_card() -> None:
    card = build_card(run_of())
    assert card.verdict == "No request was answered yet."
    for text in (terminal_text(card), markdown_card(card), card_page(card)):
        assert text


def test_reference_adds_its_scores() -> None:
    called = {(entry.digest, entry.stream): True for entry in RUN.results}
    card = build_card(RUN, Reference(name="official", called=called))
    assert card.metrics.reference_triggers is not None
    assert card.metrics.reference_triggers.f1 == pytest.approx(2 / 3)
    for text in (terminal_text(card), markdown_card(card), card_page(card)):
        assert "reference F1" in text
        assert "official" in text


class PageReader(HTMLParser):
    """Collects the elements of a page, and fails if they do not nest."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self._open: list[str] = []
        self.urls: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.urls += [value or "" for name, value in attrs if name in ("src", "href", "xlink:href")]
        if tag != "meta":
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def close(self) -> None:
        super().close()
        assert self._open == []


@pytest.mark.parametrize(
    "page", [card_page(CARD), html_comparison(compare_runs(CARD, CARD, RUN, RUN))], ids=["card", "comparison"]
)
def test_page_is_self_contained_and_safe(page: str) -> None:
    reader = PageReader()
    reader.feed(page)
    reader.close()
    assert not {"script", "img", "iframe", "link", "object"} & set(reader.tags)
    assert reader.urls == []
    assert "svg" in reader.tags
    assert "default-src 'none'" in page.replace("&#x27;", "'")
    assert "<script>" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "acme/<b>" not in page
    assert not re.search(r"https?://(?!127\.0\.0\.1)", page.replace("http://www.w3.org", ""))


@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("page_text", [card_page(LONG_CARD), html_comparison(compare_runs(CARD, CARD, RUN, RUN))])
def test_page_fits_phones_and_screens(page_text: str, width: int) -> None:
    """Nothing is wider than the page, and the values of two runs stand side by side."""
    with open_browser() as browser:
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.set_content(page_text)
        assert page.evaluate("document.documentElement.scrollWidth") == width
        tops = page.evaluate(
            "[...document.querySelectorAll('.rates tbody tr')].map("
            "row => [...row.querySelectorAll('.value-a, .value-b')].map(cell => cell.getBoundingClientRect().top))"
        )
        assert tops
        assert all(len(set(row)) <= 1 for row in tops)


def test_raw_text_is_one_click_away() -> None:
    page = card_page(CARD)
    for title in ("What the model wrote", "Response of the server", "Prompt"):
        assert title in page
    assert page.count('<details open=""><summary>s-') == 3, "the first example of each of the 3 groups opens with it"
    assert page.count("<details>") == 3 + 1


def test_elements_escape_text_and_attributes() -> None:
    assert element("p", "a < b", Html("<b>c</b>"), class_='x"y') == '<p class="x&quot;y">a &lt; b<b>c</b></p>'


def test_comparison_lists_the_requests_that_differ() -> None:
    other = run_of(*(result(n) for n in range(6)), result(6, "model"), result(9))
    comparison = compare_runs(CARD, build_card(other), RUN, other)
    assert comparison.both == 7
    assert comparison.only_a_right == ()
    assert comparison.only_b_right == ("s-4 (stream)", "s-5 (whole)")
    text = markdown_comparison(comparison)
    assert "Only B is right in 2 of 7 requests: s-4 (stream), s-5 (whole)." in text
    assert "| right | 50.0 % | 87.5 % | no |" in text
    assert "| trigger F1 | 66.7 % | 93.3 % |  |" in text


def test_comparison_says_how_alike_the_decisions_are() -> None:
    """A calls a tool in 4 of 8 requests; B, which has 7 of them, in all but one of these 7."""
    other = run_of(*(result(n) for n in range(6)), result(6, "model"), result(9))
    comparison = compare_runs(CARD, build_card(other), RUN, other)
    assert comparison.agreement == TriggerScore(4, 2, 0, 1)
    assert comparison.agreement_sentence == ("Both decide alike whether to call a tool in 5 of 7 requests (F1 80.0 %).")
    assert json_comparison(comparison)["agreement"]["f1"] == pytest.approx(0.8)


def test_comparison_of_different_requests_says_so() -> None:
    other = run_of(*(result(n) for n in range(6)))
    comparison = compare_runs(CARD, build_card(other), RUN, other)
    note = "The runs have 6 requests in common, of 8 and 6."
    lines = "\n".join(terminal_comparison(comparison, 120, lambda text, _: text))
    for text in (lines, markdown_comparison(comparison), html_comparison(comparison)):
        assert note in text
    same = compare_runs(CARD, CARD, RUN, RUN)
    assert same.overlap_note == ""


@pytest.mark.parametrize("width", [60, 80, 200])
def test_terminal_comparison_fits_the_width(width: int) -> None:
    other = run_of(*(result(n) for n in range(6)), result(6, "model"), result(9))
    lines = list(terminal_comparison(compare_runs(CARD, build_card(other), RUN, other), width, lambda text, _: text))
    assert max(map(len, lines)) <= width
    assert f"  {'right':24}    50.0 %    87.5 %" in lines
    assert f"  {'engine parser':24}         2         0" in lines


@pytest.mark.parametrize(
    ("a", "b", "clear"),
    [
        (Rate(90, 100), Rate(60, 100), True),
        (Rate(60, 100), Rate(90, 100), True),
        (Rate(90, 100), Rate(85, 100), False),
        (Rate(4, 8), Rate(7, 8), False),
        (Rate(0, 0), Rate(7, 8), False),
    ],
)
def test_clear_difference(a: Rate, b: Rate, clear: bool) -> None:
    assert is_clear_difference(a, b) is clear


@pytest.mark.parametrize(
    ("share", "text"),
    [(None, "–"), (0.0, "0 %"), (1.0, "100 %"), (0.9999, "99.9 %"), (0.0001, "0.1 %"), (0.123, "12.3 %")],
)
def test_shares_round_to_all_and_none_only_if_they_are(share: float | None, text: str) -> None:
    assert format_share(share) == text


@pytest.mark.parametrize("shortest", [0.0, 0.001, 0.04, 1.0])
@pytest.mark.parametrize("longest", [0.0005, 0.009, 0.0999, 0.51, 0.9, 1.0, 8.1, 99.0, 600.0])
def test_latency_axis_has_a_few_ticks(shortest: float, longest: float) -> None:
    curve = LatencyCurve("times", tuple(shortest + (max(shortest, longest) - shortest) * n / 20 for n in range(21)))
    plot = latency_plot([("a", curve)])
    assert 1 <= plot.count('text-anchor="middle"') <= 12
    assert "nan" not in plot


def test_times_and_tokens() -> None:
    assert [format_seconds(s) for s in (0.0123, 1.25, 300)] == ["12 ms", "1.2 s", "5 min"]
    assert [format_tokens(n) for n in (999, 12_345, 1_234_567)] == ["999", "12k", "1.2M"]


def test_tool_parsers_are_of_known_dialects() -> None:
    names = {dialect.name for dialect in list_dialects()}
    assert all(names >= parsers.keys() for parsers in TOOL_PARSERS.values())
    assert parser_flags("sglang", "kimi_k2") == "--tool-call-parser kimi_k2"
    assert parser_flags("llama.cpp", "kimi_k2") == "--jinja"
    assert parser_flags("ollama", "kimi_k2") == ""
    assert CAUSES
