"""`interlingua config check`: validate the settings and print a summary of them."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from interlingua.cli import doctor
from interlingua.cli.common import console
from interlingua.errors import BadInput, UsageError
from interlingua.gateway.routing.routes import (
    DEMO_UPSTREAM,
    Route,
    Routes,
    find_settings_doubts,
    find_settings_problems,
    routes_for,
)
from interlingua.gateway.settings.loader import LoadedSettings, raise_settings_errors, read_settings
from interlingua.gateway.settings.overrides import UPSTREAM_VARIABLE
from interlingua.gateway.settings.schema import Settings, Upstream
from interlingua.gateway.upstream.connector import check_certificates

if TYPE_CHECKING:
    from interlingua.verification.doctor import UpstreamReport

DESCRIPTION = """\
Validates the settings and prints a summary: the upstreams, the models, and the
upstream that each model is routed to. All mistakes are reported at once, each
with its line and a hint. With --online, the upstreams are asked, too: see
`interlingua doctor`."""
EPILOG = """\
examples:
  interlingua config check
  interlingua config check ./interlingua.yaml
  interlingua config check --json | jq '.problems'
  interlingua config check --online

exit status: 1 if a setting is wrong, or if --online finds something wrong
"""
EXIT_INVALID = 1


def add_file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", nargs="?", metavar="FILE", help="settings file; default: the one that `interlingua serve` would read"
    )
    parser.add_argument("--config", metavar="FILE", help="the same, as other commands take it")


def file_from_args(args: argparse.Namespace) -> str | None:
    """Return the settings file that the command line names; None if it names none."""
    if args.file and args.config:
        raise UsageError("--config and FILE are the same option", "leave one of them out")
    file: str | None = args.file or args.config
    return file


def add_options(parser: argparse.ArgumentParser) -> None:
    add_file(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object, also if settings are wrong")
    parser.add_argument("--online", action="store_true", help="check the upstreams, too, as `interlingua doctor` does")


def run(args: argparse.Namespace) -> int | None:
    file = file_from_args(args)
    if args.json:
        return _report_json(file, online=args.online)
    loaded = read_settings(file, os.environ)
    _print_notes(loaded.notes)
    raise_settings_errors(_find_problems(loaded))
    _print_notes(find_settings_doubts(loaded))
    routes = routes_for(loaded)
    lines = [f"settings: {_source(loaded)}", *_summary_lines(loaded.settings, routes)]
    console.write_lines(map(console.printable, lines))
    if not args.online:
        return None
    console.write(b"\n")
    reports = _check_online(loaded, routes)
    doctor.print_reports(reports)
    return doctor.exit_status(reports)


def _check_online(loaded: LoadedSettings, routes: Routes) -> list[UpstreamReport]:
    limits = doctor.Limits(doctor.DEFAULT_SECONDS, doctor.DEFAULT_PARALLEL)
    return doctor.examine_upstreams(routes, loaded.settings.upstreams, limits)


def _print_notes(notes: list[str]) -> None:
    for note in notes:
        console.print_note(note)


def _find_problems(loaded: LoadedSettings) -> list[BadInput]:
    """Return an error for each wrong setting, also for files that the settings name."""
    problems = find_settings_problems(loaded)
    if not problems:
        try:
            check_certificates(loaded.settings)
        except BadInput as error:
            problems.append(error)
    return problems


def _source(loaded: LoadedSettings) -> str:
    if loaded.source:
        return loaded.source
    return loaded.search_note or f"no file, because {UPSTREAM_VARIABLE} is set"


# ── summary ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _summary_lines(settings: Settings, routes: Routes) -> Iterator[str]:
    yield f"listens on: {settings.host}:{settings.port}"
    if settings.cassettes is not None:
        yield f"cassettes: {settings.cassettes.mode} {settings.cassettes.dir}"
    yield "upstreams:"
    width = max(map(len, (*settings.upstreams, *settings.models, *settings.tiers, DEMO_UPSTREAM)))
    for name, upstream in settings.upstreams.items():
        yield f"  {name:{width}}  {upstream.url} ({upstream.api}, {_KEY_TEXTS[_key_state(upstream)]})"
    if settings.demo:
        yield f"  {DEMO_UPSTREAM:{width}}  demo/<dialect>, for every dialect"
    if settings.models:
        yield "models:"
    for id in settings.models:
        yield f"  {id:{width}}  {_describe_routes(routes.find(id))}"
    if settings.tiers:
        yield "tiers:"
    for tier in settings.tiers:
        yield f"  {tier:{width}}  {_describe_routes(routes.find(f'claude-{tier}'))}"
    yield f"every other model: {_default_upstream(settings) or 'unknown'}"


_KEY_TEXTS = {"passthrough": "the client's key", "set": "with a key", "none": "no key"}


def _key_state(upstream: Upstream) -> str:
    return "passthrough" if upstream.passthrough else "set" if upstream.key else "none"


def _default_upstream(settings: Settings) -> str:
    only_upstream = next(iter(settings.upstreams)) if len(settings.upstreams) == 1 else ""
    return settings.default or only_upstream


def _describe_routes(routes: list[Route]) -> str:
    return ", then ".join(f"{route.name}: {route.model}{_dialect_note(route)}" for route in routes)


def _dialect_note(route: Route) -> str:
    """Return the dialect in parentheses; "" for a pattern, because the dialect depends on the full model id."""
    return "" if "*" in route.model else f" ({route.dialect_name})"


# ── JSON ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _report_json(file: str | None, *, online: bool) -> int:
    """Print the report and return the exit status."""
    try:
        loaded = read_settings(file, os.environ)
    except BadInput as error:  # the file cannot be read, or is not YAML
        console.write_json({"valid": False, "source": file or "", "problems": [_problem_object(error)]})
        return EXIT_INVALID
    problems = _find_problems(loaded)
    notes = loaded.notes if problems else [*loaded.notes, *find_settings_doubts(loaded)]
    report: dict[str, Any] = {
        "valid": not problems,
        "source": loaded.source,
        "searched": loaded.searched,
        "problems": [_problem_object(problem) for problem in problems],
        "notes": notes,
    }
    if problems:
        console.write_json(report)
        return EXIT_INVALID
    routes = routes_for(loaded)
    report |= _summary_object(loaded.settings, routes)
    reports = _check_online(loaded, routes) if online else []
    if online:
        report["online"] = [msgspec.to_builtins(checked) for checked in reports]
    console.write_json(report)
    return doctor.exit_status(reports) if online else 0


def _problem_object(error: BadInput) -> dict[str, str]:
    return {"message": str(error), "hint": error.hint}


def _summary_object(settings: Settings, routes: Routes) -> Mapping[str, Any]:
    return {
        "listen": f"{settings.host}:{settings.port}",
        "upstreams": {
            name: {"url": upstream.url, "api": upstream.api, "key": _key_state(upstream)}
            for name, upstream in settings.upstreams.items()
        },
        "demo": settings.demo,
        "models": {id: _route_objects(routes.find(id)) for id in settings.models},
        "tiers": {tier: _route_objects(routes.find(f"claude-{tier}")) for tier in settings.tiers},
        "default": _default_upstream(settings) or None,
    }


def _route_objects(routes: list[Route]) -> list[dict[str, str]]:
    return [
        {"upstream": route.name, "model": route.model, "dialect": "" if "*" in route.model else route.dialect_name}
        for route in routes
    ]
