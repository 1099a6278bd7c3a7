"""The command line: one module per command, and here the way in and every way out."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from interlingua import __version__
from interlingua.cli import config, dialects, faults, parse, render, request, translate
from interlingua.cli.common import console as io
from interlingua.cli.common.options import add_command
from interlingua.cli.gateway import logs, run, serve, start, status, stop
from interlingua.errors import InterlinguaError, RenderError, UsageError

__all__ = ["build_parser", "main"]

EXIT_OK, EXIT_FAILED, EXIT_USAGE, EXIT_INTERRUPTED, EXIT_CLOSED_PIPE = 0, 1, 2, 130, 141

DESCRIPTION = "Any model's tool calls, in any client's API, exactly."
EPILOG = """\
examples:
  interlingua serve --demo                         a gateway, with no key and no network
  interlingua serve --upstream http://localhost:8000/v1
  interlingua run claude --upstream http://localhost:8000/v1 --model NAME
  interlingua start --demo                         the same in the background, until `interlingua stop`
  interlingua dialects                             what --dialect can be
  interlingua parse --dialect kimi_k2 reply.txt    a model's own text → JSON
  interlingua render --dialect kimi_k2 reply.json  and back
  curl -sN … | interlingua translate               as it streams
  interlingua translate --explain recorded.sse     what came, went out, and why
  interlingua request --from anthropic-messages --to openai-chat body.json
  interlingua config check                         whether the gateway's settings are right
  interlingua faults list                          what upstreams do wrong, and a server that does it

Data goes to standard output; findings, errors and hints go to standard error.

exit status:
  0    all is well; there may be findings
  1    the input cannot be read or written, or the upstream's reply failed
  2    the command line is wrong
  3    `status`: the gateway is not running
  130  interrupted with Ctrl-C
  141  whoever read the output has closed it
"""


class _CommandParser(argparse.ArgumentParser):
    """Tells what is wrong the way everything else here does."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, f"see `{self.prog} --help`")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Each command tells of what it does not know itself: nobody else has its options. What stands behind `--` is
        for another program, if the command starts one."""
        arguments = list(sys.argv[1:] if args is None else args)
        runs_program = self.get_default("behind") is not None
        end = arguments.index("--") if runs_program and "--" in arguments else len(arguments)
        parsed, unknown = super().parse_known_args(arguments[:end], namespace)
        if runs_program:
            parsed.behind = arguments[end + 1 :]
        if unknown:
            option = unknown[0].partition("=")[0]
            close_matches = difflib.get_close_matches(option, self._option_string_actions, n=1)
            suggestion = f"did you mean {close_matches[0]}? " if close_matches else ""
            separator_hint = "what is for the agent stands behind `--`; " if runs_program and not close_matches else ""
            raise UsageError(
                f"unrecognized arguments: {' '.join(unknown)}", f"{suggestion}{separator_hint}see `{self.prog} --help`"
            )
        return parsed, unknown


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit status."""
    try:
        return _run_command(argv)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        io.abandon_stdout()
        return EXIT_CLOSED_PIPE
    except OSError as error:  # those of reading have been told apart: this is what writing met
        io.abandon_stdout()
        io.print_error(f"cannot write the output: {error.strerror}", "what was written before is complete up to there")
        return EXIT_FAILED


def _run_command(argv: Sequence[str] | None) -> int:
    parser = build_parser()
    try:
        try:
            args = parser.parse_args(argv)
        finally:
            io.flush()  # --help and --version have printed and leave
        if args.command is None:
            io.print_stderr(parser.format_help())
            return EXIT_USAGE
        return args.run(args) or EXIT_OK
    except InterlinguaError as error:
        io.print_error(str(error), error.hint or f"see `{parser.prog} --help`")
        return EXIT_USAGE if isinstance(error, UsageError) and not isinstance(error, RenderError) else EXIT_FAILED
    except RecursionError:
        io.print_error("the input is nested too deep", "a few hundred levels are the most that can be read and written")
        return EXIT_FAILED


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    parser = _CommandParser(
        prog="interlingua",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("-V", "--version", action="version", version=f"interlingua {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    gateway_commands = (serve, run, start, stop, status, logs, config)
    for command in (*gateway_commands, parse, render, translate, request, dialects, faults):
        add_command(commands, command)
    return parser
