"""`interlingua faults check`: test how a gateway handles each fault."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from interlingua.cli.common import console
from interlingua.cli.common.client_key import add_client_key, client_key_from_args
from interlingua.cli.common.terminal import Style, is_terminal, stdout_styler, wrap
from interlingua.cli.faults.serve import DEFAULT_PORT
from interlingua.errors import BadInput, UsageError
from interlingua.faults.apis import API_BY_NAME, APIS

if TYPE_CHECKING:
    from interlingua.faults.checker.trial import GatewayTarget
    from interlingua.faults.runner import ScenarioResult

DESCRIPTION = """\
Sends a request for each fault to the gateway and rates what the client gets:

  right       the client receives a correct reply or a proper error
  wrong       it does not
  refused     the gateway does not accept this request
  not judged  the result cannot be observed from outside

Each result is one line, with the reason.

The gateway's upstream must be a running `interlingua faults serve`, and the
gateway must forward model ids. Its timeouts must be shorter than --patience: a
gateway that is still waiting after that time cannot be rated correctly."""
EPILOG = """\
examples:
  interlingua faults check http://127.0.0.1:8484
  interlingua faults check http://127.0.0.1:8484 --api messages --only 4,5,9
  interlingua faults check http://127.0.0.1:4000 --key-env LITELLM_KEY --json
  interlingua faults check http://127.0.0.1:3456 --api messages \\
      --model-prefix faults,

exit status: 1 if any result is wrong, or if fault-00-none (no fault) fails
"""
_OUTCOME_STYLES = {
    "right": Style.GOOD,
    "wrong": Style.ERROR,
    "refused": Style.WARNING,
    "not judged": Style.FAINT,
}
REASON_INDENT = 11
_API_SHORT_NAMES = {api: name for name, api in API_BY_NAME.items()}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("url", metavar="URL", help="URL of the gateway, with or without /v1")
    parser.add_argument(
        "--api",
        choices=[*API_BY_NAME, "all"],
        default="all",
        metavar="API",
        help="chat, messages, responses or all (default)",
    )
    parser.add_argument("--only", metavar="ROWS", help="run only the faults with these numbers, such as 4,9")
    parser.add_argument(
        "--model-prefix",
        default="",
        metavar="P",
        help="prefix that the gateway requires before a model id, such as openai/",
    )
    parser.add_argument(
        "--faults",
        default=f"http://127.0.0.1:{DEFAULT_PORT}",
        metavar="URL",
        help=f"URL of the fault server; default: http://127.0.0.1:{DEFAULT_PORT}",
    )
    add_client_key(parser)
    parser.add_argument(
        "--patience", type=float, default=25, metavar="S", help="seconds to wait for a reply; default: 25"
    )
    parser.add_argument("--json", action="store_true", help="print each result as a JSON line")


def run(args: argparse.Namespace) -> None:
    from interlingua.faults.catalog import scenarios_in_rows
    from interlingua.faults.runner import check_baseline, check_reachable, run_scenarios

    target = _target(args)
    scenarios = scenarios_in_rows(_parse_rows(args.only))
    apis = APIS if args.api == "all" else [API_BY_NAME[args.api]]
    check_reachable(target)
    check_baseline(target, apis)
    counts: Counter[str] = Counter()
    for result in run_scenarios(target, scenarios, apis):
        counts[result.verdict.outcome.value] += 1
        _print_result_json(result) if args.json else _print_result(result)
    summary = ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
    if counts["wrong"]:
        raise BadInput(
            f"the gateway handles some faults incorrectly: {summary}",
            "`interlingua faults list` describes the correct behaviour",
        )
    console.print_stderr(summary)


def _target(args: argparse.Namespace) -> GatewayTarget:
    from interlingua.faults.checker.trial import GatewayTarget

    for url in (args.url, args.faults):
        if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
            raise UsageError(f"{url!r} is not an http or https URL", "for example: http://127.0.0.1:8484")
    if args.patience <= 0:
        raise UsageError("--patience must be greater than 0", "for example: --patience 25")
    key = client_key_from_args(args)
    return GatewayTarget(args.url.rstrip("/"), args.faults.rstrip("/"), args.model_prefix, key, args.patience)


def _parse_rows(rows_option: str | None) -> list[int] | None:
    if rows_option is None:
        return None
    try:
        return [int(number) for number in rows_option.split(",")]
    except ValueError:
        raise UsageError(
            f"--only {rows_option!r} is not a list of fault numbers", "separate numbers by commas: 4,9"
        ) from None


def _print_result(result: ScenarioResult) -> None:
    outcome = result.verdict.outcome.value
    name, reason = f"{result.scenario.name} ({_API_SHORT_NAMES[result.api]})", console.printable(result.verdict.reason)
    label = stdout_styler()(f"{outcome:10}", _OUTCOME_STYLES[outcome])
    if is_terminal(sys.stdout):  # the reason is longer than a line
        lines = [f"{label} {name}", *wrap(reason, " " * REASON_INDENT)]
    else:
        lines = [f"{label} {name:52} {reason}"]
    console.write("".join(f"{line}\n" for line in lines).encode())


def _print_result_json(result: ScenarioResult) -> None:
    scenario, verdict = result.scenario, result.verdict
    fields = {"row": scenario.row, "name": scenario.name, "api": _API_SHORT_NAMES[result.api]}
    console.write_json_line({**fields, "outcome": verdict.outcome.value, "why": verdict.reason})
