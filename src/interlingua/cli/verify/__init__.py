"""`interlingua verify`: make a capability card of a provider's model."""

from __future__ import annotations

import argparse

from interlingua.cli.common.command_parser import CommandEntry, add_commands
from interlingua.cli.common.upstream_options import add_target_options
from interlingua.cli.verify.output import add_output_options

COMMANDS = {
    "card": CommandEntry("interlingua.cli.verify.card", "show the card of a run again, or two runs side by side"),
    "samples": CommandEntry("interlingua.cli.verify.samples", "print the built-in requests as JSON lines"),
}
DESCRIPTION = """\
Sends two hundred requests to a model and judges the replies: does it call the
right tools, with the right arguments, in streams and in whole replies? Every
failure is attributed to the model, the chat template, the server's tool parser,
the transport or the request. Where the server allows it, a failed request is
repeated so that the server shows what the model really wrote.

The card goes to standard output; progress and costs go to standard error. Each
result is also written to a log, with which an interrupted run is continued."""
EPILOG = """\
examples:
  interlingua verify --base-url http://localhost:8000/v1 --model Qwen/Qwen3-8B
  interlingua verify --base-url https://openrouter.ai/api/v1 --html card.html \\
      --model moonshotai/kimi-k2 --key-env OPENROUTER_API_KEY
  interlingua verify --base-url URL --model NAME --only parallel,code --dry-run
  interlingua verify --base-url URL --model NAME \\
      --samples samples.jsonl --against results.jsonl
  interlingua verify --resume kimi-k2.jsonl    continue an interrupted run
  interlingua verify card kimi-k2.jsonl --html card.html
  interlingua verify card a.jsonl b.jsonl      compare two providers

--samples takes the formats of this project (`verify samples` prints them), of
K2-Vendor-Verifier, Kimi-Vendor-Verifier and MiniMax-Provider-Verifier.

exit status:
  0    the run is complete
  1    it cannot be run, or ends early; or fewer are right than --fail-under
  130  interrupted with Ctrl-C; the card of the results so far is printed
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    add_target_options(parser)
    group = parser.add_argument_group("requests").add_argument
    group("--samples", metavar="FILE", help="JSON lines with other requests than the built-in ones; -: standard input")
    group("--only", metavar="NAMES", help="categories or ids of samples, separated by commas")
    group("--limit", type=int, metavar="N", help="send at most N samples, spread over the set")
    group("--modes", default="stream,whole", metavar="MODES", help="stream, whole, or stream,whole (default)")
    group("--temperature", metavar="T", help="sampling temperature; default: 0 for built-in requests; none: not sent")
    group("--seed", type=int, metavar="N", help="seed of the sampling; default: not sent")
    group("--max-tokens", type=int, metavar="N", help="longest reply; default: 4096 for built-in requests")
    group("--extra", metavar="JSON", help='more fields of each request, such as {"provider": {"only": ["…"]}}')
    group = parser.add_argument_group("run").add_argument
    group("--against", metavar="FILE", help="reference run: a log of this command, or another verifier's results.jsonl")
    group("--parallel", type=int, default=4, metavar="N", help="parallel requests; default: 4")
    group("--timeout", type=float, default=120.0, metavar="S", help="seconds for one reply; default: 120")
    group(
        "--retries",
        type=int,
        default=4,
        metavar="N",
        help="retries of a request without a reply, if it did not time out; default: 4",
    )
    group("--log", metavar="FILE", help="file for the results; default: verify-MODEL-TIME.jsonl")
    group("--resume", metavar="FILE", help="continue the run of this log; its other options are in the log")
    group("--price", metavar="IN,OUT", help="US dollars for a million prompt tokens and reply tokens")
    group("--max-total-tokens", type=int, default=0, metavar="N", help="end the run after this number of tokens")
    group("--dry-run", action="store_true", help="print the estimate of tokens and costs, and send no sample")
    group("--fail-under", type=float, metavar="P", help="exit with status 1 if fewer than P percent are right")
    add_output_options(parser)
    add_commands(parser, COMMANDS, "commands (default: run)")
    parser.usage = "%(prog)s --base-url URL --model NAME [options]"


def run(args: argparse.Namespace) -> int:
    from interlingua.cli.verify.execution import verify

    return verify(args)
