"""Execution of a run: settings, preflight, estimate, requests, card."""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import signal
import sys
from datetime import UTC, datetime
from itertools import chain, count
from pathlib import Path
from typing import Any

import msgspec

from interlingua import __version__
from interlingua.cli.common import console, terminal
from interlingua.cli.common.gateway_options import settings_from_args
from interlingua.cli.verify.output import check_output_files, write_card
from interlingua.cli.verify.price import parse_price
from interlingua.cli.verify.progress import ProgressLine, WaitNotes
from interlingua.cli.verify.sample_selection import select_samples
from interlingua.common.name_list import join_names
from interlingua.errors import BadInput, UnknownModel, UsageError
from interlingua.gateway.routing.routes import Route, Routes, routes_for
from interlingua.upstreams.profile import UNKNOWN_PROFILE
from interlingua.verification.card import build_card
from interlingua.verification.card.formats import format_dollars, format_tokens
from interlingua.verification.probing.probe_client import ProbeClient, open_session
from interlingua.verification.probing.request_writer import RequestSettings, RequestWriter
from interlingua.verification.probing.server_facts import Price
from interlingua.verification.recording import Recording
from interlingua.verification.reply_reading import read_reply
from interlingua.verification.run.cost import estimate_tokens
from interlingua.verification.run.polite_sender import AdaptiveLimit, PoliteSender, RetryPolicy
from interlingua.verification.run.preflight import describe_long_wait, fit_settings, require_upstream
from interlingua.verification.run.reference import Reference, read_reference
from interlingua.verification.run.run_log import RunHeader, RunLog, StoredRun, read_run
from interlingua.verification.run.runner import Runner, StopReason, Trial, plan_trials
from interlingua.verification.samples.builtin import BUILTIN_SET_NAME, builtin_samples
from interlingua.verification.samples.sample import Sample, request_digest
from interlingua.verification.samples.sample_files import read_samples
from interlingua.verification.target import Target, find_target

__all__ = ["verify"]

EXIT_OK, EXIT_FAILED, EXIT_INTERRUPTED = 0, 1, 130
DEFAULT_TEMPERATURE, DEFAULT_MAX_TOKENS = 0.0, 4096
"""Settings of the built-in samples. Other samples have their own."""
MODES = ("stream", "whole")
MAX_LISTED_MODELS = 12
NOT_SENT = "none"
"""Value of --temperature that leaves the setting to the server."""
_STOP_MESSAGES: dict[StopReason, str] = {
    "interrupted": "interrupted",
    "budget": "the limit of --max-total-tokens is reached",
    "no-replies": "the upstream has not answered the last twenty requests",
    "long-wait": "the upstream wants no requests for a long time",
}


def verify(args: argparse.Namespace) -> int:
    """Run a verification as the options say. Returns the exit status."""
    stored = _resume(args) if args.resume else None
    _check_options(args)
    if not args.dry_run:
        check_output_files(args, args.resume, args.samples, args.against, log=args.log)
    samples, set_name = _read_set(args)
    selected = select_samples(samples, args.only, args.limit)
    trials = plan_trials(selected, _modes(args))
    reference = read_reference(args.against) if args.against else None
    routes = routes_for(settings_from_args(args))
    plan = _Plan(args, trials, set_name, routes, reference, parse_price(args.price))
    return asyncio.run(_run(plan, stored))


class _Plan(msgspec.Struct, frozen=True):
    args: argparse.Namespace
    trials: list[Trial]
    set_name: str
    routes: Routes
    reference: Reference | None
    price: Price | None


# ── options ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _resume(args: argparse.Namespace) -> StoredRun:
    """Read the log of an interrupted run, and take its options from there."""
    if args.log or args.samples or args.only or args.limit:
        raise UsageError(
            "--resume continues a run as it was", "leave out --log, --samples, --only and --limit: they are in the log"
        )
    stored = read_run(args.resume)
    header = stored.header
    fields = {"upstream": header.url, "upstream_api": header.api, "model": header.model, "dialect": header.dialect}
    fields |= {"upstream_profile": header.profile, "upstream_key_env": header.key_env}
    for name, value in fields.items():
        setattr(args, name, getattr(args, name) or value or None)
    args.dialect = None if args.dialect == "detect" else args.dialect
    args.samples, args.only, args.limit = header.samples_path or None, header.only or None, header.limit or None
    args.modes, args.seed, args.max_tokens = ",".join(header.modes), header.settings.seed, header.settings.max_tokens
    args.temperature = NOT_SENT if header.settings.temperature is None else str(header.settings.temperature)
    args.extra = json.dumps(header.settings.extra) if header.settings.extra else None
    return stored


