"""`interlingua doctor`: check upstreams and their models within seconds."""

from __future__ import annotations

import argparse
import asyncio
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

import msgspec

from interlingua.cli.common import console, terminal
from interlingua.cli.common.gateway_options import settings_from_args
from interlingua.cli.common.upstream_options import add_target_options
from interlingua.common.ansi import Style, Styler
from interlingua.errors import UnknownModel, UsageError

if TYPE_CHECKING:
    from interlingua.gateway.routing.routes import Route, Routes
    from interlingua.verification.doctor import CheckResult, UpstreamReport
    from interlingua.verification.doctor.check import Status

DESCRIPTION = """\
Checks an upstream, or all upstreams of the settings. Can it be reached? Is the
key right? Which server and version is it? Does it have the model, and does it
stream? Does the model see the tools and call them, and does the server parse
the calls? What else does it support? One real call is made in each of its APIs.
Nothing is changed. It takes less than 20 seconds and a few thousand tokens for
each model.

Each line is one of:

  ok     it works
  odd    it works with Interlingua, or needs a look
  wrong  it does not work; the line below says what helps
  –      it was not checked"""
EPILOG = """\
examples:
  interlingua doctor --base-url http://localhost:8000/v1
  interlingua doctor --base-url https://openrouter.ai/api/v1 \\
      --model moonshotai/kimi-k2 --key-env OPENROUTER_API_KEY
  interlingua doctor                   the upstreams of ./interlingua.yaml
  interlingua doctor --config gateway.yaml --model sonnet --json
  interlingua config check --online    the same, after a check of the settings

exit status:
  0  nothing is wrong
  1  a check is wrong, or no model was checked; with --strict: or a check is odd
"""
DEFAULT_SECONDS = 18.0
"""Time for all checks. Start-up and the report take up to two seconds on a slow machine."""
DEFAULT_PARALLEL = 4
MAX_MODELS_PER_UPSTREAM = 3
"""Models of the settings that are checked at each upstream, unless --model names one."""
NAME_WIDTH = 20
MIN_GROUPED_CHECKS = 3
"""Number of adjacent checks, skipped for the same reason, that are shown in one line."""
NO_UPSTREAM_HINT = "for example: --base-url http://localhost:8000/v1, or --config FILE"
_STATUS_STYLES = {"ok": Style.GOOD, "odd": Style.WARNING, "wrong": Style.ERROR, "skipped": Style.FAINT}
_STATUS_WORDS = {"skipped": "–"}


def add_options(parser: argparse.ArgumentParser) -> None:
    add_target_options(parser)
    add = parser.add_argument
    add("--timeout", type=float, default=DEFAULT_SECONDS, metavar="S",
        help=f"seconds for all checks of a model; default: {DEFAULT_SECONDS:g}")  # fmt: skip
    add("--parallel", type=int, default=DEFAULT_PARALLEL, metavar="N",
        help=f"parallel requests to a model; default: {DEFAULT_PARALLEL}")  # fmt: skip
    add("--strict", action="store_true", help="exit with status 1 if a check is odd, too")
    add("--json", action="store_true", help="print the checks as JSON")


def run(args: argparse.Namespace) -> int:
    from interlingua.gateway.routing.routes import routes_for

    loaded = settings_from_args(args)
    for note in loaded.notes:
        console.print_note(note)
    if not loaded.settings.upstreams:
        raise UsageError("no upstream is configured", NO_UPSTREAM_HINT)
    limits = Limits(args.timeout, args.parallel)
    reports = examine_upstreams(routes_for(loaded), loaded.settings.upstreams, limits, args.model)
    print_reports(reports, as_json=args.json)
    return exit_status(reports, strict=args.strict)


class Limits(msgspec.Struct, frozen=True):
    seconds: float
    """Time for all checks of a model."""
    parallel: int
    """Parallel requests to a model."""


def examine_upstreams(
    routes: Routes, upstreams: Iterable[str], limits: Limits, model: str | None = None
) -> list[UpstreamReport]:
    """Check these upstreams with their models, or only the routes of one model."""
    if limits.seconds <= 0 or limits.parallel <= 0:
        raise UsageError("--timeout and --parallel must be greater than 0", "for example: --timeout 20 --parallel 4")
    examined = _routes_to_examine(routes, list(upstreams), model)
    with terminal.progress("checking"):
        return asyncio.run(_examine_all(examined, limits))


def print_reports(reports: Sequence[UpstreamReport], *, as_json: bool = False) -> None:
    """Print the checks, and the number of each status."""
    if as_json:
        console.write_json([msgspec.to_builtins(report) for report in reports])
    else:
        styler = terminal.stdout_styler()
        lines = [line for report in reports for line in _report_lines(report, styler)]
        console.write("".join(f"{line}\n" for line in lines).encode())
    unchecked = _count(reports, "skipped")
    rest = f", {unchecked} not checked" if unchecked else ""
    counts = ", ".join(f"{_count(reports, status)} {status}" for status in ("ok", "odd", "wrong"))
    console.print_stderr(f"{counts}{rest}")
    if not _has_model(reports) and not _count(reports, "wrong"):
        console.print_stderr("no model was checked: add --model")


