"""Command line: entry point, parser and exit statuses. Each command is a module of its own."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

from interlingua import __version__
from interlingua.cli.common import console
from interlingua.cli.common.command_parser import CommandEntry, CommandParser, add_commands
from interlingua.cli.common.terminal import progress
from interlingua.errors import BadSettings, InterlinguaError, NotExpressible, RenderError, UsageError

__all__ = ["build_parser", "main"]

COMMANDS = {
    "serve": CommandEntry("interlingua.cli.gateway.serve", "run the gateway"),
    "run": CommandEntry("interlingua.cli.gateway.run", "run a coding agent with a temporary gateway"),
    "start": CommandEntry("interlingua.cli.gateway.start", "start the gateway in the background"),
    "stop": CommandEntry("interlingua.cli.gateway.stop", "stop the background gateway when its streams have finished"),
    "reload": CommandEntry("interlingua.cli.gateway.reload", "let the background gateway read its settings again"),
    "status": CommandEntry("interlingua.cli.gateway.status", "show the state of the background gateway"),
    "logs": CommandEntry("interlingua.cli.gateway.logs", "show the log of the background gateway"),
    "config": CommandEntry("interlingua.cli.config", "write, check and show the gateway's settings"),
    "doctor": CommandEntry("interlingua.cli.doctor", "check upstreams: reachable, key, model, streams, tool calls"),
    "verify": CommandEntry("interlingua.cli.verify", "measure how well a provider's model calls tools"),
    "parse": CommandEntry("interlingua.cli.parse", "convert a model's native text to a reply in JSON"),
    "render": CommandEntry("interlingua.cli.render", "convert a reply in JSON to the native text of a model"),
    "translate": CommandEntry("interlingua.cli.translate", "translate a reply from one API to another"),
    "captures": CommandEntry("interlingua.cli.captures", "list the recorded exchanges of the gateway, and show one"),
    "explain": CommandEntry("interlingua.cli.explain", "say what a kind of finding means, and what to do about it"),
    "request": CommandEntry("interlingua.cli.request", "translate a request body from one API to another"),
    "inspect": CommandEntry("interlingua.cli.inspect", "show captured exchanges on a web page"),
    "dialects": CommandEntry("interlingua.cli.dialects", "list the dialects, and show, check or draft one"),
    "export": CommandEntry("interlingua.cli.export", "print a dialect as a grammar or template for other programs"),
    "cassettes": CommandEntry("interlingua.cli.cassettes", "show and check recorded exchanges"),
    "completion": CommandEntry("interlingua.cli.completion", "print a script that completes commands in your shell"),
    "faults": CommandEntry("interlingua.cli.faults", "test a gateway against a server that injects faults"),
}

FILE_COMMANDS = ("parse", "render", "translate", "request")
"""Commands that read one file, which may be large."""
EXIT_OK, EXIT_FAILED, EXIT_USAGE, EXIT_INTERRUPTED, EXIT_CLOSED_PIPE = 0, 1, 2, 130, 141

DESCRIPTION = "Translates LLM tool calls between model formats and client APIs."
EPILOG = """\
examples:
  interlingua serve --demo                      a gateway without key or network
  interlingua serve --upstream http://localhost:8000/v1
  interlingua run claude --upstream http://localhost:8000/v1 --model NAME
  interlingua start --demo                      a gateway in the background
  interlingua config init                       write a settings file
  interlingua translate --explain recorded.sse  a stream, chunk by chunk
  curl -sN … | interlingua translate            a stream while it arrives
  interlingua parse --dialect kimi_k2 reply.txt
  interlingua render --dialect kimi_k2 reply.json
  interlingua request --from anthropic-messages --to openai-chat body.json
  interlingua dialects                          all values of --dialect
  interlingua inspect captures/                 captured exchanges in a browser
  interlingua cassettes show cassettes          exchanges of `serve --record`
  interlingua export gbnf --dialect glm47 --tools tools.json
  interlingua doctor --base-url http://localhost:8000/v1
  interlingua verify --base-url http://localhost:8000/v1 --model NAME

Data goes to standard output; findings, errors and hints go to standard error.

exit status:
  0    success; findings may have been reported
  1    the input cannot be read, the output cannot be written, or the upstream's
       reply failed
  2    the command line is invalid
  3    `status`: the gateway is not running
  130  interrupted with Ctrl-C
  141  the program that reads the output closed the pipe
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    try:
        return _run_command(argv)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        console.abandon_stdout()
        return EXIT_CLOSED_PIPE
    except OSError as error:  # read errors have become BadInput: this is a write error
        console.abandon_stdout()
        console.print_error(
            f"cannot write the output: {error.strerror or error}", "the output written so far is valid up to that point"
        )
        return EXIT_FAILED


def _run_command(argv: Sequence[str] | None) -> int:
    parser = build_parser()
    try:
        try:
            args = parser.parse_args(argv)
        finally:
            console.flush()  # --help and --version print, then raise SystemExit
        if args.command is None:
            console.print_stderr(parser.format_help())
            return EXIT_USAGE
        with _input_progress(args):
            return args.run(args) or EXIT_OK
    except BadSettings as error:
        for problem in error.problems:
            console.print_error(str(problem), problem.hint)
        console.print_stderr(f"{len(error.problems)} settings are wrong")
        return EXIT_FAILED
    except InterlinguaError as error:
        console.print_error(str(error), error.hint or f"see `{parser.prog} --help`")
        is_usage = isinstance(error, UsageError) and not isinstance(error, NotExpressible | RenderError)
        return EXIT_USAGE if is_usage else EXIT_FAILED
    except RecursionError:
        console.print_error("the input is nested too deeply", "the limit is a few hundred levels")
        return EXIT_FAILED


def _input_progress(args: argparse.Namespace) -> AbstractContextManager[None]:
    """Return what shows progress while a file is read, unless the output goes to the terminal and shows it."""
    file = getattr(args, "file", None)
    if args.command not in FILE_COMMANDS or file in (None, console.STDIN) or console.stdout_is_terminal():
        return nullcontext()
    return progress(f"reading {file}")


def build_parser() -> CommandParser:
    """Return the argument parser with all commands."""
    parser = CommandParser(prog="interlingua", description=DESCRIPTION, epilog=EPILOG)
    parser.add_argument("-V", "--version", action="version", version=f"interlingua {__version__}")
    add_commands(parser, COMMANDS, "commands", dest="command")
    return parser
