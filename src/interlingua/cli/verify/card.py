"""`interlingua verify card`: show the card of a run again, or two runs side by side."""

from __future__ import annotations

import argparse

from interlingua.cli.verify.output import add_output_options, check_output_files, write_card, write_comparison
from interlingua.cli.verify.price import parse_price
from interlingua.errors import UsageError

DESCRIPTION = """\
Shows the card of a run from its log, without any request. With two logs, the
runs are compared side by side; requests are paired by their content."""
EPILOG = """\
examples:
  interlingua verify card kimi-k2.jsonl
  interlingua verify card kimi-k2.jsonl --against official.jsonl
  interlingua verify card a.jsonl b.jsonl --html comparison.html
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("logs", nargs="+", metavar="LOG", help="one or two logs of `interlingua verify`")
    parser.add_argument("--against", metavar="FILE", help="reference run, as for `interlingua verify`")
    parser.add_argument("--price", metavar="IN,OUT", help="US dollars for a million prompt tokens and reply tokens")
    add_output_options(parser)


def run(args: argparse.Namespace) -> None:
    from interlingua.verification.card import build_card
    from interlingua.verification.card.comparison import compare_runs
    from interlingua.verification.run.reference import read_reference
    from interlingua.verification.run.run_log import read_run

    if len(args.logs) > 2:
        raise UsageError(f"{len(args.logs)} logs are given", "pass one log, or two to compare them")
    check_output_files(args, *args.logs, args.against)
    price = parse_price(args.price)
    runs = [read_run(path) for path in args.logs]
    if len(runs) == 1:
        reference = read_reference(args.against) if args.against else None
        write_card(build_card(runs[0], reference, price), args)
        return
    if args.against:
        raise UsageError("--against needs one log", "two logs are compared with each other")
    cards = [build_card(stored, None, price) for stored in runs]
    write_comparison(compare_runs(cards[0], cards[1], runs[0], runs[1]), args)
