"""Command line: entry point, parser and exit statuses. Each command is a module of its own."""

from __future__ import annotations

from collections.abc import Sequence

from interlingua import __version__
from interlingua.cli.common import console
from interlingua.cli.common.command_parser import CommandEntry, CommandParser, add_commands
from interlingua.errors import InterlinguaError, NotExpressible, RenderError, UsageError

__all__ = ["build_parser", "main"]

COMMANDS = {
    "serve": CommandEntry("interlingua.cli.gateway.serve", "run the gateway"),
    "run": CommandEntry("interlingua.cli.gateway.run", "run a coding agent with a temporary gateway"),
    "start": CommandEntry("interlingua.cli.gateway.start", "start the gateway in the background"),
    "stop": CommandEntry(
        "interlingua.cli.gateway.stop", "stop the background gateway after its open streams have finished"
    ),
    "status": CommandEntry("interlingua.cli.gateway.status", "show the state of the background gateway"),
    "logs": CommandEntry("interlingua.cli.gateway.logs", "show the log of the background gateway"),
    "config": CommandEntry("interlingua.cli.config", "check and show the gateway's settings"),
    "doctor": CommandEntry("interlingua.cli.doctor", "check upstreams: reachable, key, model, streams, tool calls"),
    "verify": CommandEntry("interlingua.cli.verify", "measure how well a provider's model calls tools"),
    "parse": CommandEntry("interlingua.cli.parse", "convert a model's native text to a reply in JSON"),
    "render": CommandEntry("interlingua.cli.render", "convert a reply in JSON to the native text of a model"),
    "translate": CommandEntry("interlingua.cli.translate", "translate a reply from one API to another"),
    "request": CommandEntry("interlingua.cli.request", "translate a request body from one API to another"),
    "dialects": CommandEntry("interlingua.cli.dialects", "list the dialects, and show, check or draft one"),
    "export": CommandEntry("interlingua.cli.export", "print a dialect as a grammar or template for other programs"),
    "cassettes": CommandEntry("interlingua.cli.cassettes", "show and check recorded exchanges"),
    "faults": CommandEntry("interlingua.cli.faults", "test a gateway against a server that injects faults"),
}

EXIT_OK, EXIT_FAILED, EXIT_USAGE, EXIT_INTERRUPTED, EXIT_CLOSED_PIPE = 0, 1, 2, 130, 141

DESCRIPTION = "Translates LLM tool calls between model formats and client APIs."
EPILOG = """\
examples:
  interlingua serve --demo                         run a gateway; needs no key and no network
  interlingua serve --upstream http://localhost:8000/v1
  interlingua run claude --upstream http://localhost:8000/v1 --model NAME
  interlingua start --demo                         run a gateway in the background; see `interlingua stop`
  interlingua dialects                             list the dialects (values of --dialect)
  interlingua parse --dialect kimi_k2 reply.txt    convert a model's native text to JSON
  interlingua render --dialect kimi_k2 reply.json  convert JSON back to the native text
  curl -sN … | interlingua translate               translate a stream while it arrives
  interlingua translate --explain recorded.sse     explain the translation chunk by chunk
  interlingua request --from anthropic-messages --to openai-chat body.json
  interlingua export gbnf --dialect glm47 --tools tools.json
  interlingua config check                         validate the gateway's settings
  interlingua cassettes show cassettes             show exchanges that `serve --record` has recorded
  interlingua doctor --base-url http://localhost:8000/v1
  interlingua verify --base-url http://localhost:8000/v1 --model NAME --html card.html
  interlingua faults list                          list the faults that the fault server can inject

Data goes to standard output; findings, errors and hints go to standard error.

exit status:
  0    success; findings may have been reported
  1    the input cannot be read, the output cannot be written, or the upstream's reply failed
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
            f"cannot write the output: {error.strerror}", "the output written so far is valid up to that point"
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
        return args.run(args) or EXIT_OK
    except InterlinguaError as error:
        console.print_error(str(error), error.hint or f"see `{parser.prog} --help`")
        is_usage = isinstance(error, UsageError) and not isinstance(error, NotExpressible | RenderError)
        return EXIT_USAGE if is_usage else EXIT_FAILED
    except RecursionError:
        console.print_error("the input is nested too deeply", "the limit is a few hundred levels")
        return EXIT_FAILED


def build_parser() -> CommandParser:
    """Return the argument parser with all commands."""
    parser = CommandParser(prog="interlingua", description=DESCRIPTION, epilog=EPILOG)
    parser.add_argument("-V", "--version", action="version", version=f"interlingua {__version__}")
    add_commands(parser, COMMANDS, "commands", dest="command")
    return parser
