"""Attribution of failures whose true causes are known: scripted engines, and the fault server.

python -m bench.attribution             a third of the samples, some minutes; writes docs/attribution.md
python -m bench.attribution --every 1   all samples; prints the page instead

Each scripted engine has one fault. Samples of `interlingua verify` are sent to it, as a stream and whole, and each
failure is attributed. The fault server gets one request for each scenario of its upstream faults.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from interlingua.dialects.registry import get_dialect
from interlingua.faults.apis import CHAT_PATH, tools_field
from interlingua.faults.catalog import SCENARIOS, scripts_for
from interlingua.faults.checker.scenario import RUN_SEPARATOR, Scenario
from interlingua.faults.engines import ENGINE_FAULTS, EngineFault, EngineKind, ScriptedEngine
from interlingua.faults.upstream.server import UpstreamServer
from interlingua.gateway.routing.routes import Routes
from interlingua.gateway.settings.schema import Settings, Upstream
from interlingua.verification.attribution import Attribution
from interlingua.verification.attribution.token_counts import measure_token_ratio, native_size
from interlingua.verification.card.formats import format_share
from interlingua.verification.judging.judge import judge
from interlingua.verification.judging.observation import observe
from interlingua.verification.probing.engine_sender import EngineSender
from interlingua.verification.probing.evidence_collector import EvidenceCollector
from interlingua.verification.probing.probe_client import ProbeClient, open_session
from interlingua.verification.probing.request_writer import RequestSettings, RequestWriter
from interlingua.verification.samples.answer_key import AnswerKey
from interlingua.verification.samples.builtin import builtin_samples
from interlingua.verification.samples.sample import Sample

PAGE = Path(__file__).resolve().parents[1] / "docs" / "attribution.md"
DIALECTS = ("kimi_k2", "hermes", "qwen3_coder", "deepseek_v32", "gemma4", "mistral_v11")
KINDS: tuple[EngineKind, ...] = ("vllm", "sglang", "llama.cpp", "provider")
UPSTREAM_ROWS = (*range(1, 18), 22, *range(25, 33))
"""Rows of the fault server that are faults of an upstream."""
SLOW_ROWS = (18, 31)
"""Rows with replies of many megabytes, which say nothing about attribution."""
SCENARIO_CAUSES = {
    "fault-10-400-json": "client-request",
    "fault-10-400-too-long": "client-request",
    "fault-10-401-json": "client-request",
    "fault-25-prefixed-name": "engine-parser",
    "fault-27-told-twice-kimi-k2": "engine-parser",
    "fault-29-call-without-tools-kimi-k2": "engine-parser",
    "fault-30-thinking-only": "model",
}
"""True causes of the scenarios; of all others: transport."""
TIMEOUT_SECONDS = 2.0
SAMPLE_STEP = 3
"""One sample in this number is used for the page."""


@dataclass
class Tally:
    """Failures of one fault, by the cause that they were attributed to."""

    cause: str
    found: Counter[str] = field(default_factory=Counter)

    @property
    def failures(self) -> int:
        return self.found.total()

    @property
    def right(self) -> int:
        return self.found[self.cause]


# ── scripted engines ──────────────────────────────────────────────────────────────────────────────────────────────────


async def attribute_fault(
    fault: EngineFault, dialect_name: str, kind: EngineKind, samples: Sequence[Sample], answers: AnswerKey
) -> list[Attribution]:
    """Send the samples to an engine with this fault, and attribute the failures as a run does."""
    dialect = get_dialect(dialect_name)
    sender = EngineSender(ScriptedEngine("m", dialect, answers, fault, kind))
    writer = RequestWriter("openai-chat", "m", settings=RequestSettings(max_tokens=4096))
    collector = EvidenceCollector(sender, writer, "" if kind == "provider" else kind, dialect)
    failed, right = [], []
    for sample in samples:
        for stream in (True, False):
            recording = await sender.send(writer.write(sample, stream=stream), stream=stream)
            observation = observe(recording, sample, dialect)
            judgement = judge(observation, sample)
            if judgement.is_right:
                right.append((observation.reply.output_tokens, native_size(observation.reply, dialect)))
            else:
                failed.append((sample, observation, judgement))
    ratio = measure_token_ratio(right)
    return [await collector.attribute(*failure, ratio) for failure in failed]


def measure_engines(
    kinds: Iterable[EngineKind], dialects: Sequence[str], samples: Sequence[Sample]
) -> dict[EngineKind, dict[str, Tally]]:
    """Return the attributions of each fault, for each kind of engine."""
    answers = AnswerKey(builtin_samples())
    tallies: dict[EngineKind, dict[str, Tally]] = {}
    for kind in kinds:
        tallies[kind] = {name: Tally(fault.cause) for name, fault in ENGINE_FAULTS.items()}
        for dialect in dialects:
            for name, fault in ENGINE_FAULTS.items():
                attributions = asyncio.run(attribute_fault(fault, dialect, kind, samples, answers))
                tallies[kind][name].found.update(attribution.cause for attribution in attributions)
            print(f"{kind}, {dialect}: {share(tallies[kind].values())}", file=sys.stderr)
    return tallies


# ── fault server ──────────────────────────────────────────────────────────────────────────────────────────────────────


def upstream_scenarios() -> list[Scenario]:
    return [
        scenario
        for scenario in SCENARIOS
        if scenario.row in UPSTREAM_ROWS and scenario.row not in SLOW_ROWS and CHAT_PATH in scenario.apis
    ]


async def measure_fault_server(scenarios: Iterable[Scenario]) -> dict[str, Tally]:
    """Send a request to the fault server for each scenario, and attribute the failures."""
    sample = Sample(
        id="s", request={"messages": [{"role": "user", "content": "hi"}], "tools": tools_field(CHAT_PATH)["tools"]}
    )
    dialect = get_dialect("kimi_k2")
    server = UpstreamServer(script_source=scripts_for)
    routes = Routes(Settings(upstreams={"faults": Upstream(url=server.url)}))
    tallies: dict[str, Tally] = {}
    try:
        async with open_session() as session:
            for scenario in scenarios:
                tally = tallies[scenario.name] = Tally(SCENARIO_CAUSES.get(scenario.name, "transport"))
                for stream in (True,) if scenario.streams_only else (True, False):
                    route = routes.upstream_route("faults", f"{scenario.name}{RUN_SEPARATOR}{stream}")
                    client = ProbeClient(session, route, TIMEOUT_SECONDS)
                    writer = RequestWriter("openai-chat", route.model)
                    recording = await client.send(writer.write(sample, stream=stream), stream=stream)
                    observation = observe(recording, sample, dialect)
                    judgement = judge(observation, sample)
                    if not judgement.is_right:
                        collector = EvidenceCollector(client, writer, "", dialect)
                        tally.found[(await collector.attribute(sample, observation, judgement)).cause] += 1
    finally:
        server.stop()
    return tallies


# ── page ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def share(tallies: Iterable[Tally]) -> str:
    """Return the share of failures that are attributed right, with the counts."""
    known = list(tallies)
    right, failures = sum(tally.right for tally in known), sum(tally.failures for tally in known)
    return f"{right:,} of {failures:,} ({format_share(right / max(failures, 1))})"


def page(
    engines: dict[EngineKind, dict[str, Tally]], server: dict[str, Tally], samples: int, dialects: Sequence[str]
) -> str:
    totals = "\n".join(f"| {_kind_title(kind)} | {share(tallies.values())} |" for kind, tallies in engines.items())
    header = " | ".join(map(_kind_title, engines))
    rows = "\n".join(
        f"| `{name}` | {fault.cause} | {fault.description} | "
        + " | ".join(_cell(tallies[name]) for tallies in engines.values())
        + " |"
        for name, fault in ENGINE_FAULTS.items()
    )
    scenario_rows = "\n".join(
        f"| `{name}` | {tally.cause} | {_cell(tally)} |" for name, tally in server.items() if tally.failures
    )
    harmless = ", ".join(f"`{name}`" for name, tally in server.items() if not tally.failures)
    return f"""# Who lost the call: attributions whose true causes are known