def _check_options(args: argparse.Namespace) -> None:
    if not args.upstream and not args.config and not args.model:
        raise UsageError("no upstream is given", "for example: --base-url http://localhost:8000/v1 --model NAME")
    for name in ("parallel", "timeout"):
        if getattr(args, name) <= 0:
            raise UsageError(f"--{name} must be greater than 0", f"for example: --{name} 4")
    if args.retries < 0:
        raise UsageError("--retries must not be negative", "for example: --retries 4")
    if args.fail_under is not None and not 0 <= args.fail_under <= 100:
        raise UsageError("--fail-under must be from 0 to 100", "it is a percentage, for example: --fail-under 95")


def _modes(args: argparse.Namespace) -> tuple[str, ...]:
    modes = tuple(mode.strip() for mode in args.modes.split(",") if mode.strip())
    if not modes or any(mode not in MODES for mode in modes):
        raise UsageError(f"--modes {args.modes!r} is unknown", "use stream, whole, or stream,whole")
    return modes


def _read_set(args: argparse.Namespace) -> tuple[list[Sample], str]:
    if args.samples is None:
        return builtin_samples(), BUILTIN_SET_NAME
    text = console.read_all(args.samples, "samples").decode("utf-8-sig", "replace")
    return read_samples(text.splitlines(), args.samples), Path(args.samples).name


def _request_settings(args: argparse.Namespace) -> RequestSettings:
    is_builtin = args.samples is None
    temperature = DEFAULT_TEMPERATURE if is_builtin else None
    if args.temperature is not None:
        temperature = None if args.temperature == NOT_SENT else _parse_temperature(args.temperature)
    max_tokens = args.max_tokens if args.max_tokens is not None else DEFAULT_MAX_TOKENS if is_builtin else None
    return RequestSettings(
        temperature=temperature, seed=args.seed, max_tokens=max_tokens, extra=_parse_extra(args.extra)
    )


def _parse_temperature(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"--temperature {text!r} is not a number", "for example: --temperature 0.6, or none") from None


def _parse_extra(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    hint = 'for example: --extra \'{"chat_template_kwargs": {"thinking": false}}\''
    return console.read_json(text.encode(), dict[str, Any], "--extra", hint)


# ── run ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def _run(plan: _Plan, stored: StoredRun | None) -> int:
    args = plan.args
    async with open_session() as session:
        model = args.model or await _only_model(plan, session)
        route = _find_route(plan.routes, model)
        console.print_stderr(f"asking {route.upstream.url} for a first reply …")
        client = ProbeClient(session, route, args.timeout)
        with terminal.progress("waiting for the first reply"):
            target = await find_target(client, route)
            require_upstream(target.facts, route.upstream.url, route.model)
            writer, notes = await _prepare_writer(args, client, target)
        price = plan.price or target.facts.prices.get(route.model)
        settled = sum(result.is_settled for result in stored.results) if stored else 0
        _print_estimate(plan, target, price, notes, settled)
        if args.dry_run:
            return EXIT_OK
        return await _run_trials(plan, stored, client, target, writer, notes, price)


async def _run_trials(
    plan: _Plan,
    stored: StoredRun | None,
    client: ProbeClient,
    target: Target,
    writer: RequestWriter,
    notes: tuple[str, ...],
    price: Price | None,
) -> int:
    args = plan.args
    header = _header(plan, target, writer, notes)
    if stored is not None and not header.is_same_run(stored.header):
        raise BadInput(f"{args.resume} is the log of another run", "leave out options that differ from that run")
    log = RunLog(_log_path(args, header), header, append=stored is not None)
    sender = _polite_sender(args, client, args.parallel)
    progress = ProgressLine()
    runner = Runner(sender, writer, target.facts.engine, target.dialect, log, progress.update, args.max_total_tokens)
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, runner.stop, "interrupted")
    ticker = asyncio.create_task(progress.tick())
    try:
        await runner.run(plan.trials, args.parallel, stored.results if stored else ())
    finally:
        asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)
        ticker.cancel()
        progress.finish()
        log.add_tokens(runner.extra_tokens)
        log.close()
    _print_end(runner, sender.refusal, log.path)
    card = build_card(read_run(log.path), plan.reference, price, sender.rate_limited)
    write_card(card, args)
    if runner.stop_reason:
        return EXIT_INTERRUPTED if runner.stop_reason == "interrupted" else EXIT_FAILED
    share = 100 * (card.metrics.right.value or 0.0)
    if args.fail_under is not None and share < args.fail_under:
        console.print_stderr(f"{share:.1f} % are right, which is less than --fail-under {args.fail_under:g}")
        return EXIT_FAILED
    return EXIT_OK


def _polite_sender(args: argparse.Namespace, client: ProbeClient, parallel: int) -> PoliteSender:
    return PoliteSender(client, AdaptiveLimit(parallel), RetryPolicy(attempts=args.retries + 1), WaitNotes().report)