def exit_status(reports: Sequence[UpstreamReport], *, strict: bool = False) -> int:
    """Return 1 if a check is wrong, or odd with --strict, or if no model was checked; otherwise 0."""
    is_bad = _count(reports, "wrong") or (strict and _count(reports, "odd"))
    return 1 if is_bad or not _has_model(reports) else 0


def _count(reports: Iterable[UpstreamReport], status: Status) -> int:
    return sum(report.count(status) for report in reports)


def _has_model(reports: Iterable[UpstreamReport]) -> bool:
    return any(report.model for report in reports)


def _routes_to_examine(
    routes: Routes, upstreams: list[str], model: str | None
) -> list[tuple[Route, Callable[[str], Route] | None]]:
    """Return the routes. One without a model has a function that returns the route to the model that it turns out."""
    from interlingua.gateway.routing.routes import DEMO_UPSTREAM

    if model:
        try:
            return [(route, None) for route in routes.find(model)]
        except UnknownModel as error:
            raise UsageError(f"--model: unknown model {model!r}", error.hint) from None
    names = [name for name in upstreams if name != DEMO_UPSTREAM]
    if not names:
        raise UsageError("no upstream is configured", NO_UPSTREAM_HINT)
    examined: list[tuple[Route, Callable[[str], Route] | None]] = []
    for name in names:
        configured = [route for route in routes.configured_routes(name) if "*" not in route.model]
        if len(configured) > MAX_MODELS_PER_UPSTREAM:
            rest = ", ".join(route.model for route in configured[MAX_MODELS_PER_UPSTREAM:])
            console.print_stderr(f"note: {name}: not checked, use --model: {console.printable(rest)}")
        if configured:
            examined += [(route, None) for route in configured[:MAX_MODELS_PER_UPSTREAM]]
        else:
            examined.append((routes.upstream_route(name), partial(routes.upstream_route, name)))
    return examined


async def _examine_all(
    examined: list[tuple[Route, Callable[[str], Route] | None]], limits: Limits
) -> list[UpstreamReport]:
    from interlingua.verification.doctor import examine
    from interlingua.verification.probing.probe_client import ProbeClient, open_session

    subject = "model" if all(route_to is None for _, route_to in examined) else "upstream"
    count = f"1 {subject}" if len(examined) == 1 else f"{len(examined)} {subject}s"
    console.print_stderr(f"checking {count}, at most {limits.seconds:g} s …")
    async with open_session() as session:
        return await asyncio.gather(
            *(
                examine(
                    ProbeClient(session, route, limits.seconds),
                    route,
                    seconds=limits.seconds,
                    parallel=limits.parallel,
                    route_to=route_to,
                )
                for route, route_to in examined
            )
        )


def _report_lines(report: UpstreamReport, styler: Styler) -> Iterator[str]:
    width = terminal.terminal_width()
    title = f"{report.name}: {report.model}" if report.model else report.name
    yield styler(console.printable(title), Style.HEADING)
    yield styler(console.printable(f"{report.url} ({report.api})"), Style.FAINT)
    previous: CheckResult | None = None
    for check in _group_skipped(report.checks):
        yield from _check_lines(_shorten_repeated(check, previous), width, styler)
        previous = check
    if report.requests:
        used = f"{report.seconds:.1f} s, {report.requests} requests, {report.tokens:,} tokens"
        yield styler(f"{'':9}{used}", Style.FAINT)
    yield ""


def _shorten_repeated(check: CheckResult, previous: CheckResult | None) -> CheckResult:
    """Return a check without the message that the one before it has, too."""
    texts = (check.status, check.message, check.fix)
    if not check.fix or previous is None or texts != (previous.status, previous.message, previous.fix):
        return check
    return msgspec.structs.replace(check, message="the same", fix="")


def _group_skipped(checks: Iterable[CheckResult]) -> Iterator[CheckResult]:
    """Join adjacent checks that were skipped for the same reason."""
    for (status, message), group in groupby(checks, lambda check: (check.status, check.message)):
        same = list(group)
        if status != "skipped" or len(same) < MIN_GROUPED_CHECKS:
            yield from same
        else:
            names = "; ".join(check.check for check in same)
            yield msgspec.structs.replace(same[0], check=f"{len(same)} checks", message=f"{names}: {message}")


def _check_lines(check: CheckResult, width: int, styler: Styler) -> Iterator[str]:
    word = _STATUS_WORDS.get(check.status, check.status)
    indent = 9 + NAME_WIDTH
    name = console.printable(check.check)
    text = textwrap.wrap(console.printable(check.message), max(30, width - indent - 1), break_on_hyphens=False) or [""]
    yield f"  {styler(f'{word:6}', _STATUS_STYLES[check.status])} {name:{NAME_WIDTH}}{text[0]}"
    for line in text[1:]:
        yield f"{'':{indent}}{line}"
    fix = textwrap.wrap(f"→ {console.printable(check.fix)}", max(30, width - indent - 1), break_on_hyphens=False)
    for number, line in enumerate(fix if check.fix else ()):
        yield f"{'':{indent}}{'  ' if number else ''}{line}"
