"""Run real clients against the gateway. Print the table to standard output, the progress to standard error.

    python -m e2e                                      all clients, APIs and dialects
    python -m e2e --only claude,codex --models kimi_k2
    python -m e2e --scenarios web-search,compaction    only these scenarios; `none`: only the usual task
    python -m e2e --minutes 20                         a part of it; `--resume` continues
    python -m e2e --list
    python -m e2e --write                              also write the results to docs/clients.md

Clients are installed into .e2e, from the registries that npm and pip are configured for; after that, only loopback is
used. Most clients need npm.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

from e2e.clients import CLIENTS
from e2e.gateway import GatewayPool
from e2e.install import CannotInstall, install_clients
from e2e.plain_servers import SERVERS
from e2e.results import Results
from e2e.run import Outcome, RunSpec, run
from e2e.scenarios import SCENARIO_RUNS
from e2e.table import describe_statuses, page, scenario_table, table
from interlingua.dialects.registry import list_dialects

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".e2e"
PAGE = ROOT / "docs" / "clients.md"
DIALECTS = ("kimi_k2", "qwen3_coder", "deepseek_v4", "hermes", "harmony", "glm47")
MODELS = (*DIALECTS, *SERVERS)
"""Names in `--models`: dialects of the demo model, and plain servers."""
USUAL = "none"
"""Name in `--scenarios` for the usual task alone."""


def main(argv: Sequence[str] | None = None) -> int:
    parser = _parser()
    args = parser.parse_args(argv)
    specs = [spec for spec in (*_run_specs(args.models), *SCENARIO_RUNS) if _is_chosen(spec, args)]
    if not specs:
        parser.error(f"no run of {', '.join(args.only)} with {', '.join(args.apis)}: see --list")
    if args.list:
        for spec in specs:
            print(f"{spec.client.name} {spec.client.version} {spec.api} {spec.model} {spec.scenario.name}".rstrip())
        return 0
    try:
        unable = install_clients(FOLDER, list({spec.client.name: spec.client for spec in specs}.values()))
    except CannotInstall as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    results = Results(FOLDER / "results.jsonl", resume=args.resume)
    green = {outcome.spec.name for outcome in results.outcomes(specs) if not outcome.why}
    _run_all(_in_order([spec for spec in specs if spec.name not in green]), unable, results, args)
    outcomes = results.outcomes(specs)
    print(table(outcomes))
    print(scenario_table(outcomes))
    print(f"\n{describe_statuses(outcomes, results.refusals)}")
    if args.write:
        whole = len(_run_specs(MODELS)) + len(SCENARIO_RUNS)
        text = page(outcomes, results.refusals, whole, datetime.now(UTC).date(), results.seconds)
        args.write.write_text(text, encoding="utf-8")
    red = [outcome for outcome in outcomes if outcome.why]
    left = len(specs) - len(outcomes)
    _log(f"{len(outcomes) - len(red)} of {len(outcomes)} runs are green, in {results.seconds:.0f} s")
    if left:
        _log(f"{left} runs are left: --resume continues")
    return 1 if red or left or results.refusals else 0


def _run_specs(models: Sequence[str]) -> list[RunSpec]:
    """Return all runs of the usual task with these dialects of the demo model and plain servers."""
    targets = [(SERVERS[name].model, name) if name in SERVERS else (f"demo/{name}", "") for name in models]
    return [
        RunSpec(client, api, model, server)
        for client in CLIENTS.values()
        for api in client.apis
        for model, server in targets
    ]


def _is_chosen(spec: RunSpec, args: argparse.Namespace) -> bool:
    scenario = spec.scenario.name or USUAL
    if args.scenarios:
        is_wanted = scenario in args.scenarios
    else:  # a choice of models is about the usual task
        is_wanted = scenario == USUAL or args.models is MODELS
    return is_wanted and (not args.only or spec.client.name in args.only) and (not args.apis or spec.api in args.apis)


def _in_order(specs: list[RunSpec]) -> list[RunSpec]:
    """Return the runs model by model, those of plain servers first, so that a part of the test has whole columns."""
    models = list(dict.fromkeys(spec.model for spec in specs))
    return sorted(specs, key=lambda spec: (not spec.scenario.name, not spec.server, models.index(spec.model)))


def _run_all(specs: list[RunSpec], unable: Mapping[str, str], results: Results, args: argparse.Namespace) -> None:
    """Run all clients outside this repository: some search for a repository and its instructions for agents."""
    kept = FOLDER / "runs"
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)

    started = time.monotonic()

    def run_one(spec: RunSpec) -> None:
        if args.minutes and time.monotonic() - started > 60 * args.minutes:
            return
        name = spec.name
        if why := unable.get(spec.client.name):
            results.add(Outcome(spec, 0.0, why))
            return
        outcome = run(spec, pool.gateway(spec.server, spec.scenario.settings), FOLDER, folder / name)
        results.add(outcome)
        result = f"failed: {outcome.why}" if outcome.why else "passed"
        _log(f"{name}: {result} ({outcome.seconds:.1f} s)")
        if args.keep or outcome.why:
            shutil.move(folder / name, kept / name)
        else:
            shutil.rmtree(folder / name, ignore_errors=True)

    with tempfile.TemporaryDirectory(prefix="e2e-", ignore_cleanup_errors=True) as place:
        folder = Path(place)
        with GatewayPool(kept) as pool:
            with ThreadPoolExecutor(args.jobs) as threads:
                list(threads.map(run_one, specs))
            results.add_part(time.monotonic() - started, pool.count_refusals())


def _log(text: str) -> None:
    print(f"e2e: {text}", file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    def names(known: Sequence[str]) -> Callable[[str], list[str]]:
        def read(text: str) -> list[str]:
            chosen = [name.strip() for name in text.split(",")]
            for name in chosen:
                if name not in known:
                    raise argparse.ArgumentTypeError(f"{name!r} is unknown; known: {', '.join(known)}")
            return chosen

        return read

    parser = argparse.ArgumentParser(
        prog="python -m e2e", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    apis = list(dict.fromkeys(api for client in CLIENTS.values() for api in client.apis))
    add = parser.add_argument
    add("--only", type=names(list(CLIENTS)), default=[], metavar="NAMES", help="only these clients: claude,codex")
    add(
        "--models",
        type=names([*(dialect.name for dialect in list_dialects()), *SERVERS]),
        default=MODELS,
        metavar="NAMES",
        help=f"only these dialects, or servers that are started without any option: {', '.join(SERVERS)}",
    )
    scenarios = list(dict.fromkeys(spec.scenario.name for spec in SCENARIO_RUNS))
    add(
        "--scenarios",
        type=names([USUAL, *scenarios]),
        default=[],
        metavar="NAMES",
        help=f"only these: {', '.join(scenarios)}; `{USUAL}`: the usual task",
    )
    add("--apis", type=names(apis), default=[], metavar="NAMES", help="only these APIs: openai-chat,anthropic-messages")
    add("--jobs", type=int, default=2, metavar="N", help="number of clients that run at once; default: 2")
    add("--minutes", type=float, default=0, metavar="N", help="start no run after N minutes; --resume continues")
    add("--resume", action="store_true", help="do not repeat the green runs of the last test")
    add("--list", action="store_true", help="list the runs without starting them")
    add("--keep", action="store_true", help="also keep the folders of successful runs, in .e2e/runs")
    add("--write", type=Path, nargs="?", const=PAGE, metavar="FILE", help="write the page; default: docs/clients.md")
    return parser


if __name__ == "__main__":
    sys.exit(main())
