"""`interlingua config check`: validate the settings and print a summary of them."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator

from interlingua.cli.common import console
from interlingua.gateway.routing.routes import DEMO_UPSTREAM, Route, Routes, routes_for
from interlingua.gateway.settings.loader import LoadedSettings, load_settings
from interlingua.gateway.settings.schema import Settings

DESCRIPTION = """\
Validates the settings and prints a summary: the upstreams, the models, and the
upstream that each model is routed to. Errors are reported with their line. With
--online, the upstreams are asked, too: see `interlingua doctor`."""
EPILOG = """\
examples:
  interlingua config check
  interlingua config check ./interlingua.yaml
  interlingua config check --online
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    add_file(parser)
    parser.add_argument("--online", action="store_true", help="check the upstreams, too, as `interlingua doctor` does")


def add_file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", nargs="?", metavar="FILE", help="settings file; default: the one that `interlingua serve` would read"
    )


def run(args: argparse.Namespace) -> int | None:
    loaded = load_settings(args.file, os.environ)
    for note in loaded.notes:
        console.print_stderr(f"note: {console.printable(note)}")
    routes = routes_for(loaded)
    lines = [f"settings: {loaded.source or 'no file'}", *_summary_lines(loaded.settings, routes)]
    console.write("".join(f"{console.printable(line)}\n" for line in lines).encode())
    return _check_online(loaded, routes) if args.online else None


def _check_online(loaded: LoadedSettings, routes: Routes) -> int:
    from interlingua.cli import doctor

    console.write(b"\n")
    options = argparse.Namespace(
        model=None, timeout=doctor.DEFAULT_SECONDS, parallel=doctor.DEFAULT_PARALLEL, strict=False, json=False
    )
    return doctor.run_checks(routes, loaded.settings.upstreams, options)


def _summary_lines(settings: Settings, routes: Routes) -> Iterator[str]:
    yield f"listens on: {settings.host}:{settings.port}"
    if settings.cassettes is not None:
        yield f"cassettes: {settings.cassettes.mode} {settings.cassettes.dir}"
    yield "upstreams:"
    width = max(map(len, (*settings.upstreams, *settings.models, *settings.tiers, DEMO_UPSTREAM)))
    for name, upstream in settings.upstreams.items():
        key = "the client's key" if upstream.passthrough else "with a key" if upstream.key else "no key"
        yield f"  {name:{width}}  {upstream.url} ({upstream.api}, {key})"
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
    only_upstream = next(iter(settings.upstreams)) if len(settings.upstreams) == 1 else ""
    yield f"every other model: {settings.default or only_upstream or 'unknown'}"


def _describe_routes(routes: list[Route]) -> str:
    return ", then ".join(f"{route.name}: {route.model}{_dialect_note(route)}" for route in routes)


def _dialect_note(route: Route) -> str:
    """Return the dialect in parentheses; "" for a pattern, because the dialect depends on the full model id."""
    return "" if "*" in route.model else f" ({route.dialect_name})"