async def _only_model(plan: _Plan, session: Any) -> str:
    """Return the model of an upstream that has only one.

    Raises:
        BadInput: The upstream cannot be reached, or refuses the key.
        UsageError: The upstream has several models, or its list cannot be read.
    """
    route = plan.routes.default
    if route is None:
        ids = join_names(plan.routes.model_ids(), MAX_LISTED_MODELS)
        raise UsageError("no model is given", f"add --model; the settings have {ids}")
    with terminal.progress("waiting for the model list"):
        target = await find_target(ProbeClient(session, route, plan.args.timeout), route)
    require_upstream(target.facts, route.upstream.url)
    models = target.facts.models
    if len(models) == 1:
        console.print_stderr(f"model: {console.printable(models[0])} (the only one of the upstream)")
        return models[0]
    if not models:
        status = f"its model list has status {target.facts.listing.status}"
        raise UsageError("no model is given, and the upstream lists none", f"add --model NAME ({status})")
    raise UsageError("no model is given", f"add --model with one of: {join_names(models, MAX_LISTED_MODELS)}")


def _find_route(routes: Routes, model: str) -> Route:
    try:
        return routes.find(model)[0]
    except UnknownModel as error:
        raise UsageError(f"--model: unknown model {model!r}", error.hint) from None


async def _prepare_writer(
    args: argparse.Namespace, client: ProbeClient, target: Target
) -> tuple[RequestWriter, tuple[str, ...]]:
    """Return the writer of the requests. Built-in samples are adapted to the upstream; others are sent as they are."""
    route = target.route
    profile = target.profile if args.samples is None else UNKNOWN_PROFILE
    extra = {**route.extra, **_parse_extra(args.extra)}
    settings = msgspec.structs.replace(_request_settings(args), extra=extra)
    writer = RequestWriter(route.upstream.api, route.model, profile, settings)
    fitted, notes = await fit_settings(_polite_sender(args, client, 1), writer)
    return RequestWriter(route.upstream.api, route.model, profile, fitted), notes


def _header(plan: _Plan, target: Target, writer: RequestWriter, notes: tuple[str, ...]) -> RunHeader:
    args, upstream = plan.args, target.route.upstream
    digest = request_digest(
        {"set": [[sample.id, stream, request_digest(sample.request)] for sample, stream in plan.trials]}
    )
    return RunHeader(
        version=__version__,
        url=upstream.url,
        api=upstream.api,
        model=target.route.model,
        dialect=target.dialect.name,
        engine=target.facts.engine,
        engine_version=target.facts.version,
        set_name=plan.set_name,
        set_digest=digest,
        trials=len(plan.trials),
        modes=_modes(args),
        settings=writer.settings,
        started_at=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        samples_path=args.samples or "",
        only=args.only or "",
        limit=args.limit or 0,
        key_env=args.upstream_key_env or "",
        profile=args.upstream_profile or "",
        notes=notes,
    )


def _log_path(args: argparse.Namespace, header: RunHeader) -> Path:
    if args.resume or args.log:
        return Path(args.resume or args.log)
    model = re.sub(r"[^a-z0-9.]+", "-", header.model.lower()).strip("-.") or "model"
    stem = f"verify-{model[-60:]}-{datetime.now().strftime('%Y%m%d-%H%M%S')}"
    names = chain([stem], (f"{stem}-{number}" for number in count(2)))
    return next(path for name in names if not (path := Path(f"{name}.jsonl")).exists())


def _print_estimate(plan: _Plan, target: Target, price: Price | None, notes: tuple[str, ...], done: int) -> None:
    estimate = estimate_tokens((sample, 1) for sample, _ in plan.trials)
    cost = estimate.dollars(price)
    dollars = f", about {format_dollars(cost)}" if cost is not None else ""
    engine = " ".join(filter(None, (target.facts.engine or "unknown server", target.facts.version)))
    upstream = target.route.upstream
    lines = [
        f"{target.route.model} at {upstream.url} ({upstream.api}; {engine}; dialect {target.dialect.name})",
        f"{len(plan.trials)} requests, about {format_tokens(estimate.prompt)} prompt tokens and "
        f"{format_tokens(estimate.reply)} reply tokens{dollars}; failures need more for their evidence",
        *([f"{done} of them are done already"] if done else []),
        *(f"note: {note}" for note in notes),
    ]
    for line in lines:
        console.print_stderr(console.printable(line))


def _print_end(runner: Runner, refusal: Recording | None, path: Path) -> None:
    if runner.stop_reason:
        reason = _STOP_MESSAGES[runner.stop_reason]
        if runner.stop_reason == "long-wait" and refusal is not None:
            reason = f"{describe_long_wait(refusal)} ({refusal.status}: {read_reply(refusal).error})"
        console.print_stderr(f"{console.printable(reason)}; continue with: interlingua verify --resume {path}")
    console.print_stderr(f"log: {path}")
    if sys.stderr is not None:
        sys.stderr.flush()
