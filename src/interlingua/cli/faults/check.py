"""`interlingua faults check`: what a gateway makes of each fault."""

from __future__ import annotations

import argparse
import os
from collections import Counter
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from interlingua.cli.common import console as io
from interlingua.cli.common.two_columns import Tone, paint_for
from interlingua.cli.faults.serve import PORT
from interlingua.errors import BadInput, UsageError
from interlingua.faults.apis import APIS, NAMES

if TYPE_CHECKING:
    from interlingua.faults.checker.trial import Target
    from interlingua.faults.runner import Judged

NAME = "check"
HELP = "plays a client of any gateway in front of the fault server, and judges it"
DESCRIPTION = """\
Asks a gateway for each fault, and says whether a client gets what it needs:
right, wrong, refused (the gateway takes no such request), or not judged (it
cannot be told from outside). One line each, with the reason.

The gateway's upstream must be a running `interlingua faults serve`, and it must
pass on the ids of models. Give it short timeouts, or this more --patience: of
one that still waits, it cannot be told what will come of that."""
EPILOG = """\
examples:
  interlingua faults check http://127.0.0.1:8484
  interlingua faults check http://127.0.0.1:8484 --api messages --only 4,5,9
  interlingua faults check http://127.0.0.1:4000 --key-env LITELLM_KEY --json
  interlingua faults check http://127.0.0.1:3456 --api messages --model-prefix faults,

exit status: 1 if anything is wrong, or if even fault-00-none does not come through
"""
_TONES = {
    "right": Tone.SENT,
    "wrong": Tone.FAILED,
    "refused": Tone.FINDING,
    "not judged": Tone.FAINT,
}
_SHORT = {api: name for name, api in NAMES.items()}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("url", metavar="URL", help="the gateway, with or without /v1")
    parser.add_argument(
        "--api", choices=[*NAMES, "all"], default="all", metavar="API", help="chat, messages, responses or all"
    )
    parser.add_argument("--only", metavar="ROWS", help="the numbers of some rows, such as 4,9")
    parser.add_argument(
        "--model-prefix", default="", metavar="P", help="what the gateway wants before a model's id, such as openai/"
    )
    parser.add_argument(
        "--faults",
        default=f"http://127.0.0.1:{PORT}",
        metavar="URL",
        help=f"the fault server; default: http://127.0.0.1:{PORT}",
    )
    parser.add_argument("--key-env", metavar="NAME", help="the variable that holds the gateway's key for clients")
    parser.add_argument(
        "--patience", type=float, default=25, metavar="S", help="how many seconds a client waits; default: 25"
    )
    parser.add_argument("--json", action="store_true", help="a line of JSON for each")


def run(args: argparse.Namespace) -> None:
    from interlingua.faults.catalog import rows_of
    from interlingua.faults.runner import check, passes_on, reachable

    target = _target(args)
    scenarios = rows_of(_rows(args.only))
    apis = APIS if args.api == "all" else [NAMES[args.api]]
    reachable(target)
    passes_on(target, apis)
    counts: Counter[str] = Counter()
    for judged in check(target, scenarios, apis):
        counts[judged.verdict.outcome.value] += 1
        _tell_json(judged) if args.json else _tell(judged)
    told = ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
    if counts["wrong"]:
        raise BadInput(f"the gateway is not right everywhere: {told}", "`interlingua faults list` says what is right")
    io.tell(told)


def _target(args: argparse.Namespace) -> Target:
    from interlingua.faults.checker.trial import Target

    for url in (args.url, args.faults):
        if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
            raise UsageError(f"{url!r} is no URL of a server", "write it as http://127.0.0.1:8484")
    if args.patience <= 0:
        raise UsageError("--patience must be more than nothing", "give it some seconds, such as 25")
    key = ""
    if args.key_env and not (key := os.environ.get(args.key_env, "")):
        raise UsageError(f"the variable {args.key_env} is not set", "set it to the key that clients show the gateway")
    return Target(args.url.rstrip("/"), args.faults.rstrip("/"), args.model_prefix, key, args.patience)


def _rows(only: str | None) -> list[int] | None:
    if only is None:
        return None
    try:
        return [int(number) for number in only.split(",")]
    except ValueError:
        raise UsageError(f"--only {only!r} is no list of rows", "write numbers with commas between: 4,9") from None


def _tell(judged: Judged) -> None:
    outcome = judged.verdict.outcome.value
    paint = paint_for(io.stdout_is_terminal())
    name = f"{judged.scenario.name} ({_SHORT[judged.api]})"
    line = f"{name:52} {io.printable(judged.verdict.why)}"
    io.write(f"{paint(f'{outcome:10}', _TONES[outcome])} {line}\n".encode())


def _tell_json(judged: Judged) -> None:
    scenario, verdict = judged.scenario, judged.verdict
    told = {"row": scenario.row, "name": scenario.name, "api": _SHORT[judged.api]}
    io.write_line({**told, "outcome": verdict.outcome.value, "why": verdict.why})
