"""Output of cards: to standard output as text, JSON or Markdown, and to files."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from interlingua.cli.common import console, terminal
from interlingua.common.ansi import Style, ansi_style
from interlingua.errors import BadInput, UsageError
from interlingua.verification.card import Card
from interlingua.verification.card.comparison import Comparison

__all__ = ["add_output_options", "check_output_files", "write_card", "write_comparison"]

_ROLE_STYLES = {
    "heading": Style.HEADING,
    "good": Style.GOOD,
    "fair": Style.WARNING,
    "bad": Style.ERROR,
    "faint": Style.FAINT,
}


def add_output_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("card").add_argument
    add("--html", metavar="FILE", help="also write the card as one HTML page, with plots and the raw texts")
    add("--markdown", metavar="FILE", help="also write the card as Markdown")
    add("--json", action="store_true", help="print the card as JSON instead of text")


def check_output_files(args: argparse.Namespace, *inputs: str | None, log: str | None = None) -> None:
    """Check that the files of the options can be written, before the requests whose result they receive.

    Args:
        args: The options.
        inputs: Files that the command reads.
        log: File of the log, if a new one is named.

    Raises:
        BadInput: A file cannot be written.
        UsageError: Two options name the same file.
    """
    seen = {Path(path).resolve() for path in inputs if path}
    for option, path in (("--log", log), ("--html", args.html), ("--markdown", args.markdown)):
        if path is None:
            continue
        if Path(path).resolve() in seen:
            raise UsageError(f"{option}: {path} is also another file of this command", "choose another file")
        seen.add(Path(path).resolve())
        _check_writable(Path(path))


def _check_writable(path: Path) -> None:
    """Raise BadInput if the file cannot be written. A file that exists keeps its content."""
    is_new = not path.exists()
    if not is_new and not (path.is_file() or path.is_dir()):
        return  # a device or a pipe: opening it may have an effect
    try:
        path.open("ab").close()
        if is_new:
            path.unlink()
    except OSError as error:
        raise _write_error(path, error) from error


def _write_error(path: str | Path, error: OSError) -> BadInput:
    return BadInput(f"cannot write {path}: {error.strerror}", "choose a file in a folder that you can write to")


def write_card(card: Card, args: argparse.Namespace) -> None:
    """Write a card as the options say."""
    from interlingua.verification.card.html_page import card_page
    from interlingua.verification.card.json_card import json_card
    from interlingua.verification.card.markdown_card import markdown_card
    from interlingua.verification.card.terminal_card import terminal_lines

    if args.json:
        console.write_json(json_card(card))
    else:
        _write_lines(partial(terminal_lines, card))
    _write_file(args.html, card_page(card))
    _write_file(args.markdown, markdown_card(card))


def write_comparison(comparison: Comparison, args: argparse.Namespace) -> None:
    from interlingua.verification.card.html_comparison import html_comparison
    from interlingua.verification.card.json_card import json_comparison
    from interlingua.verification.card.markdown_comparison import markdown_comparison
    from interlingua.verification.card.terminal_comparison import terminal_comparison

    if args.json:
        console.write_json(json_comparison(comparison))
    else:
        _write_lines(partial(terminal_comparison, comparison))
    _write_file(args.html, html_comparison(comparison))
    _write_file(args.markdown, markdown_comparison(comparison))


def _write_lines(lines_for: Callable[[int, Callable[[str, str], str]], Iterable[str]]) -> None:
    """Write the lines that a function returns for a width and a function that colours texts by their role."""
    styler = terminal.stdout_styler()
    lines = lines_for(terminal.terminal_width(), lambda text, role: styler(text, _ROLE_STYLES[role]))
    console.write("".join(f"{_printable(line)}\n" for line in lines).encode())


def _printable(line: str) -> str:
    """Escape control characters of models and servers. Colours are the only escape sequences of a card."""
    return (
        "\x1b".join(map(console.printable, line.split("\x1b")))
        if terminal.stdout_styler() is ansi_style
        else console.printable(line)
    )


def _write_file(path: str | None, text: str) -> None:
    if path is None:
        return
    try:
        Path(path).write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        raise _write_error(path, error) from error
    console.print_stderr(f"written: {path}")
