"""Runs real clients against the gateway, and prints what came of it: the table on standard output, the rest beside it.

    python -m e2e                                      all clients, APIs and dialects
    python -m e2e --only claude,codex --models kimi_k2
    python -m e2e --list
    python -m e2e --write                              and docs/clients.md says what came of it

Clients are installed into .e2e, from the registries that npm and pip are set to; after that nothing is asked but
loopback. Needs npm for most clients.
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

from e2e import gateway
from e2e.clients import CLIENTS
from e2e.install import CannotInstall, installed
from e2e.run import Errand, Outcome, run
from e2e.table import page, table
from interlingua.dialects.registry import dialects

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".e2e"
PAGE = ROOT / "docs" / "clients.md"
MODELS = ("kimi_k2", "qwen3_coder", "deepseek_v4", "hermes", "harmony", "glm47")


def main(argv: Sequence[str] | None = None) -> int:
    parser = _parser()
    args = parser.parse_args(argv)
    errands = [errand for errand in _errands(args.models) if _is_chosen(errand, args)]
    if not errands:
        parser.error(f"{', '.join(args.only)} cannot be run with {', '.join(args.apis)}: see --list")
    if args.list:
        for errand in errands:
            print(f"{errand.client.name} {errand.client.version} {errand.api} {errand.model}")
        return 0
    try:
        unable = installed(FOLDER, list({errand.client.name: errand.client for errand in errands}.values()))
    except CannotInstall as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    started = time.monotonic()
    outcomes = _run_all(errands, unable, args.jobs, args.keep)
    seconds = time.monotonic() - started
    print(table(outcomes))
    if args.write:
        args.write.write_text(
            page(outcomes, len(_errands(MODELS)), datetime.now(UTC).date(), seconds), encoding="utf-8"
        )
    red = [outcome for outcome in outcomes if outcome.why]
    _tell(f"{len(outcomes) - len(red)} of {len(outcomes)} are green, in {seconds:.0f} s")
    return 1 if red else 0


def _errands(models: Sequence[str]) -> list[Errand]:
    """All that there are with these models."""
    return [
        Errand(client, api, f"demo/{model}") for client in CLIENTS.values() for api in client.apis for model in models
    ]


def _is_chosen(errand: Errand, args: argparse.Namespace) -> bool:
    return (not args.only or errand.client.name in args.only) and (not args.apis or errand.api in args.apis)


def _run_all(errands: list[Errand], unable: Mapping[str, str], jobs: int, keep: bool) -> list[Outcome]:
    """Clients work far from this repository: some look for one around them, and for what it says to agents."""
    kept = FOLDER / "runs"
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)

    def one(errand: Errand) -> Outcome:
        if why := unable.get(errand.client.name):
            return Outcome(errand, 0.0, why)
        name = f"{errand.client.name}-{errand.api}-{errand.model.rpartition('/')[2]}"
        outcome = run(errand, running, FOLDER, folder / name)
        said = f"failed: {outcome.why}" if outcome.why else "well"
        _tell(f"{errand.client.name} {errand.api} {errand.model}: {said} ({outcome.seconds:.1f} s)")
        if keep or outcome.why:
            shutil.move(folder / name, kept / name)
        else:
            shutil.rmtree(folder / name, ignore_errors=True)
        return outcome

    with tempfile.TemporaryDirectory(prefix="e2e-", ignore_cleanup_errors=True) as place:
        folder = Path(place)
        with gateway.running(kept) as running, ThreadPoolExecutor(jobs) as pool:
            return list(pool.map(one, errands))


def _tell(text: str) -> None:
    print(f"e2e: {text}", file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    def names(known: Sequence[str]) -> Callable[[str], list[str]]:
        def read(text: str) -> list[str]:
            chosen = [name.strip() for name in text.split(",")]
            for name in chosen:
                if name not in known:
                    raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(known)}")
            return chosen

        return read

    parser = argparse.ArgumentParser(
        prog="python -m e2e", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    apis = list(dict.fromkeys(api for client in CLIENTS.values() for api in client.apis))
    add = parser.add_argument
    add("--only", type=names(list(CLIENTS)), default=[], metavar="NAMES", help="these clients: claude,codex")
    add(
        "--models",
        type=names([dialect.name for dialect in dialects()]),
        default=MODELS,
        metavar="NAMES",
        help="these dialects",
    )
    add("--apis", type=names(apis), default=[], metavar="NAMES", help="these APIs: openai-chat,anthropic-messages")
    add("--jobs", type=int, default=2, metavar="N", help="how many run at once; default: 2")
    add("--list", action="store_true", help="say what would be run")
    add("--keep", action="store_true", help="keep the folders of runs that went well, too, in .e2e/runs")
    add("--write", type=Path, nargs="?", const=PAGE, metavar="FILE", help="write the page; default: docs/clients.md")
    return parser


if __name__ == "__main__":
    sys.exit(main())