```console
$ python -m bench.attribution    # some minutes; writes this page
```

`interlingua verify` and `interlingua doctor` attribute each failure to the model, the chat template, the server's tool
parser, the transport or the request. Here the true cause is known. Each *scripted engine* is a model server with one
fault (`interlingua faults engine --list`). It gets {samples} samples of `verify`, as a stream and whole, with models
that write the dialects {", ".join(f"`{name}`" for name in dialects)}.
Without a fault, every reply is right.

| server | attributed right |
|---|---|
{totals}
| fault server | {share(server.values())} |

vLLM and SGLang return the ids of the tokens that the model wrote, and llama.cpp its text, so that a repeated request
shows who changed it. A provider shows nothing but its API. There the reply itself, the counted tokens and a comparison
of streams with whole replies have to do, and the card says *likely* instead of *certain*.

The rules were written with these faults in view. Faults that nobody has thought of will be attributed less well.

## Scripted engines

Each cell: failures that are attributed right, of all failures; then the wrong causes.

| fault | true cause | description | {header} |
|---|---|---|{"---|" * len(engines)}
{rows}

## Fault server

One request for each upstream fault of `interlingua faults serve`, as a stream and, if the fault can occur there, whole.

| scenario | true cause | attributed right |
|---|---|---|
{scenario_rows}

These cause no failure that a client notices: {harmless}.
"""


def _kind_title(kind: str) -> str:
    return {"vllm": "vLLM", "sglang": "SGLang", "provider": "provider"}.get(kind, kind)


def _cell(tally: Tally) -> str:
    wrong = ", ".join(f"{cause} {count}" for cause, count in tally.found.most_common() if cause != tally.cause)
    return f"{tally.right} of {tally.failures}{f'; {wrong}' if wrong else ''}"


def select_samples(step: int) -> list[Sample]:
    """Return each Nth sample, and those that force a call: no other sample shows a server that refuses this.

    With N = 3, the sample whose tool name some servers refuse is among them.
    """
    return [
        sample
        for number, sample in enumerate(builtin_samples(), 1)
        if number % step == 0 or sample.request.get("tool_choice", "auto") not in ("auto", "none")
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=0, metavar="N", help="use each Nth sample, and print the page")
    args = parser.parse_args()
    step = args.every or SAMPLE_STEP
    samples = select_samples(step)
    server = asyncio.run(measure_fault_server(upstream_scenarios()))
    text = page(measure_engines(KINDS, DIALECTS, samples), server, len(samples), DIALECTS)
    if not args.every:
        PAGE.write_text(text, encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
