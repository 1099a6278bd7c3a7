"""`interlingua faults engine`: run a model server whose template, model, parser or delivery has a known fault."""

from __future__ import annotations

import argparse
import time
from typing import Any

from interlingua.cli.common import console, terminal
from interlingua.errors import BadInput, UsageError, suggestion_hint

DESCRIPTION = """\
Listens on loopback and imitates a model server with a scripted model. One of
its stages can be at fault, so that the cause of each failure is known: try
`doctor` and `verify` with it. Without a fault, every stage works. Several
faults, separated by commas, affect a --share of the conversations each."""
EPILOG = """\
examples:
  interlingua faults engine --list
  interlingua faults engine parser-missing    a vLLM without a tool parser
  interlingua faults engine parser-of-another-model --dialect qwen3_coder
  interlingua faults engine truncates-early,finish-stop --share 0.3

  interlingua doctor --base-url http://127.0.0.1:8586/v1
  interlingua verify --base-url http://127.0.0.1:8586/v1 --html card.html
"""
DEFAULT_PORT = 8586
DEFAULT_DIALECT = "kimi_k2"
KINDS = ("vllm", "sglang", "llama.cpp", "provider")


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("fault", nargs="?", default="none", metavar="FAULT", help="name of a fault, or several; default: none")
    add("--list", action="store_true", help="list the faults and their causes")
    add("--dialect", default=DEFAULT_DIALECT, metavar="NAME", help=f"dialect of the model; default: {DEFAULT_DIALECT}")
    add("--kind", default="vllm", choices=KINDS, metavar="KIND", help=f"server to imitate: {', '.join(KINDS)}")
    add("--share", type=float, default=1.0, metavar="S", help="share of the conversations with a fault; default: 1")
    add("--model", metavar="ID", help="id of the model; default: demo/DIALECT")
    add("--port", type=int, default=DEFAULT_PORT, metavar="N", help=f"default: {DEFAULT_PORT}; 0: any free port")
    add("--json", action="store_true", help="print the list as JSON lines")


def run(args: argparse.Namespace) -> None:
    if args.list:
        _print_faults(args)
        return
    from interlingua.cli.common.options import resolve_dialect
    from interlingua.faults.engines import FaultMix
    from interlingua.faults.engines.engine_server import start_engine_server

    dialect = resolve_dialect(args.dialect)
    if dialect.shape is None:
        raise UsageError(f"the dialect {dialect.name!r} has no native text", "choose another --dialect")
    if not 0 <= args.port <= 65535:
        raise UsageError(f"{args.port} is not a valid port", "use a --port from 0 to 65535")
    model = args.model or f"demo/{dialect.name}"
    engine = FaultMix(model, dialect, _answers(dialect), _faults(args.fault), args.share, args.kind)
    try:
        server = start_engine_server(engine, args.port)
    except OSError as error:
        hint = "choose another --port, or 0 for any free port"
        raise BadInput(f"cannot listen on port {args.port}: {error.strerror}", hint) from error
    console.print_stderr(f"interlingua: {args.kind} {_fault_words(args.fault)} at {server.url} (stop: Ctrl-C)")
    console.print_stderr(f"model: {model}")
    try:
        while True:
            time.sleep(3600)
    finally:
        server.stop()


def _faults(names: str) -> list[Any]:
    from interlingua.faults.engines import ENGINE_FAULTS

    faults = []
    for name in (name.strip() for name in names.split(",")):
        if name in ENGINE_FAULTS:
            faults.append(ENGINE_FAULTS[name])
        elif name != "none":
            raise UsageError(f"no fault is called {name!r}", suggestion_hint(name, ENGINE_FAULTS))
    return faults


def _fault_words(names: str) -> str:
    faults = [fault.name for fault in _faults(names)]
    if not faults:
        return "without a fault"
    return f"with the fault{'s' if len(faults) > 1 else ''} {', '.join(faults)}"


def _answers(dialect: Any) -> Any:
    """Return a model that knows the built-in samples of `verify`, and answers all else as the demo model does."""
    from interlingua.gateway.demo.planner import plan_reply
    from interlingua.verification.samples.answer_key import AnswerKey
    from interlingua.verification.samples.builtin import builtin_samples

    return AnswerKey(builtin_samples(), lambda body: plan_reply(body, dialect))


def _print_faults(args: argparse.Namespace) -> None:
    from interlingua.faults.engines import ENGINE_FAULTS

    for fault in ENGINE_FAULTS.values():
        if args.json:
            console.write_json_line({"name": fault.name, "cause": fault.cause, "description": fault.description})
        else:
            columns = f"{fault.name:26} {fault.cause:15} "
            console.write_lines(terminal.wrap(fault.description, columns, " " * len(columns)))
