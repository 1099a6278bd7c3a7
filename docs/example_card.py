"""Example cards of the guide docs/guides/choose-a-provider.md: `python -m docs.example_card`.

A scripted model with faults mixed in answers the requests of `interlingua verify`, without a socket. Its times are
simulated, so that the cards are the same on every machine. A test checks that they are up to date.
"""

from __future__ import annotations

import asyncio
import hashlib
import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from interlingua import __version__
from interlingua.dialects.registry import get_dialect
from interlingua.faults.engines import ENGINE_FAULTS, FaultMix
from interlingua.gateway.demo.planner import plan_reply
from interlingua.verification.card import Card, build_card
from interlingua.verification.card.comparison import compare_runs
from interlingua.verification.card.html_comparison import html_comparison
from interlingua.verification.card.html_page import card_page
from interlingua.verification.card.terminal_card import terminal_lines
from interlingua.verification.probing.engine_sender import EngineSender
from interlingua.verification.probing.request_writer import RequestSettings, RequestWriter
from interlingua.verification.recording import Arrival, Recording
from interlingua.verification.run.polite_sender import AdaptiveLimit, PoliteSender, RetryPolicy
from interlingua.verification.run.run_log import RunHeader, RunLog, StoredRun, read_run
from interlingua.verification.run.runner import Runner, plan_trials
from interlingua.verification.samples.answer_key import AnswerKey
from interlingua.verification.samples.builtin import BUILTIN_SET_NAME, builtin_samples

GUIDE = Path(__file__).parent / "guides" / "choose-a-provider.md"
CARD_FOLDER = Path(__file__).parent / "guides" / "cards"
CARD_START, CARD_END = "<!-- card: written by docs/example_card.py -->\n```text\n", "```\n<!-- end of the card -->"
DIALECT = "kimi_k2"
MODEL = "demo/kimi_k2"
FAULTS = (
    *("model-changes-values", "model-never-calls", "template-drops-tools", "parser-cuts-strings"),
    *("parser-in-thinking", "parser-first-call-only", "finish-stop", "stream-duplicates", "refuses-keywords"),
)
"""Faults of the first provider."""
OTHER_FAULTS = ("model-changes-values", "truncates-silently", "overloaded")
"""Faults of the second provider."""
CARD_WIDTH = 80


class SimulatedClock(EngineSender):
    """Sender whose replies take the time that a model of some speed would need."""

    def __init__(self, engine: FaultMix, first_seconds: float, tokens_per_second: float) -> None:
        super().__init__(engine)
        self._first_seconds = first_seconds
        self._tokens_per_second = tokens_per_second

    async def send(self, body: dict[str, Any], *, stream: bool, wire: str | None = None) -> Recording:
        recording = await super().send(body, stream=stream, wire=wire)
        jitter = 0.6 + hashlib.sha256(recording.body).digest()[0] / 255
        first = self._first_seconds * jitter
        total = first + len(recording.body) / (240 if stream else 12) / self._tokens_per_second
        size = len(recording.body)
        early = size // 4
        arrivals = (Arrival(early, first), Arrival(size - early, total)) if stream else (Arrival(size, total),)
        return msgspec.structs.replace(recording, arrivals=arrivals, seconds=total)


def make_run(url: str, faults: tuple[str, ...], share: float, first_seconds: float, speed: float) -> StoredRun:
    """Verify a scripted model with these faults."""
    dialect, samples = get_dialect(DIALECT), builtin_samples()
    answers = AnswerKey(samples, lambda body: plan_reply(body, dialect))
    engine = FaultMix(MODEL, dialect, answers, [ENGINE_FAULTS[name] for name in faults], share)
    settings = RequestSettings(temperature=0.0, max_tokens=4096)
    trials = plan_trials(samples, ("stream", "whole"))
    header = RunHeader(
        version=__version__,
        url=url,
        api="openai-chat",
        model=MODEL,
        dialect=DIALECT,
        engine="vllm",
        engine_version="0.24.0",
        set_name=BUILTIN_SET_NAME,
        set_digest="example",
        trials=len(trials),
        settings=settings,
    )

    async def run() -> StoredRun:
        sender = PoliteSender(
            SimulatedClock(engine, first_seconds, speed),
            AdaptiveLimit(1),
            RetryPolicy(attempts=2, first_delay_seconds=0.0),
        )
        with tempfile.TemporaryDirectory() as folder:
            log = RunLog(Path(folder, "run.jsonl"), header)
            writer = RequestWriter("openai-chat", MODEL, settings=settings)
            runner = Runner(sender, writer, "vllm", dialect, log)
            await runner.run(trials, parallel=1)
            log.add_tokens(runner.extra_tokens)
            log.close()
            return read_run(log.path)

    return asyncio.run(run())


def example_files() -> dict[Path, str]:
    """Return the text of each file that this script writes."""
    first = make_run("https://provider-a.example/v1", FAULTS, 0.3, 0.35, 120)
    second = make_run("https://provider-b.example/v1", OTHER_FAULTS, 0.2, 0.12, 300)
    cards = [build_card(run) for run in (first, second)]
    guide = GUIDE.read_text(encoding="utf-8")
    before, _, rest = guide.partition(CARD_START)
    _, _, after = rest.partition(CARD_END)
    return {
        GUIDE: f"{before}{CARD_START}{terminal_text(cards[0])}{CARD_END}{after}",
        CARD_FOLDER / "provider-a.html": card_page(cards[0]),
        CARD_FOLDER / "comparison.html": html_comparison(compare_runs(cards[0], cards[1], first, second)),
    }


def terminal_text(card: Card) -> str:
    return "".join(f"{line.rstrip()}\n" for line in terminal_lines(card, CARD_WIDTH, lambda text, _: text))


def main() -> None:
    for path, text in example_files().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        sys.stderr.write(f"written: {path}\n")


if __name__ == "__main__":
    main()
